//! One parameter: converts its coordinate in the unit interval to its value, and back.
//!
//! Integers with linear scaling and categories divide the interval into equal cells by integer arithmetic, exact over
//! all of `i64`. The others use floats. A greater coordinate never gives a smaller number, so bisection finds the
//! coordinate of a value where rounding makes the closed formula inexact.
//!
//! Assumes a domain that [`crate::Space::new`] has checked. A value must never be outside the bounds.

use crate::number::{UNIT_BITS, UNIT_STEPS, nearest_float, nearest_integer, step_of, unit};
use crate::space::{Domain, EncodeRule, Scaling};

impl Domain {
    /// Returns the value at a coordinate, as text.
    pub(crate) fn value(&self, u: f64) -> String {
        let step = step_of(u);
        match self {
            Self::Integer { min, max, scaling } => integer_at(*min, *max, *scaling, step).to_string(),
            // `Display` of a float is the shortest decimal that parses to the same float, without an exponent.
            Self::Continuous { min, max, scaling } => float_at(*min, *max, *scaling, step).to_string(),
            Self::Categorical { values } | Self::Ordinal { values } => {
                let cell = usize::try_from(cell_at(step, values.len() as u128)).unwrap_or(usize::MAX);
                values.get(cell).cloned().unwrap_or_default()
            }
        }
    }

    /// Returns the center of the cell of a coordinate; the coordinate itself in a continuous range.
    pub(crate) fn snapped(&self, u: f64) -> f64 {
        let step = step_of(u);
        let middle = |cells: u128| unit(center(cell_at(step, cells), cells));
        match self {
            Self::Integer { min, max, scaling } => match usable(*scaling, *min, *max) {
                Scaling::Linear => middle(integers(*min, *max)),
                Scaling::Logarithmic | Scaling::ReverseLogarithmic => {
                    let (low, high) = log_bounds(*min, *max);
                    let value = nearest_float(integer_at(*min, *max, *scaling, step));
                    ((libm::log(value) - low) / (high - low)).clamp(0.0, 1.0)
                }
            },
            Self::Continuous { .. } => u,
            Self::Categorical { values } | Self::Ordinal { values } => middle(values.len() as u128),
        }
    }

    /// Returns the text of this value in the form of [`Self::value`].
    pub(crate) fn normalized(&self, text: &str) -> Result<String, EncodeRule> {
        self.coordinate(text)?;
        match self {
            Self::Integer { .. } => text.parse().ok().map(|value: i64| value.to_string()),
            // Adding 0 removes the sign of a zero.
            Self::Continuous { .. } => text.parse().ok().map(|value: f64| (value + 0.0).to_string()),
            Self::Categorical { .. } | Self::Ordinal { .. } => Some(text.to_owned()),
        }
        .ok_or(EncodeRule::NotANumber)
    }

    /// Returns a coordinate at which [`Self::value`] gives this text.
    pub(crate) fn coordinate(&self, text: &str) -> Result<f64, EncodeRule> {
        match self {
            Self::Integer { min, max, scaling } => {
                let value: i64 = text.parse().map_err(|_| EncodeRule::NotANumber)?;
                if !(*min..=*max).contains(&value) {
                    return Err(EncodeRule::OutOfDomain);
                }
                Ok(unit(match usable(*scaling, *min, *max) {
                    Scaling::Linear => center(u128::from(value.abs_diff(*min)), integers(*min, *max)),
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
            Self::Categorical { values } | Self::Ordinal { values } => {
                let cell = values.iter().position(|value| value == text).ok_or(EncodeRule::OutOfDomain)?;
                Ok(unit(center(cell as u128, values.len() as u128)))
            }
        }
    }
}

/// Returns which of `cells` equal cells of the unit interval holds a step; the end of the interval belongs to the last
/// cell. `cells` is at most 2^64, so nothing overflows.
fn cell_at(step: u64, cells: u128) -> u128 {
    ((u128::from(step) * cells) >> UNIT_BITS).min(cells - 1)
}

/// Returns the step in the middle of a cell; where cells are smaller than a step, the first step at or after its
/// start.
fn center(cell: u128, cells: u128) -> u64 {
    let steps = u128::from(UNIT_STEPS);
    let first = cell.saturating_mul(steps).div_ceil(cells);
    let middle = cell.saturating_mul(2).saturating_add(1).saturating_mul(steps) / (2 * cells);
    u64::try_from(first.max(middle)).unwrap_or(UNIT_STEPS).min(UNIT_STEPS)
}

/// Returns how many integers are in min..=max: 1..=2^64.
fn integers(min: i64, max: i64) -> u128 {
    u128::from(max.abs_diff(min)) + 1
}

fn integer_at(min: i64, max: i64, scaling: Scaling, step: u64) -> i64 {
    match usable(scaling, min, max) {
        Scaling::Linear => {
            let offset = i128::try_from(cell_at(step, integers(min, max))).unwrap_or(0);
            i64::try_from(i128::from(min) + offset).unwrap_or(max)
        }
        // A space has no reverse-logarithmic integers.
        Scaling::Logarithmic | Scaling::ReverseLogarithmic => {
            let (low, high) = log_bounds(min, max);
            match step {
                0 => min,
                // The formula is not used here: the float nearest to a large bound may round to well below it.
                UNIT_STEPS => max,
                _ => nearest_integer(libm::exp(low + unit(step) * (high - low))).clamp(min, max),
            }
        }
    }
}

/// Returns the scaling of a range of integers: linear where the logarithms of the bounds are equal, next to `i64::MAX`.
fn usable(scaling: Scaling, min: i64, max: i64) -> Scaling {
    let (low, high) = log_bounds(min, max);
    if scaling != Scaling::Linear && high <= low { Scaling::Linear } else { scaling }
}

/// Returns the logarithms of the bounds, extended by half an integer so that the bounds get their full share.
fn log_bounds(min: i64, max: i64) -> (f64, f64) {
    (libm::log(nearest_float(min) - 0.5), libm::log(nearest_float(max) + 0.5))
}

fn float_at(min: f64, max: f64, scaling: Scaling, step: u64) -> f64 {
    let u = unit(step);
    let value = match (step, scaling) {
        (0, _) => min,
        (UNIT_STEPS, _) => max,
        (_, Scaling::Linear) if (max - min).is_finite() => min + u * (max - min),
        // The width overflows, so the formula works on halves.
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

/// Returns the coordinate of a value by the closed formula; rounding may put it next to the right step. NaN if the
/// bounds are equal.
fn float_guess(min: f64, max: f64, scaling: Scaling, value: f64) -> f64 {
    match scaling {
        Scaling::Linear => (value / 2.0 - min / 2.0) / (max / 2.0 - min / 2.0),
        Scaling::Logarithmic => (libm::log(value) - libm::log(min)) / (libm::log(max) - libm::log(min)),
        Scaling::ReverseLogarithmic => {
            (libm::log1p(-value) - libm::log1p(-min)) / (libm::log1p(-max) - libm::log1p(-min))
        }
    }
}

/// Returns the step at which the non-decreasing function `at` equals `value`: the guess if it is right, else the first
/// step at which the function is not less, which equals `value` if any step does.
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

#[cfg(test)]
mod tests;
