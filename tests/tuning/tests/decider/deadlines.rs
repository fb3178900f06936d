//! Deadlines: when the decider must be woken, and which jobs the passing of time settles.

use tuning::decide::{deadline, must_fold_first};
use tuning::definition::Definition;
use tuning::log::fact::JobEnd::{CapacityError, Completed, ServiceError};
use tuning::log::fact::{JobPhase, Recorded};
use tuning::unit::limits::BILL_USUAL;
use tuning::unit::time::Time;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

/// The longest life of a test job, in seconds: its hour, the grace period of a stop and the upload.
const LIFE: i64 = 3_600 + 120 + 180;

fn after(definition: &Definition, facts: &[Recorded]) -> Run {
    let mut run = Run::new(definition);
    run.take(&[submitted()]);
    for fact in facts {
        run.take(std::slice::from_ref(fact));
    }
    run
}

#[track_caller]
fn check_deadline(definition: &Definition, facts: &[Recorded], seconds: Option<i64>) {
    let run = after(definition, facts);
    assert_eq!(deadline(definition, &run.state).map(|at| (at - CREATED).as_seconds()), seconds);
}

#[test]
fn a_start_that_is_not_accepted_yet_sets_no_deadline() {
    check_deadline(&random(9, 1), &[], None);
}

#[test]
fn every_sign_of_life_extends_the_deadline_of_a_job() {
    let check_extended = |facts: &[Recorded]| check_deadline(&random(9, 1), facts, Some(50 + LIFE));
    check_extended(&[started(50, job(0))]);
    check_extended(&[started(1, job(0)), phase(50, job(0), JobPhase::Training)]);
    check_extended(&[started(1, job(0)), logged(50, job(0), 1, 0.5)]);
    // An older sign that arrives late does not move the deadline back.
    check_extended(&[phase(50, job(0), JobPhase::Training), logged(20, job(0), 1, 0.5)]);
    check_extended(&[logged(50, job(0), 1, 0.5), phase(20, job(0), JobPhase::Training)]);
    check_extended(&[started(1, job(0)), seen(50, job(0)), seen(20, job(0))]);
    // After the deadline the decider waits one more hour, from the reported time, for a sign of the job.
    let facts = [started(50, job(0)), time_passed(70 + LIFE)];
    check_deadline(&random(9, 1), &facts, Some(70 + LIFE + 3_600));
    // A job seen within that hour stays live.
    let facts = [facts[0].clone(), facts[1].clone(), seen(90 + LIFE, job(0))];
    check_deadline(&random(9, 1), &facts, Some(90 + LIFE + LIFE));
}

#[test]
fn the_deadline_of_a_spot_job_follows_its_maximum_wait() {
    let mut definition = random(9, 1);
    definition.job.spot = true;
    definition.job.max_wait_seconds = Some(4_000);
    check_deadline(&definition, &[started(50, job(0))], Some(50 + 4_000 + 120 + 180));
}

#[test]
fn the_next_deadline_is_the_earliest() {
    let mut definition = random(9, 3);
    definition.limits.max_runtime_seconds = Some(60_000);
    let facts = [started(50, job(0)), started(30, job(1)), started(70, job(2))];
    check_deadline(&definition, &facts, Some(30 + LIFE));
}

#[test]
fn a_waiting_trial_sets_a_deadline_only_until_it_may_retry() {
    let definition = capped(random(9, 1), 2);
    // The service has not accepted the second job yet, so that job sets no deadline.
    let facts = [described(60, job(0), CapacityError, 0)];
    check_deadline(&definition, &facts, Some(90));
    // From then on only the notice of a long lack of capacity is due.
    check_deadline(&definition, &[facts[0].clone(), time_passed(90)], Some(660));
}

#[test]
fn the_maximum_runtime_of_an_ending_tuning_is_no_deadline() {
    let mut definition = random(9, 1);
    definition.limits.max_runtime_seconds = Some(500);
    check_deadline(&definition, &[], Some(500));
    check_deadline(&definition, &[stop_requested(5)], None);
}

#[test]
fn a_job_with_a_bill_sets_no_deadline() {
    let definition = random(9, 2);
    let facts = [ended(60, job(0), Completed), described(60, job(0), Completed, 50)];
    check_deadline(&definition, &facts, None);
}

/// The program folds all stored facts of these jobs before it reports the time.
#[test]
fn settled_by_returns_the_jobs_that_a_time_would_settle() {
    let definition = random(9, 3);
    let facts = [started(50, job(0)), ended(60, job(1), Completed), time_passed(130)];
    let run = after(&definition, &facts);
    let settled = |seconds: i64| must_fold_first(&run.definition, &run.state, at(seconds));
    assert_eq!(settled(130 + 3_599), []);
    assert_eq!(settled(130 + 3_600), [job(1)]);
    assert_eq!(settled(50 + LIFE + 3_599), [job(1)]);
    assert_eq!(settled(50 + LIFE + 3_600), [job(0), job(1)]);
}

#[test]
fn time_settles_no_closed_job() {
    let run = after(&random(9, 1), &[refused(5, job(0))]);
    assert_eq!(must_fold_first(&run.definition, &run.state, Time::MAX), []);
}

/// The first of two times in one delivery began the hour for the bill, and the second settled the job in full, although
/// its bill was stored.
#[test]
fn regression_an_ended_job_is_read_before_a_time_that_may_begin_and_end_its_hour() {
    let run = after(&random(9, 1), &[ended(60, job(0), Completed)]);
    assert_eq!(must_fold_first(&run.definition, &run.state, at(60 + 3_599)), []);
    assert_eq!(must_fold_first(&run.definition, &run.state, at(60 + 3_600)), [job(0)]);
}

#[test]
fn a_late_report_of_the_time_does_not_move_the_clock_back() {
    let given = [submitted(), ended(60, job(0), Completed), time_passed(200)];
    let run = &mut check(&random(9, 1), &given, &[time_passed(130)], &[]);
    assert_eq!(run.state.clock, at(200));
    check_next(run, &[time_passed(130 + 3_600)], &[]);
}

#[test]
fn the_latest_deferral_of_a_start_delays_all_starts() {
    let definition = random(9, 2);
    let facts = [deferred(1, job(0), 90), deferred(2, job(1), 60)];
    let run = &mut after(&definition, &facts);
    check_next(run, &[never_started(50, job(0))], &["trial 0 never started"]);
    check_next(run, &[time_passed(89)], &[]);
    check_next(run, &[time_passed(90)], &["start 2-0-1"]);
}

#[test]
fn a_deferred_action_on_a_running_job_delays_no_starts() {
    let given = [submitted(), started(1, job(0)), deferred(2, job(0), 90)];
    let run =
        &mut check(&random(9, 1), &given, &[ended(5, job(0), ServiceError)], &["bill 0-0-1", "start 1-0-1"]);
    assert_eq!(run.state.capacity.no_start_before, None);
    assert_eq!(run.state.job(job(0)).unwrap().deferred, Some((at(90), "throttled".to_owned())));
}

#[test]
fn a_late_report_of_a_shorter_deferral_changes_nothing() {
    let given = [submitted(), deferred(1, job(0), 90)];
    let run = check(&random(9, 1), &given, &[deferred(2, job(0), 60)], &[]);
    assert_eq!(run.state.capacity.no_start_before, Some(at(90)));
    assert_eq!(run.state.job(job(0)).unwrap().deferred.as_ref().unwrap().0, at(90));
}

#[test]
fn a_deferral_that_arrives_with_the_refusal_delays_no_starts() {
    let when = [refused(5, job(0)), deferred(6, job(0), 90)];
    check(&random(9, 1), &[submitted()], &when, &["trial 0 failed: no such role", "start 1-0-1"]);
}

/// The stored facts of the job may include the read of its log.
#[test]
fn a_job_is_read_before_a_time_that_ends_the_wait_for_its_log() {
    let mut run = Run::new(&random(9, 1));
    run.answers_reads = false;
    run.take(&[submitted()]);
    run.take(&[logged(50, job(0), 1, 0.5), described(60, job(0), Completed, 50)]);
    run.take(&[time_passed(130)]);
    assert_eq!(must_fold_first(&run.definition, &run.state, at(130 + 3_599)), []);
    assert_eq!(must_fold_first(&run.definition, &run.state, at(130 + 3_600)), [job(0)]);
}

/// The report of the time arrived before the start.
#[test]
fn a_job_whose_longest_life_ends_at_the_reported_time_sets_a_deadline_a_minute_later() {
    let facts = [time_passed(50 + LIFE), started(50, job(0))];
    check_deadline(&random(9, 1), &facts, Some(50 + LIFE + BILL_USUAL.as_seconds()));
}
