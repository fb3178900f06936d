//! What passes by time alone: when the decider wants to be woken, and which jobs time will then settle.

use tuning::decide::{deadline, settled_by};
use tuning::definition::Definition;
use tuning::fact::JobEnd::{CapacityError, Completed, ServiceError};
use tuning::fact::{JobPhase, Recorded};

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

/// What a job of the tests may last: its hour, the grace of a stop, the upload.
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
    assert_eq!(deadline(definition, &run.state).map(|at| (at - CREATED) / 1_000), seconds);
}

#[test]
fn a_start_that_is_still_owed_is_not_waited_for() {
    check_deadline(&random(9, 1), &[], None);
}

#[test]
fn every_sign_of_life_puts_off_when_a_job_is_given_up() {
    let job_of = |facts: &[Recorded]| check_deadline(&random(9, 1), facts, Some(50 + LIFE));
    job_of(&[started(50, job(0))]);
    job_of(&[started(1, job(0)), phase(50, job(0), JobPhase::Training)]);
    job_of(&[started(1, job(0)), logged(50, job(0), 1, 0.5)]);
    // An older one that comes late does not take it back.
    job_of(&[phase(50, job(0), JobPhase::Training), logged(20, job(0), 1, 0.5)]);
    job_of(&[logged(50, job(0), 1, 0.5), phase(20, job(0), JobPhase::Training)]);
    job_of(&[started(1, job(0)), seen(50, job(0)), seen(20, job(0))]);
    // From then on it is looked for, for an hour from when that is told.
    let facts = [started(50, job(0)), time_passed(70 + LIFE)];
    check_deadline(&random(9, 1), &facts, Some(70 + LIFE + 3_600));
    // Seen in that hour, it is not given up.
    let facts = [facts[0].clone(), facts[1].clone(), seen(90 + LIFE, job(0))];
    check_deadline(&random(9, 1), &facts, Some(90 + LIFE + LIFE));
}

#[test]
fn a_spot_job_is_given_up_after_its_wait_which_bounds_its_running_time() {
    let mut definition = random(9, 1);
    definition.job.spot = true;
    definition.job.max_wait_seconds = Some(4_000);
    check_deadline(&definition, &[started(50, job(0))], Some(50 + 4_000 + 120 + 180));
}

#[test]
fn the_earliest_of_several_deadlines_is_the_next() {
    let mut definition = random(9, 3);
    definition.limits.max_runtime_seconds = Some(60_000);
    let facts = [started(50, job(0)), started(30, job(1)), started(70, job(2))];
    check_deadline(&definition, &facts, Some(30 + LIFE));
}

#[test]
fn a_waiting_trial_wakes_the_decider_when_it_may_be_tried_again_and_not_after() {
    let definition = capped(random(9, 1), 2);
    // The second job has the only slot and is not known to the service yet.
    let facts = [described(60, job(0), CapacityError, 0)];
    check_deadline(&definition, &facts, Some(90));
    check_deadline(&definition, &[facts[0].clone(), time_passed(90)], None);
}

#[test]
fn the_time_of_a_tuning_that_is_ending_already_is_no_deadline() {
    let mut definition = random(9, 1);
    definition.limits.max_runtime_seconds = Some(500);
    check_deadline(&definition, &[], Some(500));
    check_deadline(&definition, &[stop_requested(5)], None);
}

#[test]
fn a_bill_that_came_is_not_waited_for() {
    let definition = random(9, 2);
    let facts = [ended(60, job(0), Completed), described(60, job(0), Completed, 50)];
    check_deadline(&definition, &facts, None);
}

/// All stored facts of a job are folded before time passes judgement on it: these are the jobs to read.
#[test]
fn the_jobs_that_a_time_would_settle_are_named_before_it_passes() {
    let definition = random(9, 3);
    let facts = [started(50, job(0)), ended(60, job(1), Completed), time_passed(130)];
    let run = after(&definition, &facts);
    let settled = |seconds: i64| settled_by(&run.state, at(seconds));
    assert_eq!(settled(130 + 3_599), []);
    assert_eq!(settled(130 + 3_600), [job(1)]);
    assert_eq!(settled(50 + LIFE + 3_599), [job(1)]);
    assert_eq!(settled(50 + LIFE + 3_600), [job(0), job(1)]);
}

#[test]
fn a_closed_job_is_settled_by_no_time() {
    let run = after(&random(9, 1), &[refused(5, job(0))]);
    assert_eq!(settled_by(&run.state, i64::MAX), []);
    let run = after(&random(9, 1), &[ended(60, job(0), Completed)]);
    assert_eq!(settled_by(&run.state, i64::MAX), [], "its hour has not begun");
}

#[test]
fn a_time_told_late_is_not_taken_back() {
    let given = [submitted(), ended(60, job(0), Completed), time_passed(200)];
    let run = &mut check(&random(9, 1), &given, &[time_passed(130)], &[]);
    assert_eq!(run.state.clock, at(200));
    check_next(run, &[time_passed(130 + 3_600)], &[]);
}

#[test]
fn the_longest_put_off_start_holds_all_others() {
    let definition = random(9, 2);
    let facts = [deferred(1, job(0), 90), deferred(2, job(1), 60)];
    let run = &mut after(&definition, &facts);
    check_next(run, &[never_started(50, job(0))], &["trial 0 never started"]);
    check_next(run, &[time_passed(89)], &[]);
    check_next(run, &[time_passed(90)], &["start 2-0-1"]);
}

#[test]
fn an_action_put_off_on_a_job_that_runs_holds_no_starts() {
    let given = [submitted(), started(1, job(0)), deferred(2, job(0), 90)];
    let run =
        &mut check(&random(9, 1), &given, &[ended(5, job(0), ServiceError)], &["bill 0-0-1", "start 1-0-1"]);
    assert_eq!(run.state.hold_starts_until, None);
    assert_eq!(run.state.job(job(0)).unwrap().deferred, Some((at(90), "throttled".to_owned())));
}

#[test]
fn an_earlier_putting_off_told_later_changes_nothing() {
    let given = [submitted(), deferred(1, job(0), 90)];
    let run = check(&random(9, 1), &given, &[deferred(2, job(0), 60)], &[]);
    assert_eq!(run.state.hold_starts_until, Some(at(90)));
    assert_eq!(run.state.job(job(0)).unwrap().deferred.as_ref().unwrap().0, at(90));
}

#[test]
fn a_putting_off_told_with_the_refusal_holds_no_starts() {
    let when = [refused(5, job(0)), deferred(6, job(0), 90)];
    check(&random(9, 1), &[submitted()], &when, &["trial 0 failed: no such role", "start 1-0-1"]);
}
