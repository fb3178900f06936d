//! The total order of results. This is the only module that compares floats.
//!
//! `failed < not finite < worst number < best number`. Equal numbers rank by trial number, the lower first, so the
//! order is the same on every machine and in every replay.

use std::cmp::Ordering;

/// The direction of the objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// More is better.
    Maximize,
    /// Less is better.
    Minimize,
}

/// The result of a trial at some resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Score {
    /// The trial ended without a value.
    Failed,
    /// The trial reported NaN or an infinity: it diverged.
    NotFinite,
    /// A finite objective value, as reported (the sign is not changed).
    Value(f64),
}

impl Score {
    /// Returns the score of a reported value.
    pub fn of(value: f64) -> Self {
        if value.is_finite() { Self::Value(value) } else { Self::NotFinite }
    }

    /// Returns whether a trial with this score may ever be promoted.
    pub fn can_continue(self) -> bool {
        matches!(self, Self::Value(_))
    }
}

/// Compares `a` with `b`, better first ([`Ordering::Less`] = `a` is better). The order is total; trial numbers break
/// ties.
pub fn better_first(direction: Direction, a: (Score, u32), b: (Score, u32)) -> Ordering {
    let class = |score: Score| match score {
        Score::Value(_) => 0_u8,
        Score::NotFinite => 1,
        Score::Failed => 2,
    };
    let by_value = match (a.0, b.0) {
        (Score::Value(x), Score::Value(y)) => match direction {
            // Both are finite, so `partial_cmp` returns an order. It makes -0.0 and 0.0 equal, as users expect.
            Direction::Maximize => y.partial_cmp(&x).unwrap_or(Ordering::Equal),
            Direction::Minimize => x.partial_cmp(&y).unwrap_or(Ordering::Equal),
        },
        (Score::Value(_) | Score::NotFinite | Score::Failed, _) => class(a.0).cmp(&class(b.0)),
    };
    by_value.then(a.1.cmp(&b.1))
}

/// Returns whether two values differ by at most `tolerance`. NaN differs from all values.
///
/// ```
/// use hyperband::ranking::is_within;
/// assert!(is_within(0.75, 0.5, 0.25) && is_within(0.5, 0.75, 0.25));
/// assert!(!is_within(0.75, 0.5, 0.125) && !is_within(f64::NAN, 0.5, 1.0));
/// ```
#[expect(clippy::float_arithmetic, reason = "one subtraction is rounded alike on every machine")]
pub fn is_within(value: f64, other: f64, tolerance: f64) -> bool {
    (value - other).abs() <= tolerance
}

/// Returns whether `candidate` is strictly better than `incumbent`. NaN is never better.
pub fn improves(direction: Direction, candidate: f64, incumbent: f64) -> bool {
    match direction {
        Direction::Maximize => candidate > incumbent,
        Direction::Minimize => candidate < incumbent,
    }
}

/// Returns how many pairs of trials have different later values, and by how many more of them the earlier values order
/// alike than oppositely. Each trial has an earlier and a later value.
///
/// ```
/// use hyperband::ranking::order_alike;
/// assert_eq!(order_alike(&[(0.1, 1.0), (0.2, 2.0), (0.3, 3.0)]), (3, 3));
/// assert_eq!(order_alike(&[(0.3, 1.0), (0.2, 2.0), (0.1, 3.0)]), (3, -3));
/// assert_eq!(order_alike(&[(0.1, 1.0), (0.1, 2.0), (0.2, 2.0)]), (2, 1)); // a tie before, and one later
/// ```
pub fn order_alike(trials: &[(f64, f64)]) -> (i64, i64) {
    let (mut pairs, mut balance) = (0_i64, 0_i64);
    for (index, (earlier, later)) in trials.iter().enumerate() {
        for (other_earlier, other_later) in trials.iter().take(index) {
            let (before, after) = (earlier.partial_cmp(other_earlier), later.partial_cmp(other_later));
            let Some(after) = after.filter(|after| after.is_ne()) else { continue };
            pairs = pairs.saturating_add(1);
            match before {
                Some(before) if before == after => balance = balance.saturating_add(1),
                Some(before) if before == after.reverse() => balance = balance.saturating_sub(1),
                Some(_) | None => {}
            }
        }
    }
    (pairs, balance)
}

/// Returns whether `value` is at least as good as `target`.
pub fn reaches(direction: Direction, value: f64, target: f64) -> bool {
    match direction {
        Direction::Maximize => value >= target,
        Direction::Minimize => value <= target,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rank_before_non_finite_values_and_failures() {
        let mut results = [
            (Score::Failed, 0),
            (Score::of(f64::NAN), 1),
            (Score::of(f64::NEG_INFINITY), 2),
            (Score::Value(0.5), 4),
            (Score::Value(0.5), 3),
            (Score::Value(0.7), 5),
        ];
        results.sort_by(|a, b| better_first(Direction::Maximize, *a, *b));
        let trials: Vec<u32> = results.iter().map(|r| r.1).collect();
        assert_eq!(trials, [5, 3, 4, 1, 2, 0]);
        results.sort_by(|a, b| better_first(Direction::Minimize, *a, *b));
        let trials: Vec<u32> = results.iter().map(|r| r.1).collect();
        assert_eq!(trials, [3, 4, 5, 1, 2, 0]);
    }

    #[test]
    fn zero_and_negative_zero_tie() {
        let order = better_first(Direction::Maximize, (Score::Value(-0.0), 1), (Score::Value(0.0), 2));
        assert_eq!(order, Ordering::Less);
    }

    #[test]
    fn only_a_strictly_better_value_improves() {
        for (direction, better, worse) in [(Direction::Maximize, 0.6, 0.4), (Direction::Minimize, 0.4, 0.6)] {
            assert!(improves(direction, better, 0.5), "{direction:?}");
            assert!(!improves(direction, 0.5, 0.5), "an equal value does not improve");
            assert!(!improves(direction, worse, 0.5), "{direction:?}");
            assert!(!improves(direction, f64::NAN, 0.5), "{direction:?}");
        }
    }

    #[test]
    fn a_target_is_reached_by_a_value_at_least_as_good() {
        for (direction, better, worse) in [(Direction::Maximize, 0.6, 0.4), (Direction::Minimize, 0.4, 0.6)] {
            assert!(reaches(direction, better, 0.5), "{direction:?}");
            assert!(reaches(direction, 0.5, 0.5), "a value equal to the target reaches it");
            assert!(!reaches(direction, worse, 0.5), "{direction:?}");
            assert!(!reaches(direction, f64::NAN, 0.5), "{direction:?}");
        }
    }
}
