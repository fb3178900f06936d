//! Cohorts: the trials of one bracket and round that compete for promotion.

use tuning::definition::Scheduling::{Asynchronous, Synchronous};
use tuning::invariant::{broken, forbids};
use tuning::log::fact::JobEnd::AlgorithmError;
use tuning::log::ruling::{Ruling, SearchRuling, Verdict};
use tuning::scheduler::{Cohort, Rung};
use tuning::unit::epochs::Epochs;

use crate::support::build::*;
use crate::support::run::Run;
use crate::waits::{begun, done, on, two_rungs};

#[test]
fn each_promotion_reduces_the_needed_jobs_by_one() {
    let definition = promoting(hyperband(), Asynchronous);
    let mut cohort = Cohort { joined: 9, ..Cohort::new(&definition, cohort(0, 0)) };
    assert_eq!(cohort.jobs_needed(3, 0), 3 + 1);
    let lowest = RungId(0);
    assert_eq!(cohort.jobs_needed_after(3, lowest), 2 + 1);
    // A promotion beyond the planned three needs no further job.
    let arrivals = (0..9).map(|trial| (TrialId(trial), Some(0.5))).collect();
    cohort.rungs[0] = Rung { arrivals, continued: 3, waiting: Vec::new() };
    assert_eq!(cohort.jobs_needed_after(3, lowest), 1);
    cohort.rungs[1].continued = 1;
    assert_eq!(cohort.jobs_needed_after(3, lowest), 0);
}

#[test]
fn a_cohort_is_identified_by_bracket_and_round() {
    let mut run = begun(&two_rungs(100, Synchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    // Trial 4 starts the second round of bracket 0.
    let found = |bracket, round| run.state.search.cohort(cohort(bracket, round)).map(|found| found.joined);
    assert_eq!(found(0, 0), Some(2));
    assert_eq!(found(1, 0), Some(2));
    assert_eq!(found(0, 1), Some(1));
    assert_eq!(found(1, 1), None);
}

#[test]
fn rung_totals_include_rounds_that_are_over() {
    let totals = |run: &Run, bracket| run.state.search.rung_totals(BracketId(bracket), RungId(0));
    let mut run = begun(&two_rungs(100, Synchronous));
    assert_eq!(totals(&run, 0), (0, 0));
    run.take(&done(10, on(0, 0), 4, 0.5));
    assert_eq!(totals(&run, 0), (1, 0));
    run.take(&done(15, on(4, 0), 4, 0.7));
    run.take(&done(20, on(2, 0), 4, 0.6));
    assert_eq!(totals(&run, 0), (3, 1), "totals of both rounds");
    assert_eq!(totals(&run, 1), (0, 0));
    run.take(&done(30, on(2, 1), 9, 0.8));
    assert!(run.state.search.cohort(cohort(0, 0)).is_none(), "the first round is over");
    assert_eq!(totals(&run, 0), (3, 1));
}

#[test]
fn a_round_stays_open_while_further_trials_may_join() {
    let mut definition = two_rungs(100, Synchronous);
    definition.limits.max_parallel = 1;
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    run.take(&[described(10, on(0, 0), AlgorithmError, 10)]);
    let cohort = run.state.search.cohort(cohort(0, 0)).unwrap();
    assert_eq!((cohort.joined, &cohort.rungs[0].arrivals), (1, &vec![(TrialId(0), None)]));
}

#[test]
fn p6_a_synchronous_rung_with_too_many_promotions_breaks_an_invariant() {
    let broken_by = |scheduling, promoted| {
        let mut run = begun(&two_rungs(100, scheduling));
        run.state.search.cohorts[0].rungs[0].continued = promoted;
        broken(&run.definition, &run.state)
    };
    assert_eq!(broken_by(Synchronous, 1), None);
    let expected = "rung 0 of bracket 0, round 0, promoted too many trials";
    assert_eq!(broken_by(Synchronous, 2).as_deref(), Some(expected));
    assert_eq!(broken_by(Asynchronous, 2), None, "an asynchronous rung may promote a better late arrival");
}

#[test]
fn p6_a_promotion_above_the_limit_of_a_rung_or_of_a_trial_that_does_not_wait_is_forbidden() {
    let mut run = begun(&two_rungs(100, Synchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    let promoted_of = |allowed, trial, rung, value, rank, continues| {
        Ruling::Search(SearchRuling::TrialPromoted {
            reached_target: false,
            trial: TrialId(trial),
            bracket: BracketId(0),
            round: 0,
            rung: RungId(rung),
            level: Epochs(9),
            value,
            verdict: Verdict { rank, seen: 2, allowed, continues },
        })
    };
    let promoted = |trial, rung, value, rank, continues| promoted_of(1, trial, rung, value, rank, continues);
    let of_none = promoted_of(0, 0, 0, Some(0.5), 0, true);
    assert!(forbids(&run.definition, &run.state, &of_none).is_some(), "rank 0 exceeds no promotion");
    assert_eq!(forbids(&run.definition, &run.state, &promoted(0, 0, Some(0.5), 0, true)), None);
    assert!(
        forbids(&run.definition, &run.state, &promoted(0, 0, Some(0.5), 1, true)).is_some(),
        "rank 1 exceeds the one allowed promotion"
    );
    let other = promoted(0, 0, Some(0.6), 0, true);
    assert!(forbids(&run.definition, &run.state, &other).is_some(), "the trial arrived with another value");
    assert!(
        forbids(&run.definition, &run.state, &promoted(0, 0, Some(0.5), 0, false)).is_some(),
        "the verdict does not promote"
    );
    assert!(
        forbids(&run.definition, &run.state, &promoted(0, 0, None, 0, true)).is_some(),
        "the value is not a number"
    );
    assert!(
        forbids(&run.definition, &run.state, &promoted(0, 1, Some(0.5), 0, true)).is_some(),
        "the trial waits at a lower rung"
    );
    assert!(
        forbids(&run.definition, &run.state, &promoted(2, 0, Some(0.5), 0, true)).is_some(),
        "the trial does not wait"
    );
}
