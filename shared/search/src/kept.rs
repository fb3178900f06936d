//! Which trials are kept where there is no room for all of them.

use crate::seed::child;

/// The most trials that a history keeps.
pub const OBSERVATIONS_MAX: usize = 256;

/// Returns a value for which more is better.
pub(crate) fn oriented(value: Option<f64>, maximize: bool) -> f64 {
    value.map_or(f64::NEG_INFINITY, |value| if maximize { value } else { -value })
}

/// Returns the indices of at most `most` trials, in order: those with the best values, and of the others those with the
/// greatest hash of their number.
pub(crate) fn sample(trials: &[u32], values: &[f64], most: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..trials.len().min(values.len())).collect();
    if order.len() > most {
        let value = |index: &usize| values.get(*index).copied().unwrap_or(f64::NEG_INFINITY);
        order.sort_by(|a, b| value(b).total_cmp(&value(a)).then(a.cmp(b)));
        let hash = |index: &usize| child(0, "kept", trials.get(*index).copied().map_or(0, u64::from));
        let others = order.get_mut(most / 2..).unwrap_or_default();
        others.sort_by_key(|index| (std::cmp::Reverse(hash(index)), *index));
        order.truncate(most);
        order.sort_unstable();
    }
    order
}
