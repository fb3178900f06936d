//! Further attempts: after a lack of capacity, a service fault, a limit that was cut too short. Never after a program's
//! own failure.

use tuning::fact::JobEnd::{AlgorithmError, CapacityError, Completed, MaxRuntime, MaxWait, ServiceError};
use tuning::fact::{JobEnd, Recorded};

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

#[track_caller]
fn check_retried(end: JobEnd, why: &str) {
    let given = [submitted(), ended(60, job(0), end)];
    let expect = format!("retry after 0-0-1: {why}, from 90");
    let run = &mut check(&jobs(9, 1), &given[..1], &given[1..], &["bill 0-0-1", "start 1-0-1"]);
    check_next(run, &[described(60, job(0), end, 0)], &[&expect]);
}

#[test]
fn a_lack_of_capacity_is_tried_again() {
    check_retried(CapacityError, "Capacity");
}

#[test]
fn a_wait_for_spot_in_vain_is_tried_again() {
    check_retried(MaxWait, "MaxWait");
}

#[test]
fn a_service_fault_is_tried_again() {
    check_retried(ServiceError, "ServiceError");
}

#[test]
fn a_failure_of_the_program_is_not_tried_again() {
    let when = [described(60, job(0), AlgorithmError, 50)];
    check(&jobs(1, 1), &[submitted()], &when, &["trial 0 failed: exit code 1", "ended: Failed"]);
}

#[test]
fn the_user_s_own_running_time_limit_is_not_tried_again() {
    let given = [submitted(), logged(10, job(0), 1, 0.5)];
    let when = [described(60, job(0), MaxRuntime, 3_600)];
    check(&jobs(1, 1), &given, &when, &["trial 0 ran out of time", "ended: MaxJobs"]);
}

#[test]
fn the_wait_doubles_and_a_deadline_tells_its_end() {
    let capacity = |seconds, n| [described(seconds, attempt(0, n), CapacityError, 0)];
    let mut definition = jobs(9, 1);
    definition.limits.max_parallel = 1;
    // A second trial keeps the only slot until it is over.
    let run = &mut check(
        &definition,
        &[submitted()],
        &capacity(60, 1),
        &["retry after 0-0-1: Capacity, from 90", "start 1-0-1"],
    );
    check_next(run, &[logged(70, job(1), 3, 0.5)], &["trial 1 goes on at rung 1.0, epoch 3: 1 of 1"]);
    check_next(run, &[described(100, job(1), Completed, 9)], &["trial 1 completed", "start 0-0-2"]);
    check_next(run, &capacity(200, 2), &["retry after 0-0-2: Capacity, from 260", "start 2-0-1"]);
    check_next(run, &[described(210, job(2), Completed, 9)], &["trial 2 completed", "start 3-0-1"]);
    assert_eq!(tuning::decide::deadline(&run.definition, &run.state), Some(at(260)));
}

#[test]
fn a_waiting_trial_goes_before_a_new_one() {
    let given = [submitted(), described(60, job(0), ServiceError, 0), time_passed(95)];
    let when = [described(96, job(1), Completed, 9)];
    check(&jobs(9, 1), &given, &when, &["trial 1 completed", "start 0-0-2"]);
}

#[test]
fn after_the_last_attempt_the_trial_has_failed() {
    let mut definition = random(9, 2);
    definition.max_interruptions = 1;
    let given = [submitted(), described(60, job(0), CapacityError, 0), described(95, job(1), Completed, 9)];
    let expect = ["trial 0 failed: the training job failed without a reason", "start 3-0-1"];
    check(&definition, &given, &[described(200, attempt(0, 2), CapacityError, 0)], &expect);
}

/// Its end came with the value that puts it out: no stop was ordered any more.
#[test]
fn a_trial_that_is_out_is_not_tried_again() {
    let given = [submitted(), logged(10, job(0), 1, 0.5)];
    let when = [logged(11, job(2), 1, 0.4), described(12, job(2), ServiceError, 9)];
    let expect = [
        "trial 2 is out at rung 0.0, epoch 1: 2 of 2",
        "trial 2 failed: the training job failed without a reason",
    ];
    check(&jobs(4, 4), &given, &when, &expect);
}

#[test]
fn no_attempts_beyond_those_allowed() {
    let mut definition = jobs(9, 1);
    definition.max_interruptions = 0;
    let when = [described(60, job(0), CapacityError, 0)];
    let expect = ["trial 0 failed: the training job failed without a reason", "start 1-0-1"];
    check(&definition, &[submitted()], &when, &expect);
}

#[test]
fn further_attempts_count_as_launched() {
    let run = check(
        &random(2, 1),
        &[submitted()],
        &[described(60, job(0), CapacityError, 0)],
        &[
            "retry after 0-0-1: Capacity, from 90",
            "start 1-0-1",
            // Two were launched: the waiting one has no further attempt.
            "trial 0 failed: no further attempt after 1",
        ],
    );
    assert_eq!(run.state.launched, 2);
}

/// Five trials of ten seconds an epoch: then the limit sent is cut.
fn timed(definition: &tuning::definition::Definition) -> Run {
    let mut run = Run::new(definition);
    run.take(&[submitted()]);
    for trial in 0..5 {
        let start = i64::from(trial) * 1_000;
        let epoch = |n: i64| logged(start + n * 10, job(trial), u64::try_from(n).unwrap(), 0.5);
        let facts: Vec<Recorded> = (1..=9).map(epoch).collect();
        run.take(&facts);
        run.take(&[described(start + 100, job(trial), Completed, 100)]);
    }
    run
}

#[test]
fn a_running_time_that_was_cut_too_short_is_tried_once_more_at_the_user_s_limit() {
    let run = &mut timed(&jobs(9, 1));
    let limits = |run: &Run, key| run.state.job(key).unwrap().limits.max_runtime_seconds;
    assert_eq!(limits(run, job(5)), 10 * 9 * 3, "three times the 95th percentile");
    check_next(
        run,
        &[described(6_000, job(5), MaxRuntime, 270)],
        &["retry after 5-0-1: RuntimeCutTooShort, from 6000", "start 5-0-2"],
    );
    assert_eq!(limits(run, attempt(5, 2)), 3_600);
    let expect = ["trial 5 ran out of time", "start 6-0-1"];
    check_next(run, &[described(9_000, attempt(5, 2), MaxRuntime, 3_600)], &expect);
}

#[test]
fn a_spot_job_waits_as_long_as_it_runs_and_the_allowance_but_not_above_the_user_s_wait() {
    let mut definition = jobs(9, 1);
    definition.job.spot = true;
    definition.job.max_wait_seconds = Some(4_000);
    assert_eq!(definition.limits_for(270).max_wait_seconds, Some(270 + 900));
    assert_eq!(definition.limits_for(3_600).max_wait_seconds, Some(4_000));
    let run = check(&capped(definition, 9), &[], &[submitted()], &["start 0-0-1"]);
    assert_eq!(run.state.ledger.reserved.0, (4_000 + 120 + 180) * SECOND, "the wait bounds the bill");
}
