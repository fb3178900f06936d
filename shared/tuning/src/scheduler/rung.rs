//! A rung: which trials arrived with which values, best first, and which of them wait or continued. Decides nothing.

use hyperband::ranking::{Direction, Score, better_first};
use hyperband::rung::{Rule, Verdict};
use serde::{Deserialize, Serialize};

use crate::unit::ids::{TrialId, count};
use crate::unit::scan::count_entry;

/// A trial and its value at a rung; `None` = it failed, or the value is not a number.
pub type Arrival = (TrialId, Option<f64>);

/// A rung of a cohort.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Rung {
    /// The arrivals, best first.
    pub arrivals: Vec<Arrival>,
    /// How many of the arrivals continued or were promoted.
    pub continued: u32,
    /// The arrivals that wait to be promoted, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Arrival>,
}

impl Rung {
    /// Returns the number of arrivals.
    pub fn arrived(&self) -> u32 {
        count(self.arrivals.len())
    }

    /// Returns the rank of an arrival: how many others are better.
    pub fn rank(&self, direction: Direction, arrival: Arrival) -> u32 {
        count(position(&self.arrivals, direction, arrival))
    }

    /// Returns the best and the worst of the trials that wait.
    pub fn best_and_worst_waiting(&self) -> Option<(Arrival, Arrival)> {
        self.waiting.first().copied().zip(self.waiting.last().copied())
    }

    /// Records an arrival.
    pub fn arrive(&mut self, direction: Direction, arrival: Arrival) {
        insert(&mut self.arrivals, direction, arrival);
    }

    pub(crate) fn wait(&mut self, direction: Direction, arrival: Arrival) {
        insert(&mut self.waiting, direction, arrival);
    }

    /// Records that a trial no longer waits.
    pub(crate) fn leave(&mut self, trial: TrialId) {
        let is_it = |(other, _): &Arrival| {
            count_entry();
            *other == trial
        };
        // A trial that is promoted is the first, and one that is ruled out is the last.
        let last = self.waiting.len().saturating_sub(1);
        let index = self.waiting.last().filter(|entry| is_it(entry)).map(|_| last);
        if let Some(index) = index.or_else(|| self.waiting.iter().position(is_it)) {
            self.waiting.remove(index);
        }
    }

    /// Ranks an arrival that can never be promoted behind all others, as if it had failed.
    pub(crate) fn forfeit(&mut self, direction: Direction, trial: TrialId) {
        self.arrivals.retain(|(other, _)| *other != trial);
        self.arrive(direction, (trial, None));
    }

    pub(crate) fn add_continued(&mut self, more: u32) {
        self.continued = self.continued.saturating_add(more);
    }
}

/// Returns the verdict on a trial if it arrived now, where the arrivals of all `rungs` are its rivals.
pub fn judge<'a>(
    rungs: impl IntoIterator<Item = &'a Rung>,
    direction: Direction,
    rule: Rule,
    arrival: Arrival,
) -> Verdict {
    let arrival = rival(rule, arrival);
    let (rank, others) = rungs.into_iter().fold((0_u32, 0_u32), |(rank, others), rung| {
        (rank.saturating_add(rung.rank(direction, arrival)), others.saturating_add(rung.arrived()))
    });
    Verdict::of(rank, others, rule, score(arrival.1))
}

/// Returns the arrival as the rule ranks it. Equal trials rank in the order of their numbers, except with the median
/// rule: an equal average is not better.
pub(crate) fn rival(rule: Rule, (trial, value): Arrival) -> Arrival {
    match rule {
        Rule::TopShare { .. } => (trial, value),
        Rule::Median => (TrialId(0), value),
    }
}

fn score(value: Option<f64>) -> Score {
    value.map_or(Score::NotFinite, Score::of)
}

fn position(list: &[Arrival], direction: Direction, (trial, value): Arrival) -> usize {
    let new = (score(value), trial.0);
    list.partition_point(|(other, value)| {
        count_entry();
        better_first(direction, (score(*value), other.0), new).is_lt()
    })
}

fn insert(list: &mut Vec<Arrival>, direction: Direction, arrival: Arrival) {
    list.insert(position(list, direction, arrival), arrival);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    /// Judges and records the arrival of `trial`.
    fn arrive(rung: &mut Rung, direction: Direction, eta: u32, trial: u32, value: f64) -> Verdict {
        let arrival = (TrialId(trial), Some(value));
        let verdict = judge([&*rung], direction, Rule::TopShare { eta_percent: 100 * eta }, arrival);
        rung.arrive(direction, arrival);
        verdict
    }

    #[test]
    fn the_first_arrival_continues_and_a_worse_second_stops() {
        let mut rung = Rung::default();
        assert!(arrive(&mut rung, Direction::Maximize, 3, 0, 0.5).continues);
        let second = arrive(&mut rung, Direction::Maximize, 3, 1, 0.4);
        assert_eq!(second, Verdict { rank: 1, seen: 2, allowed: 1, continues: false });
    }

    #[test]
    fn a_diverged_trial_never_continues_even_alone() {
        let mut rung = Rung::default();
        assert!(!arrive(&mut rung, Direction::Minimize, 3, 0, f64::NAN).continues);
        assert!(
            !judge([&rung], Direction::Minimize, Rule::TopShare { eta_percent: 300 }, (TrialId(1), None))
                .continues
        );
        rung.arrive(Direction::Minimize, (TrialId(1), None));
        assert!(arrive(&mut rung, Direction::Minimize, 3, 2, 9.0).continues);
    }

    #[test]
    fn a_tie_goes_to_the_trial_with_the_lower_number() {
        let mut rung = Rung::default();
        arrive(&mut rung, Direction::Maximize, 2, 5, 0.5);
        assert!(!arrive(&mut rung, Direction::Maximize, 2, 6, 0.5).continues);
        assert!(arrive(&mut rung, Direction::Maximize, 2, 4, 0.5).continues);
    }

    #[test]
    fn the_best_and_the_worst_of_the_waiting_trials_are_known() {
        let mut rung = Rung::default();
        assert_eq!(rung.best_and_worst_waiting(), None);
        for (trial, value) in (0..).map(TrialId).zip([Some(0.5), None, Some(0.7)]) {
            rung.wait(Direction::Maximize, (trial, value));
        }
        let (best, worst) = ((TrialId(2), Some(0.7)), (TrialId(1), None));
        assert_eq!(rung.best_and_worst_waiting(), Some((best, worst)));
        rung.leave(TrialId(2));
        assert_eq!(rung.best_and_worst_waiting(), Some(((TrialId(0), Some(0.5)), worst)));
    }

    #[test]
    fn the_arrivals_of_all_rungs_are_rivals() {
        let (mut low, mut high) = (Rung::default(), Rung::default());
        arrive(&mut low, Direction::Maximize, 3, 0, 0.5);
        arrive(&mut high, Direction::Maximize, 3, 1, 0.7);
        let verdict = judge(
            [&low, &high],
            Direction::Maximize,
            Rule::TopShare { eta_percent: 300 },
            (TrialId(2), Some(0.6)),
        );
        assert_eq!(verdict, Verdict { rank: 1, seen: 3, allowed: 1, continues: false });
    }

    #[test]
    fn an_equal_average_is_not_better() {
        let mut rung = Rung::default();
        (0..8).for_each(|trial| rung.arrive(Direction::Maximize, (TrialId(trial), Some(0.5))));
        let of = |value| judge([&rung], Direction::Maximize, Rule::Median, (TrialId(8), Some(value)));
        assert_eq!(of(0.5), Verdict { rank: 0, seen: 9, allowed: 5, continues: true });
        assert_eq!(of(0.4), Verdict { rank: 8, seen: 9, allowed: 5, continues: false });
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        /// A naive count over a plain list gives the same rank and verdict, in any order of arrival.
        #[test]
        fn verdict_equals_a_naive_count(values in prop::collection::vec(-5_i32..5, 1..60), eta in 2_u32..5) {
            let mut rung = Rung::default();
            let mut seen: Vec<i32> = Vec::new();
            for (trial, value) in (0..).zip(&values) {
                let verdict = arrive(&mut rung, Direction::Maximize, eta, trial, f64::from(*value));
                let ahead = seen.iter().filter(|other| *other >= value).count();
                seen.push(*value);
                let allowed = (seen.len() / usize::try_from(eta).unwrap()).max(1);
                prop_assert_eq!(usize::try_from(verdict.rank).unwrap(), ahead);
                prop_assert_eq!(verdict.continues, ahead < allowed);
            }
        }
    }
}
