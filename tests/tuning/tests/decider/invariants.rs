//! Invariants: `broken` reports a corrupt state, `forbids` rejects a ruling, and the tuning stops. No history breaks an
//! invariant, so the tests corrupt the state directly.

use tuning::invariant::{broken, forbids};
use tuning::log::fact::Fact;
use tuning::log::fact::JobEnd::{Completed, Stopped};
use tuning::log::reasons::EndReason;
use tuning::log::ruling::{Order, Ruling, SearchRuling, Verdict};
use tuning::state::{State, Status};
use tuning::step::advance;
use tuning::trial::Purpose;
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::{CohortId, Place};
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;

use crate::support::build::*;
use crate::support::render::render;
use crate::support::run::{Run, bills_confirmed};

/// Returns a run with two running jobs and a cap of three worst cases.
fn running() -> Run {
    let mut run = Run::new(&capped(jobs(9, 2), 3));
    run.take(&[submitted()]);
    assert_eq!(broken(&run.definition, &run.state), None);
    run
}

#[track_caller]
fn check_broken(corrupt: impl FnOnce(&mut State), words: &str) {
    let mut run = running();
    corrupt(&mut run.state);
    let message = broken(&run.definition, &run.state).expect("a broken invariant");
    assert!(message.contains(words), "{message}");
}

/// "P1 spent + reserved <= cap at every step."
#[test]
fn p1_a_ledger_above_the_cap_breaks_an_invariant_unless_the_sum_stands() {
    check_broken(|state| state.money.ledger.spent = MicroUsd(WORST_CASE + 1), "exceeds the cap");
    let mut run = running();
    run.state.money.ledger.spent = MicroUsd(WORST_CASE);
    assert_eq!(broken(&run.definition, &run.state), None, "spent plus reserved may equal the cap");
    run.state.money.ledger.spent = MicroUsd(WORST_CASE + 1);
    run.state.money.ledger.standing = Some(MicroUsd(3 * WORST_CASE + 1));
    assert_eq!(broken(&run.definition, &run.state), None, "a bill above its reservation stands");
    run.state.money.ledger.spent = MicroUsd(WORST_CASE + 2);
    assert!(broken(&run.definition, &run.state).is_some(), "only that bill is exempt");
}

#[test]
fn reservations_that_differ_from_the_open_jobs_break_an_invariant() {
    check_broken(
        |state| state.money.ledger.reserved = MicroUsd(WORST_CASE),
        "the reservations of open jobs and warm pools sum to",
    );
    // A closed job has no reservation.
    check_broken(
        |state| {
            state.trials.get_mut(TrialId(0)).unwrap().job_mut().unwrap().run =
                tuning::job::run::Run::Void { refused: None }
        },
        "the reservations of open jobs and warm pools sum to",
    );
}

#[test]
fn too_many_parallel_jobs_break_an_invariant() {
    let mut run = running();
    run.definition.limits.max_parallel = 1;
    assert_eq!(broken(&run.definition, &run.state).as_deref(), Some("2 jobs run at once, more than allowed"));
}

#[test]
fn too_many_launched_jobs_break_an_invariant() {
    check_broken(|state| state.results.launched = 10, "10 jobs were launched, more than allowed");
    let mut run = running();
    run.state.results.launched = 9;
    assert_eq!(broken(&run.definition, &run.state), None, "the number of launched jobs may equal the limit");
}

#[test]
fn an_end_with_live_trials_breaks_an_invariant() {
    check_broken(
        |state| state.status = Status::Ended { why: EndReason::Stopped, at: Time(0) },
        "ended with live trials",
    );
}

/// "P6 a rung never promotes more than it may, and never a failure."
#[test]
fn p6_a_trial_continues_only_by_its_rank_among_the_arrivals() {
    let mut run = running();
    run.take(&[logged(10, job(0), 1, 0.6)]);
    let judged = |value, rank, continues| {
        Ruling::Search(SearchRuling::TrialJudged {
            trial: TrialId(1),
            bracket: BracketId(0),
            rung: RungId(0),
            level: Epochs(1),
            resource: Epochs(1),
            value,
            average: None,
            verdict: Verdict { rank, seen: 2, allowed: 1, continues },
        })
    };
    let forbidden = |logged: Option<f64>, ruling: &Ruling| {
        let mut state = run.state.clone();
        let trial = state.trials.get_mut(TrialId(1)).unwrap();
        let place = trial.place().unwrap();
        let cohort = CohortId { bracket: BracketId(0), ..place.cohort };
        trial.purpose = Purpose::Search(Place { cohort, ..place });
        trial.curve.insert(Epochs(1), logged);
        forbids(&run.definition, &state, ruling).is_some()
    };
    let (better, worse) = (Some(0.7), Some(0.5));
    assert!(!forbidden(better, &judged(better, 0, true)));
    assert!(
        forbidden(worse, &judged(worse, 0, true)),
        "the verdict claims another rank than the arrivals show"
    );
    assert!(forbidden(worse, &judged(worse, 1, true)), "one of two may continue");
    assert!(forbidden(Some(0.6), &judged(Some(0.6), 0, true)), "of equal values the earlier trial is better");
    assert!(forbidden(worse, &judged(better, 0, true)), "the trial logged another value");
    assert!(forbidden(None, &judged(None, 0, true)), "the value is not a number");
    assert!(!forbidden(worse, &judged(worse, 1, false)));
    assert!(!forbidden(None, &judged(None, 0, false)));
}

#[test]
fn p1_a_start_above_the_cap_or_in_an_ending_tuning_is_forbidden() {
    let mut run = running();
    let start = |amount| {
        let mut start = run.rulings[0].clone();
        let Ruling::Order(Order::Start { reservation, .. }) = &mut start else { panic!("{start:?}") };
        *reservation = MicroUsd(amount);
        start
    };
    let (fits, exceeds) = (start(WORST_CASE), start(WORST_CASE + 1));
    assert_eq!(forbids(&run.definition, &run.state, &fits), None);
    assert!(forbids(&run.definition, &run.state, &exceeds).is_some());
    run.state.status = Status::Ending(EndReason::Stopped);
    assert!(forbids(&run.definition, &run.state, &fits).is_some());
}

/// "A broken invariant stops that tuning (its jobs too), not the service, and says so."
#[test]
fn a_broken_invariant_stops_the_tuning_and_its_jobs_once_with_a_message() {
    let mut run = running();
    run.state.results.launched = 10;
    let taken = advance(&run.definition, &mut run.state, 2, &[started(1, job(0))]);
    let rendered: Vec<String> = taken.step.unwrap().rulings.iter().map(render).collect();
    assert_eq!(rendered, ["ending: Failed", "stop 0-0-1: tuning ending", "stop 1-0-1: tuning ending"]);
    let Status::Ending(EndReason::Failed(why)) = &run.state.status else { panic!("{:?}", run.state.status) };
    assert_eq!(why, "internal error, a promise would be broken: 10 jobs were launched, more than allowed");

    let read = |trial| recorded(9, Fact::RestRead { job: job(trial) });
    let confirmed = bills_confirmed(at(9), vec![(job(0), 5), (job(1), 5)]);
    let bills = [described(9, job(0), Stopped, 5), described(9, job(1), Completed, 5)];
    let over = [&bills[..], &[read(0), read(1), confirmed]].concat();
    let taken = advance(&run.definition, &mut run.state, 3, &over);
    let rendered: Vec<String> = taken.step.unwrap().rulings.iter().map(render).collect();
    assert_eq!(rendered, ["trial 0 stopped: tuning ending", "trial 1 completed", "ended: Failed"]);
    assert!(!taken.has_more);
}
