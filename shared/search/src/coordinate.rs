//! One parameter: from its coordinate in the unit interval to its value and back.
//!
//! Integers with linear scaling and categories cut the interval into equal cells by whole-number arithmetic,
//! exact over all of `i64`. The others go through floats; a greater coordinate never gives a lesser number,
//! so the way back can be found by bisection where the closed formula is off by a rounding.
//!
//! Assumes a domain that [`crate::Space::new`] has checked. Must never: give a value outside the bounds.

use crate::number::{UNIT_BITS, UNIT_STEPS, nearest_float, nearest_integer, step_of, unit};
use crate::space::{Domain, EncodeRule, Scaling};

impl Domain {
    /// The value at a coordinate, as text.
    pub(crate) fn value(&self, u: f64) -> String {
        let step = step_of(u);
        match self {
            Self::Integer { min, max, scaling } => integer_at(*min, *max, *scaling, step).to_string(),
            // `Display` of a float is the shortest decimal that reads back the same, without an exponent.
            Self::Continuous { min, max, scaling } => float_at(*min, *max, *scaling, step).to_string(),
            Self::Categorical { values } => {
                let cell = usize::try_from(cell_at(step, values.len() as u128)).unwrap_or(usize::MAX);
                values.get(cell).cloned().unwrap_or_default()
            }
        }
    }

    /// A coordinate at which [`Self::value`] gives this text.
    pub(crate) fn coordinate(&self, text: &str) -> Result<f64, EncodeRule> {
        match self {
            Self::Integer { min, max, scaling } => {
                let value: i64 = text.parse().map_err(|_| EncodeRule::NotANumber)?;
                if !(*min..=*max).contains(&value) {
                    return Err(EncodeRule::OutOfDomain);
                }
                Ok(unit(match scaling {
                    Scaling::Linear => centre(u128::from(value.abs_diff(*min)), integers(*min, *max)),
                    Scaling::Logarithmic | Scaling::ReverseLogarithmic => {
                        let (low, high) = log_bounds(*min, *max);
                        let guess = (libm::log(nearest_float(value)) - low) / (high - low);
                        find(guess, &value, |step| integer_at(*min, *max, *scaling, step))
                    }
                }))
            }
            Self::Continuous { min, max, scaling } => {
                let value: f64 = text.parse().map_err(|_| EncodeRule::NotANumber)?;
                if !value.is_finite() {
                    return Err(EncodeRule::NotANumber);
                }
                if !(*min..=*max).contains(&value) {
                    return Err(EncodeRule::OutOfDomain);
                }
                let guess = float_guess(*min, *max, *scaling, value);
                Ok(unit(find(guess, &value, |step| float_at(*min, *max, *scaling, step))))
            }
            Self::Categorical { values } => {
                let cell = values.iter().position(|value| value == text).ok_or(EncodeRule::OutOfDomain)?;
                Ok(unit(centre(cell as u128, values.len() as u128)))
            }
        }
    }
}

/// Which of `cells` equal cells of the unit interval a step is in; the end of the interval is in the last
/// one. `cells` is at most 2^64, so nothing overflows.
fn cell_at(step: u64, cells: u128) -> u128 {
    ((u128::from(step) * cells) >> UNIT_BITS).min(cells - 1)
}

/// The step in the middle of a cell. Where cells are smaller than a step, the first step that is not before
/// it.
fn centre(cell: u128, cells: u128) -> u64 {
    let steps = u128::from(UNIT_STEPS);
    let first = cell.saturating_mul(steps).div_ceil(cells);
    let middle = cell.saturating_mul(2).saturating_add(1).saturating_mul(steps) / (2 * cells);
    u64::try_from(first.max(middle)).unwrap_or(UNIT_STEPS).min(UNIT_STEPS)
}

/// How many integers are in min..=max: 1..=2^64.
fn integers(min: i64, max: i64) -> u128 {
    u128::from(max.abs_diff(min)) + 1
}

fn integer_at(min: i64, max: i64, scaling: Scaling, step: u64) -> i64 {
    match scaling {
        Scaling::Linear => {
            let offset = i128::try_from(cell_at(step, integers(min, max))).unwrap_or(0);
            i64::try_from(i128::from(min) + offset).unwrap_or(max)
        }
        // A space has no reverse-logarithmic integers.
        Scaling::Logarithmic | Scaling::ReverseLogarithmic => {
            let (low, high) = log_bounds(min, max);
            match step {
                0 => min,
                // Not by the formula: the float nearest to a great bound may round to well below it.
                UNIT_STEPS => max,
                _ => nearest_integer(libm::exp(low + unit(step) * (high - low))).clamp(min, max),
            }
        }
    }
}

/// Logarithms of the bounds, half an integer further out, so that the bounds get their full share.
fn log_bounds(min: i64, max: i64) -> (f64, f64) {
    (libm::log(nearest_float(min) - 0.5), libm::log(nearest_float(max) + 0.5))
}

fn float_at(min: f64, max: f64, scaling: Scaling, step: u64) -> f64 {
    let u = unit(step);
    let value = match (step, scaling) {
        (0, _) => min,
        (UNIT_STEPS, _) => max,
        (_, Scaling::Linear) if (max - min).is_finite() => min + u * (max - min),
        // The width overflows: the same in halves.
        (_, Scaling::Linear) => 2.0 * (min / 2.0 + u * (max / 2.0 - min / 2.0)),
        (_, Scaling::Logarithmic) => {
            let (low, high) = (libm::log(min), libm::log(max));
            libm::exp(low + u * (high - low))
        }
        (_, Scaling::ReverseLogarithmic) => {
            let (low, high) = (libm::log1p(-min), libm::log1p(-max));
            -libm::expm1(low + u * (high - low))
        }
    };
    // Adding zero turns a negative zero into zero.
    value.clamp(min, max) + 0.0
}

/// The coordinate of a value by the closed formula; rounding may put it beside the right step. Not-a-number
/// if the bounds are equal.
fn float_guess(min: f64, max: f64, scaling: Scaling, value: f64) -> f64 {
    match scaling {
        Scaling::Linear => (value / 2.0 - min / 2.0) / (max / 2.0 - min / 2.0),
        Scaling::Logarithmic => (libm::log(value) - libm::log(min)) / (libm::log(max) - libm::log(min)),
        Scaling::ReverseLogarithmic => {
            (libm::log1p(-value) - libm::log1p(-min)) / (libm::log1p(-max) - libm::log1p(-min))
        }
    }
}

/// The step at which the non-decreasing function `at` is `value`: the guess if that is right, else the first
/// step at which the function is not less, which is equal to it if any step is.
fn find<T: PartialOrd>(guess: f64, value: &T, at: impl Fn(u64) -> T) -> u64 {
    let guess = step_of(guess);
    if at(guess) == *value {
        return guess;
    }
    let (mut low, mut high) = (0, UNIT_STEPS);
    while low < high {
        let middle = low.midpoint(high);
        if at(middle) < *value {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
