//! Retries after a service error or a runtime limit that was cut too short. A program's own failure
//! is never retried.

use tuning::definition::Definition;
use tuning::log::fact::JobEnd::{AlgorithmError, Completed, MaxRuntime, ServiceError};
use tuning::log::fact::{Fact, JobPhase, Recorded};
use tuning::unit::ids::SizeId;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Millis;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

#[test]
fn a_service_error_is_retried() {
    let given = [submitted(), ended(60, job(0), ServiceError)];
    let run = &mut check(&jobs(9, 1), &given[..1], &given[1..], &["bill 0-0-1", "start 1-0-1"]);
    let expect = ["retry after 0-0-1: ServiceError, from 90"];
    check_next(run, &[described(60, job(0), ServiceError, 0)], &expect);
}

#[test]
fn a_program_failure_is_not_retried() {
    let when = [described(60, job(0), AlgorithmError, 50)];
    check(&jobs(1, 1), &[submitted()], &when, &["trial 0 failed: exit code 1", "ended: Failed"]);
}

#[test]
fn a_timeout_at_the_user_s_runtime_limit_is_not_retried() {
    let given = [submitted(), logged(10, job(0), 1, 0.5)];
    let when = [described(60, job(0), MaxRuntime, 3_600)];
    check(&jobs(1, 1), &given, &when, &["trial 0 ran out of time", "ended: MaxJobs"]);
}

#[test]
fn the_wait_doubles_and_its_end_is_a_deadline() {
    let failed = |seconds, n| [described(seconds, attempt(0, n), ServiceError, 0)];
    let mut definition = jobs(9, 1);
    definition.limits.max_parallel = 1;
    // A second trial occupies the only slot until its end.
    let run = &mut check(
        &definition,
        &[submitted()],
        &failed(60, 1),
        &["retry after 0-0-1: ServiceError, from 90", "start 1-0-1"],
    );
    check_next(run, &[logged(70, job(1), 3, 0.5)], &["trial 1 continues at rung 1.0, epoch 3: 1 of 1"]);
    check_next(run, &[described(100, job(1), Completed, 9)], &["trial 1 completed", "start 0-0-2"]);
    check_next(run, &failed(200, 2), &["retry after 0-0-2: ServiceError, from 260", "start 2-0-1"]);
    check_next(run, &[described(210, job(2), Completed, 9)], &["trial 2 completed", "start 3-0-1"]);
    assert_eq!(tuning::decide::deadline(&run.definition, &run.state), Some(at(260)));
}

#[test]
fn a_waiting_trial_starts_before_a_new_trial() {
    let given = [submitted(), described(60, job(0), ServiceError, 0), time_passed(95)];
    let when = [described(96, job(1), Completed, 9)];
    check(&jobs(9, 1), &given, &when, &["trial 1 completed", "start 0-0-2"]);
}

#[test]
fn a_trial_fails_after_its_last_attempt() {
    let mut definition = random(9, 2);
    definition.settings.max_interruptions = 1;
    let given = [submitted(), described(60, job(0), ServiceError, 0), described(95, job(1), Completed, 9)];
    let expect = ["trial 0 failed: the training job failed without a reason", "start 3-0-1"];
    check(&definition, &given, &[described(200, attempt(0, 2), ServiceError, 0)], &expect);
}

/// The end of the job arrives with the value that puts its trial out, so no stop is ordered.
#[test]
fn a_trial_that_is_out_is_not_retried() {
    let given = [submitted(), logged(10, job(0), 1, 0.5)];
    let when = [logged(11, job(2), 1, 0.4), described(12, job(2), ServiceError, 9)];
    let expect = [
        "trial 2 is out at rung 0.0, epoch 1: 2 of 2",
        "trial 2 failed: the training job failed without a reason",
    ];
    check(&jobs(4, 4), &given, &when, &expect);
}

#[test]
fn without_allowed_interruptions_a_trial_is_not_retried() {
    let mut definition = jobs(9, 1);
    definition.settings.max_interruptions = 0;
    let when = [described(60, job(0), ServiceError, 0)];
    let expect = ["trial 0 failed: the training job failed without a reason", "start 1-0-1"];
    check(&definition, &[submitted()], &when, &expect);
}

#[test]
fn retries_count_as_launched_jobs() {
    let run = check(
        &random(2, 1),
        &[submitted()],
        &[described(60, job(0), ServiceError, 0)],
        &[
            "retry after 0-0-1: ServiceError, from 90",
            "start 1-0-1",
            // Both jobs are launched: no job is left for a retry.
            "trial 0 failed: the training job failed without a reason",
        ],
    );
    assert_eq!(run.state.results.launched, 2);
}

/// Returns a tuning after five trials of 20 seconds an epoch: the sixth has a limit of 160 % of 180 seconds.
fn timed(definition: &Definition) -> Run {
    let mut run = Run::new(definition);
    run.take(&[submitted()]);
    for trial in 0..5 {
        let start = i64::from(trial) * 1_000;
        let epoch = |n: i64| logged(start + n * 20, job(trial), u64::try_from(n).unwrap(), 0.5);
        let facts: Vec<Recorded> = (1..=9).map(epoch).collect();
        run.take(&facts);
        run.take(&[described(start + 180, job(trial), Completed, 100)]);
    }
    run
}

#[test]
fn a_limit_that_was_cut_too_short_grows_by_a_factor_up_to_the_user_s_limit() {
    let run = &mut timed(&capped(jobs(20, 1), 9));
    let limits = |run: &Run, key| run.state.job(key).unwrap().order.limits.max_runtime_seconds;
    assert_eq!(limits(run, job(5)), 288, "160 % of 180 seconds");
    let cut = |at_s, attempt, bill| described(at_s, attempt, MaxRuntime, bill);
    let expect = ["retry after 5-0-1: RuntimeCutTooShort, from 6000", "start 5-0-2"];
    check_next(run, &[cut(6_000, job(5), 288)], &expect);
    assert_eq!(limits(run, attempt(5, 2)), 2 * 288);
    let expect = ["retry after 5-0-2: RuntimeCutTooShort, from 8000", "start 5-0-3"];
    check_next(run, &[cut(8_000, attempt(5, 2), 576)], &expect);
    run.take(&[cut(10_000, attempt(5, 3), 1_152)]);
    run.take(&[cut(14_000, attempt(5, 4), 2_304)]);
    assert_eq!(limits(run, attempt(5, 5)), 3_600, "at most the user's limit");
    let expect = ["trial 5 ran out of time", "start 6-0-1"];
    check_next(run, &[cut(20_000, attempt(5, 5), 3_600)], &expect);
}

/// Returns a tuning in which two jobs run and `left` seconds of the cap are free. The limit of a job is 288 seconds, and
/// that of the first has grown to 486 seconds.
fn two_cut_jobs(left: u64) -> Run {
    let mut definition = capped(jobs(40, 2), 9);
    definition.limits.max_parallel = 1;
    let mut run = timed(&definition);
    run.take(&[changed(5_900, Some(500 + 2 * (288 + 300) + left), Some(2))]);
    assert_eq!(run.state.jobs().count(), 2);
    let first = run.state.trials.get_mut(TrialId(5)).and_then(|trial| trial.job_mut());
    first.unwrap().order.limits.max_runtime_seconds = 486;
    run
}

/// Returns a change of the cap, in seconds of a job, and of the parallel jobs.
fn changed(at_s: i64, cap: Option<u64>, max_parallel: Option<u32>) -> Recorded {
    let cap = cap.map(|seconds| MicroUsd(seconds * SECOND));
    recorded(at_s, Fact::LimitsChanged { cap, max_parallel, paused: None })
}

#[test]
fn a_trial_whose_limit_was_cut_starts_before_new_trials() {
    // 900 seconds are free after the first job. A new job needs 482 or more, and the retry 1,272.
    let run = &mut two_cut_jobs(600);
    let expect = ["retry after 5-0-1: RuntimeCutTooShort, from 6000"];
    check_next(run, &[described(6_000, job(5), MaxRuntime, 288)], &expect);
    let expect = ["trial 6 completed", "start 5-0-2"];
    check_next(run, &[described(6_100, job(6), Completed, 90)], &expect);
}

#[test]
fn a_trial_whose_limit_was_cut_blocks_no_new_trial_once_the_cap_can_never_pay_it() {
    // 1,188 seconds are free or reserved after the first job. The retry needs 1,272.
    let run = &mut two_cut_jobs(300);
    let expect = ["retry after 5-0-1: RuntimeCutTooShort, from 6000", "start 7-0-1"];
    check_next(run, &[described(6_000, job(5), MaxRuntime, 288)], &expect);
}

#[test]
fn a_spot_job_waits_as_long_as_it_may_run_within_bounds_and_the_user_s_wait() {
    let mut definition = jobs(9, 1);
    definition.job.spot = true;
    definition.job.max_wait_seconds = Some(4_000);
    assert_eq!(definition.limits_for(30, SizeId::default()).max_wait_seconds, Some(30 + 120));
    assert_eq!(definition.limits_for(270, SizeId::default()).max_wait_seconds, Some(270 + 270));
    assert_eq!(definition.limits_for(1_000, SizeId::default()).max_wait_seconds, Some(1_000 + 900));
    assert_eq!(definition.limits_for(3_600, SizeId::default()).max_wait_seconds, Some(4_000));
    let run = check(&capped(definition, 9), &[], &[submitted()], &["start 0-0-1"]);
    assert_eq!(run.state.money.ledger.reserved.0, (4_000 + 120 + 180) * SECOND, "the wait bounds the bill");
}

/// Returns the runtime limit of the sixth job, in seconds.
///
/// The first five programs log `epochs` epochs of ten seconds each, `startup` seconds after their instances started.
fn limit_after(definition: &Definition, startup: i64, epochs: i64) -> u64 {
    let mut run = Run::new(definition);
    run.take(&[submitted()]);
    for trial in 0..5 {
        let start = i64::from(trial) * 1_000;
        let running = Fact::JobStateChanged {
            job: job(trial),
            phase: JobPhase::Training,
            started: Some(at(start)),
            ended: None,
            message: None,
        };
        run.take(&[recorded(start, running)]);
        let epoch = |n: i64| logged(start + startup + n * 10, job(trial), u64::try_from(n).unwrap() + 1, 0.5);
        run.take(&(0..epochs).map(epoch).collect::<Vec<_>>());
        let end = start + startup + (epochs - 1) * 10;
        run.take(&[described(end, job(trial), Completed, 100)]);
    }
    run.state.job(job(5)).unwrap().order.limits.max_runtime_seconds
}

#[test]
fn the_runtime_limit_is_the_usual_time_of_the_epochs_and_the_startup_with_a_margin() {
    // After five timed jobs the margin is 60 %.
    assert_eq!(limit_after(&capped(jobs(9, 1), 9), 40, 9), 208, "160 % of 9 x 10 + 40 seconds");
    assert_eq!(limit_after(&capped(jobs(9, 1), 9), 0, 5), 144);
}

#[test]
fn where_no_job_has_logged_two_epochs_the_time_to_the_first_line_counts_as_an_epoch() {
    assert_eq!(limit_after(&capped(jobs(9, 1), 9), 40, 1), 640, "160 % of 9 x 40 + 40 seconds");
    assert_eq!(limit_after(&capped(jobs(9, 1), 9), 40, 2), 208);
}

#[test]
fn the_runtime_limit_is_within_the_user_s_limit_and_not_cut_without_a_resource() {
    let mut definition = capped(jobs(9, 1), 9);
    definition.job.max_runtime_seconds = 200;
    assert_eq!(limit_after(&definition, 100, 9), 200);
    assert_eq!(limit_after(&capped(random(9, 1), 9), 0, 9), 3_600);
}

/// A shorter limit ended slow configurations although nothing limited the money.
#[test]
fn regression_without_a_cap_or_grants_the_user_s_runtime_limit_is_sent() {
    assert_eq!(limit_after(&jobs(9, 1), 0, 9), 3_600);
    let grants = Definition { grants: true, ..jobs(9, 1) };
    let mut run = Run::new(&grants);
    run.state.results.timings.epoch_ms = vec![Millis(10_000); 5];
    run.take(&[submitted()]);
    run.take(&[granted(1, 1, 9)]);
    assert_eq!(
        run.state.job(job(0)).unwrap().order.limits.max_runtime_seconds,
        144,
        "grants limit the money"
    );
}

#[test]
fn after_an_interruption_the_first_line_gives_no_startup_time() {
    let mut run = Run::new(&jobs(9, 1));
    run.take(&[submitted()]);
    let running = Fact::JobStateChanged {
        job: job(0),
        phase: JobPhase::Training,
        started: Some(at(0)),
        ended: None,
        message: None,
    };
    run.take(&[
        recorded(1, running),
        logged(5, job(0), 1, 0.5),
        lines(300, job(0), "restarted", vec![line(300, "x", 2, 0.5), line(312, "y", 4, 0.5)]),
        described(900, job(0), Completed, 100),
    ]);
    assert_eq!(
        (run.state.results.timings.epoch_ms.clone(), run.state.results.timings.startup_ms.clone()),
        (vec![Millis(6_000)], vec![])
    );
}

#[test]
fn a_retry_joins_no_bracket_and_clears_the_wait_of_its_trial() {
    let given = [submitted(), described(60, job(0), ServiceError, 0), described(95, job(1), Completed, 9)];
    let run = check(&jobs(9, 1), &given, &[], &[]);
    assert_eq!((run.state.search.joined.clone(), run.state.search.next_trial), (vec![1, 1, 0], TrialId(2)));
    let trial = &run.state.trials[&TrialId(0)];
    assert_eq!((trial.attempts, trial.retries, trial.not_before()), (2, 1, None));
}

#[test]
fn a_trial_is_retried_up_to_the_allowed_interruptions() {
    let mut definition = random(9, 1);
    definition.settings.max_interruptions = 2;
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    run.take(&[described(60, job(0), ServiceError, 0)]);
    run.take(&[described(95, job(1), Completed, 9)]);
    check_next(
        &mut run,
        &[described(100, attempt(0, 2), ServiceError, 0)],
        &["retry after 0-0-2: ServiceError, from 160", "start 2-0-1"],
    );
    check_next(&mut run, &[described(170, job(2), Completed, 9)], &["trial 2 completed", "start 0-0-3"]);
    check_next(
        &mut run,
        &[described(180, attempt(0, 3), ServiceError, 0)],
        &["trial 0 failed: the training job failed without a reason", "start 3-0-1"],
    );
}
