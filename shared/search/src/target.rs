//! The target of the model: the values of trials on a scale that separates the best ones.
//!
//! A value becomes `-ln((best - value) / spread + 0.05)`. The spread is the difference between the best value and the
//! median. It is smaller if more than half of the trials are far worse than the good ones. The logarithm magnifies
//! differences between good trials and shrinks those between bad ones. A value far below the best one counts as less
//! far below it. So does a trial that ended without a value. The result has mean 0 and variance 1.

use crate::history::{View, at_tenth};

/// Keeps the logarithm finite at the best value.
const OFFSET: f64 = 0.05;
/// How many spreads below the best value the worst target is.
const WORST: f64 = 5.5;
/// How many spreads below the best value a tolerated value is at most.
const TOLERATED: f64 = 5.0;
/// So many tenths of the distinct values count as good.
const GOOD: usize = 3;
/// The spread is at most this many times the range of the good values.
const SPREAD_MAX: f64 = 4.0;
/// A spread or value times this is finite, or all targets are equal. So an expectation is finite, too: JSON has no NaN.
const ROOM: f64 = 1e6;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Target {
    sign: f64,
    best: f64,
    spread: f64,
    mean: f64,
    deviation: f64,
}

impl Target {
    /// Returns the scale and the target of each trial in [`View::known`]; `None` with fewer than two values.
    pub(crate) fn of(view: &View<'_>) -> Option<(Self, Vec<f64>)> {
        let sign = if view.maximize() { 1.0 } else { -1.0 };
        let values: Vec<Option<f64>> = view.values().into_iter().map(|value| Some(sign * value?)).collect();
        let mut sorted: Vec<f64> = values.iter().copied().flatten().collect();
        if sorted.len() < 2 {
            return None;
        }
        sorted.sort_unstable_by(|a, b| b.total_cmp(a));
        let (best, median, worst) = (*sorted.first()?, *sorted.get((sorted.len() - 1) / 2)?, *sorted.last()?);
        // Most trials may have the best value.
        let spread = if best > median { best - median } else { best - worst };
        sorted.dedup();
        // Most trials may be bad ones.
        let spread = spread.min(SPREAD_MAX * (best - at_tenth(&sorted, GOOD)));
        let flat = Self { sign, best, spread: 0.0, mean: 0.0, deviation: 1.0 };
        let has_room = (spread * ROOM).is_finite() && (best * ROOM).is_finite();
        if !(spread > 0.0 && has_room) {
            return Some((flat, vec![0.0; values.len()]));
        }
        let least = best - WORST * spread;
        let raw = |value: &Option<f64>| raw(value.unwrap_or(least).max(least), best, spread);
        let raw: Vec<f64> = values.iter().map(raw).collect();
        let count = u32::try_from(raw.len()).map_or(f64::INFINITY, f64::from);
        let mean = raw.iter().fold(0.0, |sum, value| sum + value) / count;
        let variance = raw.iter().fold(0.0, |sum, value| sum + (value - mean) * (value - mean)) / count;
        let deviation = if variance > 0.0 { variance.sqrt() } else { 1.0 };
        let scaled = raw.iter().map(|value| (value - mean) / deviation).collect();
        Some((Self { spread, mean, deviation, ..flat }, scaled))
    }

    /// Returns the target of a value. One far below the best counts as less far below, so that it stays above that of a
    /// failure.
    pub(crate) fn of_value(self, value: f64) -> f64 {
        let value = (self.sign * value).clamp(self.best - TOLERATED * self.spread, self.best);
        if self.spread > 0.0 {
            (raw(value, self.best, self.spread) - self.mean) / self.deviation
        } else {
            0.0
        }
    }

    /// Returns the value of a target.
    pub(crate) fn value(self, target: f64) -> f64 {
        let raw = self.mean + self.deviation * target;
        self.sign * (self.best - self.spread * (libm::exp(-raw) - OFFSET))
    }
}

/// Returns the target before it is scaled.
fn raw(value: f64, best: f64, spread: f64) -> f64 {
    -libm::log((best - value) / spread + OFFSET)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::history::{History, Observation};
    use crate::place::Place;
    use crate::space::{Configuration, Domain, Parameter, Scaling, Space};

    fn targets(losses: &[f64]) -> Vec<f64> {
        scaled(losses).1
    }

    fn scaled(losses: &[f64]) -> (Target, Vec<f64>) {
        let domain = Domain::Continuous { min: 0.0, max: 1.0, scaling: Scaling::Linear };
        let space = Space::new(vec![Parameter { name: "x".to_owned(), domain }]).unwrap();
        let configuration = Configuration([("x".to_owned(), "0.5".to_owned())].into());
        let place = Place::of(&space, &configuration).unwrap();
        let mut history = History::default();
        for (trial, loss) in (0..).zip(losses) {
            let observation = Observation {
                place: place.clone(),
                best: Some(*loss),
                early: Vec::new(),
                cost: None,
                by_model: false,
            };
            history.record(trial, observation, false);
        }
        let running = BTreeMap::new();
        Target::of(&View::new(&history, &running, false)).unwrap()
    }

    /// The spread is 2, the difference between the best loss and the median.
    #[test]
    fn a_target_is_the_logarithm_of_the_distance_from_the_best_value() {
        let losses = [3.0, 1.0, 9.0, 2.0, 5.0];
        let (target, found) = scaled(&losses);
        let raw = losses.map(|loss| -libm::log((loss - 1.0) / 2.0 + OFFSET));
        let mean = raw.iter().sum::<f64>() / 5.0;
        let deviation = (raw.iter().map(|raw| (raw - mean) * (raw - mean)).sum::<f64>() / 5.0).sqrt();
        for ((raw, found), loss) in raw.iter().zip(found).zip(losses) {
            assert!((found - (raw - mean) / deviation).abs() < 1e-12, "loss {loss}: {found}");
            assert!((target.of_value(loss) - found).abs() < 1e-12, "loss {loss}");
            assert!((target.value(found) - loss).abs() < 1e-9, "loss {loss}");
        }
    }

    /// JSON has no infinite numbers and no NaN.
    #[test]
    fn equal_values_and_those_near_the_end_of_floats_have_one_target() {
        for losses in [[2.0, 2.0, 2.0], [0.0, 1e305, 1e305], [1e305, 1e305 + 1e295, 1e305 + 1e295]] {
            let (target, found) = scaled(&losses);
            assert_eq!(found, [0.0; 3], "{losses:?}");
            assert!(target.value(1.0).is_finite() && target.of_value(losses[1]) == 0.0, "{losses:?}");
        }
        assert_ne!(targets(&[0.0, 1e300, 1e300]), [0.0; 3]);
    }

    #[test]
    fn regression_a_target_separates_good_trials_although_most_are_bad() {
        let clipped = [0.1, 0.2, 0.3, 0.4, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0];
        let huge = [0.1, 0.2, 0.3, 0.4, 1e10, 2e10, 3e10, 4e10, 5e10, 6e10];
        for losses in [clipped, huge] {
            let targets = targets(&losses);
            assert!(targets[0] - targets[1] > 0.5 && targets[1] - targets[3] > 0.2, "{targets:?}");
            assert!((targets[4] - targets[9]).abs() < 1e-9, "bad trials are equally bad: {targets:?}");
        }
    }

    #[test]
    fn regression_one_huge_loss_does_not_hide_that_others_differ() {
        let targets = targets(&[0.1, 0.1, 0.1, 0.1, 0.2, 0.3, 1e10]);
        assert!(targets[3] - targets[4] > 0.2 && targets[4] - targets[5] > 0.05, "{targets:?}");
    }
}
