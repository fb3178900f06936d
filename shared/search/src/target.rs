//! The target of the model: the values of trials on a scale that separates the best ones.
//!
//! A value becomes `-ln((best - value) / spread + 0.05)`, where the spread is the difference between the best value and
//! the median. The logarithm magnifies differences between good trials and shrinks those between bad ones. A value far
//! below the median counts as less far, and so does a trial that ended without a value. The result has mean 0 and
//! variance 1.

use crate::history::View;

/// Keeps the logarithm finite at the best value.
const OFFSET: f64 = 0.05;
/// How many spreads below the median the worst target is.
const WORST: f64 = 4.5;
/// A spread or value times this is finite, or all targets are equal. So an expectation is finite, too: JSON has no NaN.
const ROOM: f64 = 1e6;

/// The scale of the target.
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
        sorted.sort_unstable_by(f64::total_cmp);
        let (worst, median, best) = (*sorted.first()?, *sorted.get(sorted.len() / 2)?, *sorted.last()?);
        // Most trials may have the best value.
        let spread = if best > median { best - median } else { best - worst };
        let flat = Self { sign, best, spread: 0.0, mean: 0.0, deviation: 1.0 };
        let has_room = (spread * ROOM).is_finite() && (best * ROOM).is_finite();
        if !(spread > 0.0 && has_room) {
            return Some((flat, vec![0.0; values.len()]));
        }
        let least = best.min(median) - WORST * spread;
        let raw = |value: &Option<f64>| {
            let value = value.unwrap_or(least).max(least);
            -libm::log((best - value) / spread + OFFSET)
        };
        let raw: Vec<f64> = values.iter().map(raw).collect();
        let count = u32::try_from(raw.len()).map_or(f64::INFINITY, f64::from);
        let mean = raw.iter().fold(0.0, |sum, value| sum + value) / count;
        let variance = raw.iter().fold(0.0, |sum, value| sum + (value - mean) * (value - mean)) / count;
        let deviation = if variance > 0.0 { variance.sqrt() } else { 1.0 };
        let scaled = raw.iter().map(|value| (value - mean) / deviation).collect();
        Some((Self { spread, mean, deviation, ..flat }, scaled))
    }

    /// Returns the objective value of a target.
    pub(crate) fn value(self, target: f64) -> f64 {
        let raw = self.mean + self.deviation * target;
        self.sign * (self.best - self.spread * (libm::exp(-raw) - OFFSET))
    }
}
