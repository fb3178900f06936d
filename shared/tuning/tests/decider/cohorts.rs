//! Where the trials stand that are promoted among each other: found by bracket and round, counted, and put away when over.

use tuning::definition::Scheduling::{Asynchronous, Synchronous};
use tuning::fact::JobEnd::AlgorithmError;
use tuning::invariant::{broken, forbids};
use tuning::ruling::{Ruling, Verdict};
use tuning::state::{Cohort, RungState};

use crate::support::build::*;
use crate::support::run::Run;
use crate::waits::{begun, done, on, two_rungs};

#[test]
fn one_more_promotion_from_a_rung_is_one_job_less_that_is_owed() {
    let definition = promoting(hyperband(), Asynchronous);
    let mut cohort = Cohort { joined: 9, ..Cohort::new(&definition, 0, 0) };
    assert_eq!(cohort.jobs_owed(3, 0), 3 + 1);
    assert_eq!(cohort.jobs_owed_after(3, 0), 2 + 1);
    // A fourth one besides the planned three owes nothing of its own.
    let arrivals = (0..9).map(|trial| (trial, Some(0.5))).collect();
    cohort.rungs[0] = RungState { arrivals, went_on: 3 };
    assert_eq!(cohort.jobs_owed_after(3, 0), 1);
    cohort.rungs[1].went_on = 1;
    assert_eq!(cohort.jobs_owed_after(3, 0), 0);
}

#[test]
fn a_cohort_is_found_by_its_bracket_and_its_round() {
    let mut run = begun(&two_rungs(100, Synchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    // Trial 4 begins the second round of bracket 0.
    let found = |bracket, round| run.state.cohort(bracket, round).map(|c| (c.bracket, c.round, c.joined));
    assert_eq!(found(0, 0), Some((0, 0, 2)));
    assert_eq!(found(1, 0), Some((1, 0, 2)));
    assert_eq!(found(0, 1), Some((0, 1, 1)));
    assert_eq!(found(1, 1), None);
}

#[test]
fn arrivals_of_all_rounds_are_counted_also_of_those_that_are_over() {
    let mut run = begun(&two_rungs(100, Synchronous));
    assert_eq!(run.state.rung_totals(0, 0), (0, 0));
    run.take(&done(10, on(0, 0), 4, 0.5));
    assert_eq!(run.state.rung_totals(0, 0), (1, 0));
    run.take(&done(15, on(4, 0), 4, 0.7));
    run.take(&done(20, on(2, 0), 4, 0.6));
    assert_eq!(run.state.rung_totals(0, 0), (3, 1), "of two rounds");
    assert_eq!(run.state.rung_totals(1, 0), (0, 0));
    run.take(&done(30, on(2, 1), 9, 0.8));
    assert!(run.state.cohort(0, 0).is_none(), "the first round is over");
    assert_eq!(run.state.rung_totals(0, 0), (3, 1));
}

#[test]
fn a_round_that_others_may_still_join_is_not_over_when_all_who_joined_are() {
    let mut definition = two_rungs(100, Synchronous);
    definition.limits.max_parallel = 1;
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    run.take(&[described(10, on(0, 0), AlgorithmError, 10)]);
    let cohort = run.state.cohort(0, 0).unwrap();
    assert_eq!((cohort.joined, &cohort.rungs[0].arrivals), (1, &vec![(0, None)]));
}

#[test]
fn p6_a_synchronous_rung_that_promoted_more_than_it_may_is_a_broken_promise() {
    let spoilt = |scheduling, went_on| {
        let mut run = begun(&two_rungs(100, scheduling));
        run.state.cohorts[0].rungs[0].went_on = went_on;
        broken(&run.definition, &run.state)
    };
    assert_eq!(spoilt(Synchronous, 1), None);
    let said = "rung 0 of bracket 0, round 0, promoted too many";
    assert_eq!(spoilt(Synchronous, 2).as_deref(), Some(said));
    assert_eq!(spoilt(Asynchronous, 2), None, "one that comes late may be better");
}

#[test]
fn p6_a_promotion_beyond_what_a_rung_allows_or_of_one_that_does_not_wait_is_forbidden() {
    let mut run = begun(&two_rungs(100, Synchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    let promoted = |trial, rung, value, rank, goes_on| Ruling::TrialPromoted {
        trial,
        bracket: 0,
        round: 0,
        rung,
        level: 9,
        value,
        verdict: Verdict { rank, seen: 2, allowed: 1, goes_on },
    };
    assert_eq!(forbids(&run.state, &promoted(0, 0, Some(0.5), 0, true)), None);
    assert!(forbids(&run.state, &promoted(0, 0, Some(0.5), 1, true)).is_some(), "the second of one");
    assert!(forbids(&run.state, &promoted(0, 0, Some(0.5), 0, false)).is_some(), "it does not go on");
    assert!(forbids(&run.state, &promoted(0, 0, None, 0, true)).is_some(), "not a number");
    assert!(forbids(&run.state, &promoted(0, 1, Some(0.5), 0, true)).is_some(), "it waits below");
    assert!(forbids(&run.state, &promoted(2, 0, Some(0.5), 0, true)).is_some(), "it does not wait");
}
