//! The asynchronous rung: which trials arrived, with which values, and which may continue.
//!
//! This is stopping-type ASHA (MLSys 2020, section 3.2, in the form that stops running jobs instead of pausing them).
//! A trial that arrives continues only if it is among the best `1/eta` of all trials that have arrived, itself
//! included; at least one trial may always continue. A trial that failed or diverged never continues. Each trial gets
//! one verdict, which is never revised.

use crate::ranking::{Direction, Score, better_first};

/// The arrivals at a rung, best first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rung {
    entries: Vec<(u32, Score)>,
}

/// The verdict on one arrival, with the numbers it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The rank among all arrivals so far; 0 = best.
    pub rank: u32,
    /// Arrivals so far, this one included.
    pub seen: u32,
    /// How many of them may continue: `max(1, seen / eta)`.
    pub allowed: u32,
    /// Whether this trial continues: `rank < allowed` and its value is a number.
    pub continues: bool,
}

impl Verdict {
    /// Returns the verdict on an arrival with `score`; `ahead` of the `others` that arrived before are better.
    pub fn of(ahead: usize, others: usize, eta: u32, score: Score) -> Self {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (rank, seen) = (count(ahead), count(others).saturating_add(1));
        let allowed = seen.checked_div(eta).unwrap_or(0).max(1);
        Self { rank, seen, allowed, continues: rank < allowed && score.can_continue() }
    }
}

impl Rung {
    /// Returns a rung with these arrivals (trial, score), given in any order.
    pub fn from_entries(direction: Direction, mut entries: Vec<(u32, Score)>) -> Self {
        entries.sort_by(|a, b| better_first(direction, (a.1, a.0), (b.1, b.0)));
        Self { entries }
    }

    /// Returns the arrivals (trial, score), best first.
    pub fn entries(&self) -> &[(u32, Score)] {
        &self.entries
    }

    /// Returns the verdict on `trial` if it arrived now. The caller asks once per trial.
    pub fn judge(&self, direction: Direction, eta: u32, trial: u32, score: Score) -> Verdict {
        Verdict::of(self.position(direction, trial, score), self.entries.len(), eta, score)
    }

    /// Records the arrival of `trial`.
    pub fn arrive(&mut self, direction: Direction, trial: u32, score: Score) {
        let index = self.position(direction, trial, score);
        self.entries.insert(index, (trial, score));
    }

    fn position(&self, direction: Direction, trial: u32, score: Score) -> usize {
        self.entries
            .partition_point(|entry| better_first(direction, (entry.1, entry.0), (score, trial)).is_lt())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    fn arrive(rung: &mut Rung, direction: Direction, eta: u32, trial: u32, score: Score) -> Verdict {
        let verdict = rung.judge(direction, eta, trial, score);
        rung.arrive(direction, trial, score);
        verdict
    }

    #[test]
    fn the_first_arrival_continues_and_a_worse_second_stops() {
        let mut rung = Rung::default();
        assert!(arrive(&mut rung, Direction::Maximize, 3, 0, Score::Value(0.5)).continues);
        let second = arrive(&mut rung, Direction::Maximize, 3, 1, Score::Value(0.4));
        assert_eq!(second, Verdict { rank: 1, seen: 2, allowed: 1, continues: false });
    }

    #[test]
    fn a_diverged_trial_never_continues_even_alone() {
        let mut rung = Rung::default();
        assert!(!arrive(&mut rung, Direction::Minimize, 3, 0, Score::of(f64::NAN)).continues);
        assert!(!arrive(&mut rung, Direction::Minimize, 3, 1, Score::Failed).continues);
        assert!(arrive(&mut rung, Direction::Minimize, 3, 2, Score::Value(9.0)).continues);
    }

    #[test]
    fn a_tie_goes_to_the_trial_with_the_lower_number() {
        let mut rung = Rung::default();
        arrive(&mut rung, Direction::Maximize, 2, 5, Score::Value(0.5));
        assert!(!arrive(&mut rung, Direction::Maximize, 2, 6, Score::Value(0.5)).continues);
        assert!(arrive(&mut rung, Direction::Maximize, 2, 4, Score::Value(0.5)).continues);
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        /// A naive count over a plain list gives the same rank and verdict, in any order of arrival.
        #[test]
        fn verdict_equals_a_naive_count(values in prop::collection::vec(-5_i32..5, 1..60), eta in 2_u32..5) {
            let mut rung = Rung::default();
            let mut seen: Vec<(i32, u32)> = Vec::new();
            for (trial, value) in values.iter().enumerate() {
                let trial = u32::try_from(trial).unwrap();
                let verdict = arrive(&mut rung, Direction::Maximize, eta, trial, Score::Value(f64::from(*value)));
                let ahead = seen.iter().filter(|other| other.0 >= *value).count();
                seen.push((*value, trial));
                let allowed = (seen.len() / usize::try_from(eta).unwrap()).max(1);
                prop_assert_eq!(usize::try_from(verdict.rank).unwrap(), ahead);
                prop_assert_eq!(verdict.continues, ahead < allowed);
            }
            let stored = Rung::from_entries(Direction::Maximize, rung.entries().iter().rev().copied().collect());
            prop_assert_eq!(stored, rung);
        }
    }
}
