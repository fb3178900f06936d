//! Conversions between kinds of numbers, each in one checked place.
//!
//! A position in the unit interval is a whole number of steps of 2^-53, 0..=[`UNIT_STEPS`]. A float represents each
//! such number exactly, so integer arithmetic on steps is exact.
//!
//! Rounding must not depend on the machine.

pub(crate) const UNIT_BITS: u32 = 53;
pub(crate) const UNIT_STEPS: u64 = 1 << UNIT_BITS;

/// Returns the step at or below `u`, clipped into [0, 1]; NaN gives 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the product is in 0..=2^53; the cast drops its fraction and maps NaN to 0"
)]
pub(crate) fn step_of(u: f64) -> u64 {
    (u.clamp(0.0, 1.0) * UNIT_STEPS_FLOAT) as u64
}

/// Returns the float at a step; exact for 0..=[`UNIT_STEPS`].
#[expect(clippy::cast_precision_loss, reason = "at most 2^53")]
pub(crate) fn unit(step: u64) -> f64 {
    step.min(UNIT_STEPS) as f64 / UNIT_STEPS_FLOAT
}

const UNIT_STEPS_FLOAT: f64 = 9_007_199_254_740_992.0;

/// Returns the float nearest to an integer: exact up to 2^53 in size.
#[expect(clippy::cast_precision_loss, reason = "used in log space only, where the nearest float is enough")]
pub(crate) fn nearest_float(integer: i64) -> f64 {
    integer as f64
}

/// Returns the integer nearest to a float; a float beyond the range of `i64` gives its limit.
#[expect(clippy::cast_possible_truncation, reason = "the float is rounded before; the cast saturates")]
pub(crate) fn nearest_integer(float: f64) -> i64 {
    float.round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_clipped_and_exact() {
        assert_eq!([f64::NAN, -1.0, 0.0, 0.5].map(step_of), [0, 0, 0, UNIT_STEPS / 2]);
        assert_eq!([1.0, 7.0, f64::INFINITY].map(step_of), [UNIT_STEPS; 3]);
        for step in [0, 1, UNIT_STEPS / 3, UNIT_STEPS - 1, UNIT_STEPS] {
            assert_eq!(step_of(unit(step)), step);
        }
    }

    #[test]
    fn integers_saturate() {
        assert_eq!(nearest_integer(nearest_float(i64::MAX)), i64::MAX);
        assert_eq!(nearest_integer(-1e30), i64::MIN);
        assert_eq!([2.4, 2.5, -0.4].map(nearest_integer), [2, 3, 0]);
    }
}
