//! The one total order of results. Floats are compared here and nowhere else.
//!
//! `failed < not finite < worst number < best number`; equal numbers rank by trial, the earlier first, so that the order
//! is the same on every machine and in every replay.

use std::cmp::Ordering;

/// Which way the objective is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// More is better.
    Maximize,
    /// Less is better.
    Minimize,
}

/// What a trial showed at some resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Score {
    /// It ended without a value.
    Failed,
    /// It reported NaN or an infinity: it diverged.
    NotFinite,
    /// A finite objective value, as reported (not sign-changed).
    Value(f64),
}

impl Score {
    /// The score of a reported value.
    pub fn of(value: f64) -> Self {
        if value.is_finite() { Self::Value(value) } else { Self::NotFinite }
    }

    /// Whether a trial with this score may ever be promoted.
    pub fn may_continue(self) -> bool {
        matches!(self, Self::Value(_))
    }
}

/// Orders `a` against `b`, better first ([`Ordering::Less`] = a is better). Total; trials break ties.
pub fn better_first(direction: Direction, a: (Score, u32), b: (Score, u32)) -> Ordering {
    let class = |score: Score| match score {
        Score::Value(_) => 0_u8,
        Score::NotFinite => 1,
        Score::Failed => 2,
    };
    let by_value = match (a.0, b.0) {
        (Score::Value(x), Score::Value(y)) => match direction {
            // Both are finite, so `partial_cmp` has an answer; it makes -0.0 and 0.0 equal, as they are to a user.
            Direction::Maximize => y.partial_cmp(&x).unwrap_or(Ordering::Equal),
            Direction::Minimize => x.partial_cmp(&y).unwrap_or(Ordering::Equal),
        },
        (Score::Value(_) | Score::NotFinite | Score::Failed, _) => class(a.0).cmp(&class(b.0)),
    };
    by_value.then(a.1.cmp(&b.1))
}

/// Whether `candidate` is strictly better than `incumbent` (both finite). NaN never is.
pub fn improves(direction: Direction, candidate: f64, incumbent: f64) -> bool {
    match direction {
        Direction::Maximize => candidate > incumbent,
        Direction::Minimize => candidate < incumbent,
    }
}

/// Whether `value` reaches `target` (at least as good).
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
    fn order_is_value_then_not_finite_then_failed_then_trial() {
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
    fn zero_and_minus_zero_tie() {
        let order = better_first(Direction::Maximize, (Score::Value(-0.0), 1), (Score::Value(0.0), 2));
        assert_eq!(order, Ordering::Less);
    }

    #[test]
    fn only_a_strictly_better_value_improves() {
        for (direction, better, worse) in [(Direction::Maximize, 0.6, 0.4), (Direction::Minimize, 0.4, 0.6)] {
            assert!(improves(direction, better, 0.5), "{direction:?}");
            assert!(!improves(direction, 0.5, 0.5), "an equal value is no improvement");
            assert!(!improves(direction, worse, 0.5), "{direction:?}");
            assert!(!improves(direction, f64::NAN, 0.5), "{direction:?}");
        }
    }

    #[test]
    fn a_target_is_reached_by_a_value_at_least_as_good() {
        for (direction, better, worse) in [(Direction::Maximize, 0.6, 0.4), (Direction::Minimize, 0.4, 0.6)] {
            assert!(reaches(direction, better, 0.5), "{direction:?}");
            assert!(reaches(direction, 0.5, 0.5), "the target itself reaches it");
            assert!(!reaches(direction, worse, 0.5), "{direction:?}");
            assert!(!reaches(direction, f64::NAN, 0.5), "{direction:?}");
        }
    }
}
