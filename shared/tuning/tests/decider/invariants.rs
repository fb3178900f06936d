//! The guard behind the promises: a state that breaks one is named, a ruling that would break one is not made, and the tuning
//! is stopped for it. No history leads there, so the tests corrupt a state by hand.

use tuning::fact::JobEnd::{Completed, Stopped};
use tuning::invariant::{broken, forbids};
use tuning::money::MicroUsd;
use tuning::ruling::{EndReason, Ruling, Verdict};
use tuning::state::{State, Status};
use tuning::step::advance;

use crate::support::build::*;
use crate::support::render::render;
use crate::support::run::Run;

/// Two jobs run under a cap of three.
fn running() -> Run {
    let mut run = Run::new(&capped(jobs(9, 2), 3));
    run.take(&[submitted()]);
    assert_eq!(broken(&run.definition, &run.state), None);
    run
}

#[track_caller]
fn check_broken(spoil: impl FnOnce(&mut State), words: &str) {
    let mut run = running();
    spoil(&mut run.state);
    let message = broken(&run.definition, &run.state).expect("a broken promise");
    assert!(message.contains(words), "{message}");
}

/// "P1 spent + reserved <= cap at every step."
#[test]
fn p1_books_above_the_cap_are_a_broken_promise_unless_the_service_overran() {
    check_broken(|state| state.ledger.spent = MicroUsd(WORST_CASE + 1), "is above the cap");
    let mut run = running();
    run.state.ledger.spent = MicroUsd(WORST_CASE);
    assert_eq!(broken(&run.definition, &run.state), None, "all of the cap may be used");
    run.state.ledger.spent = MicroUsd(WORST_CASE + 1);
    run.state.ledger.overrun = true;
    assert_eq!(broken(&run.definition, &run.state), None, "the service's breach, told elsewhere");
}

#[test]
fn reservations_that_are_not_those_of_open_jobs_are_a_broken_promise() {
    check_broken(
        |state| state.ledger.reserved = MicroUsd(WORST_CASE),
        "reservations of open jobs and kept instances are",
    );
    // A closed job has none.
    check_broken(
        |state| state.trials.get_mut(&0).unwrap().job.as_mut().unwrap().never_started = true,
        "reservations of open jobs and kept instances are",
    );
}

#[test]
fn more_jobs_at_once_than_allowed_are_a_broken_promise() {
    let mut run = running();
    run.definition.limits.max_parallel = 1;
    assert_eq!(broken(&run.definition, &run.state).as_deref(), Some("2 jobs run at once"));
}

#[test]
fn more_jobs_launched_than_allowed_are_a_broken_promise() {
    check_broken(|state| state.launched = 10, "10 jobs were launched");
    let mut run = running();
    run.state.launched = 9;
    assert_eq!(broken(&run.definition, &run.state), None, "as many as allowed may be launched");
}

#[test]
fn an_end_with_live_trials_is_a_broken_promise() {
    check_broken(
        |state| state.status = Status::Ended { why: EndReason::Stopped, at: 0 },
        "ended with live trials",
    );
}

/// "P6 a rung never promotes more than it may, and never a failure."
#[test]
fn p6_a_verdict_beyond_what_a_rung_allows_is_forbidden() {
    let run = running();
    let judged = |value, rank, goes_on| Ruling::TrialJudged {
        trial: 0,
        bracket: 0,
        rung: 0,
        level: 1,
        resource: 1,
        value,
        verdict: Verdict { rank, seen: 6, allowed: 2, goes_on },
    };
    assert_eq!(forbids(&run.state, &judged(Some(0.5), 1, true)), None);
    assert!(forbids(&run.state, &judged(Some(0.5), 2, true)).is_some(), "the third of two");
    assert!(forbids(&run.state, &judged(None, 0, true)).is_some(), "not a number");
    assert_eq!(forbids(&run.state, &judged(Some(0.5), 2, false)), None);
    assert_eq!(forbids(&run.state, &judged(None, 0, false)), None);
}

#[test]
fn p1_a_start_that_does_not_fit_or_in_a_tuning_that_ends_is_forbidden() {
    let mut run = running();
    let start = |amount| {
        let mut start = run.rulings[0].clone();
        let Ruling::StartOrdered { reservation, .. } = &mut start else { panic!("{start:?}") };
        *reservation = MicroUsd(amount);
        start
    };
    let (fits, too_dear) = (start(WORST_CASE), start(WORST_CASE + 1));
    assert_eq!(forbids(&run.state, &fits), None);
    assert!(forbids(&run.state, &too_dear).is_some());
    run.state.status = Status::Ending(EndReason::Stopped);
    assert!(forbids(&run.state, &fits).is_some());
}

/// "A broken invariant stops that tuning (its jobs too), not the service, and says so." Once.
#[test]
fn a_tuning_with_a_broken_promise_is_stopped_with_its_jobs_and_says_so() {
    let mut run = running();
    run.state.launched = 10;
    let taken = advance(&run.definition, &mut run.state, 2, &[started(1, job(0))]);
    let told: Vec<String> = taken.step.unwrap().rulings.iter().map(render).collect();
    assert_eq!(told, ["ending: Failed", "stop 0-0-1: tuning ending", "stop 1-0-1: tuning ending"]);
    let Status::Ending(EndReason::Failed(why)) = &run.state.status else { panic!("{:?}", run.state.status) };
    assert_eq!(why, "a promise would have been broken: 10 jobs were launched");

    let over = [described(9, job(0), Stopped, 5), described(9, job(1), Completed, 5)];
    let taken = advance(&run.definition, &mut run.state, 3, &over);
    let told: Vec<String> = taken.step.unwrap().rulings.iter().map(render).collect();
    assert_eq!(told, ["trial 0 stopped: tuning ending", "trial 1 completed", "ended: Failed"]);
    assert!(!taken.owed);
}
