//! Account quotas that block every start: what the tuning reserves and orders while it waits, and when it gives up.

use tuning::decide::{deadline, must_fold_first};
use tuning::definition::Definition;
use tuning::log::fact::JobEnd::{Completed, MaxWait, Stopped};
use tuning::log::fact::{Fact, JobKey, JobPhase, Recorded};
use tuning::log::reasons::EndReason;
use tuning::log::ruling::Ruling;

use crate::spot::three_choices;
use crate::support::build::*;
use crate::support::check_next;
use crate::support::run::Run;

const DAY: i64 = 86_400;

/// Returns the fact that a quota defers the start of `key` by five minutes.
fn limited(seconds: i64, key: JobKey) -> Recorded {
    let reason = "ResourceLimitExceeded: 0 ml.p5.48xlarge for training job usage".to_owned();
    let not_before = at(seconds + 300);
    recorded(seconds, Fact::ActionDeferred { job: key, not_before, reason, quota_exceeded: true })
}

/// Returns a tuning whose first jobs are all deferred by the quota.
fn waiting(definition: &Definition) -> Run {
    let mut run = Run::new(definition);
    run.take(&[submitted()]);
    for trial in 0..definition.limits.max_parallel {
        run.take(&[limited(5 + i64::from(trial), job(trial))]);
    }
    run
}

/// A quota that was never raised kept the worst case of every job reserved. Every job was retried every five minutes.
#[test]
fn regression_after_ten_minutes_one_job_stays_ordered_and_the_others_release_their_money() {
    let mut run = waiting(&capped(jobs(20, 3), 3));
    check_next(&mut run, &[time_passed(604)], &[]);
    assert_eq!(deadline(&run.definition, &run.state), Some(at(605)));
    check_next(&mut run, &[time_passed(605)], &["stop 1-0-1: quota", "stop 2-0-1: quota"]);
    let expect = ["retry after 1-0-1: Quota, from 606", "retry after 2-0-1: Quota, from 606"];
    check_next(&mut run, &[never_started(606, job(1)), never_started(606, job(2))], &expect);
    assert_eq!((run.state.money.ledger.reserved.0, run.state.results.launched), (WORST_CASE, 1));
    // Further deferrals order no other job.
    for hour in 1..20 {
        check_next(&mut run, &[limited(hour * 3_600, job(0)), time_passed(hour * 3_600 + 400)], &[]);
    }
    // The quota has room again: all jobs start.
    check_next(&mut run, &[started(72_000, job(0))], &["start 1-0-2", "start 2-0-2"]);
    assert_eq!(run.state.capacity.deferral, None);
}

#[test]
fn the_next_job_replaces_a_job_that_is_refused_while_it_waits() {
    let mut run = waiting(&jobs(20, 2));
    check_next(&mut run, &[time_passed(605)], &["stop 1-0-1: quota"]);
    check_next(&mut run, &[never_started(606, job(1))], &["retry after 1-0-1: Quota, from 606"]);
    check_next(&mut run, &[refused(607, job(0))], &["trial 0 failed: no such role", "start 1-0-2"]);
}

#[test]
fn a_job_that_starts_before_its_cancellation_is_billed_and_retried() {
    let mut run = waiting(&jobs(20, 2));
    check_next(&mut run, &[time_passed(605)], &["stop 1-0-1: quota"]);
    check_next(&mut run, &[phase(606, job(1), JobPhase::Training)], &[]);
    let expect = ["retry after 1-0-1: Quota, from 609", "start 1-0-2"];
    check_next(&mut run, &[started(607, job(0)), described(609, job(1), Stopped, 3)], &expect);
}

#[test]
fn a_quota_cancels_no_job_while_another_job_runs() {
    let mut run = Run::new(&jobs(20, 2));
    run.take(&[submitted()]);
    run.take(&[started(1, job(0))]);
    check_next(&mut run, &[limited(5, job(1)), time_passed(900)], &[]);
    // The wait for the quota counts only from the end of the running job.
    let ended = [logged(950, job(0), 9, 0.5), described(1_000, job(0), Completed, 50)];
    run.take(&ended);
    assert_eq!(run.state.capacity.deferral, None);
}

#[test]
fn a_deferral_without_a_quota_cancels_no_job() {
    let mut run = Run::new(&jobs(20, 2));
    run.take(&[submitted()]);
    check_next(&mut run, &[deferred(5, job(0), 305), deferred(6, job(1), 306), time_passed(900)], &[]);
    check_next(&mut run, &[time_passed(2 * DAY)], &[]);
}

/// Such a tuning never ended.
#[test]
fn regression_a_quota_that_is_never_raised_fails_the_tuning_after_a_day_with_advice() {
    let mut run = waiting(&jobs(20, 1));
    check_next(&mut run, &[time_passed(DAY + 4)], &[]);
    assert_eq!(deadline(&run.definition, &run.state), Some(at(DAY + 5)));
    // All stored facts of the job are folded before the tuning fails.
    assert_eq!(
        (
            must_fold_first(&run.definition, &run.state, at(DAY + 4)),
            must_fold_first(&run.definition, &run.state, at(DAY + 5))
        ),
        (vec![], vec![job(0)])
    );
    let mut late = run.clone();
    check_next(&mut run, &[time_passed(DAY + 5)], &["ending: Failed", "stop 0-0-1: tuning ending"]);
    let Some(Ruling::TuningEnding { why: EndReason::Failed(why) }) = run.rulings.iter().rev().nth(1) else {
        panic!("{:?}", run.rulings)
    };
    assert!(
        why.contains("24 hours") && why.contains("Service Quotas") && why.contains("0 ml.p5.48xlarge"),
        "{why}"
    );
    let expect = ["trial 0 never started", "ended: Failed"];
    check_next(&mut run, &[never_started(DAY + 6, job(0))], &expect);
    check_next(&mut late, &[started(DAY, job(0)), time_passed(DAY + 5)], &[]);
}

#[test]
fn a_refit_also_waits_for_the_quota_for_at_most_a_day() {
    let mut definition = Definition { refit: true, ..jobs(100, 1) };
    definition.limits.target = Some(0.7);
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    for fact in [logged(10, job(0), 3, 0.75), described(20, job(0), Completed, 10)] {
        run.take(&[fact]);
    }
    check_next(&mut run, &[limited(30, job(1))], &[]);
    check_next(&mut run, &[time_passed(DAY + 29)], &[]);
    check_next(&mut run, &[time_passed(DAY + 30)], &["stop 1-0-1: tuning ending"]);
    check_next(&mut run, &[never_started(DAY + 31, job(1))], &["trial 1 never started", "ended: Target"]);
}

/// Returns a deferral with SageMaker's answer.
pub(crate) fn answered(seconds: i64, key: JobKey, limit: u32, needed: u32) -> Recorded {
    let reason = format!(
        "a limit of the account is reached: The account-level service limit 'ml.m5.large for training job usage' is \
         {limit} Instances, with current utilization of 0 Instances and a request delta of {needed} Instances. Please \
         use AWS Service Quotas to request an increase for this quota."
    );
    let not_before = at(seconds + 300);
    recorded(seconds, Fact::ActionDeferred { job: key, not_before, reason, quota_exceeded: true })
}

/// New accounts have a quota of 0 for most instance types. The tuning waited for a day before it named it.
#[test]
fn a_quota_too_small_for_one_job_fails_the_tuning_at_once() {
    for (limit, needed, fails) in [(0, 1, true), (2, 3, true), (3, 3, false), (10, 3, false)] {
        let mut run = Run::new(&jobs(9, 1));
        run.take(&[submitted()]);
        let rulings = run.take(&[answered(5, job(0), limit, needed)]);
        let failed = rulings.iter().any(|ruling| match ruling {
            Ruling::TuningEnding { why: EndReason::Failed(why) } => {
                why.contains("is too small") && why.contains("ml.m5.large")
            }
            _ => false,
        });
        assert_eq!(failed, fails, "limit {limit}, needed {needed}");
    }
}

/// The answer about a job on demand did not count for a tuning on spot, which waited for a day.
#[test]
fn a_quota_on_demand_below_one_job_fails_a_tuning_without_other_jobs() {
    let mut definition = jobs(9, 1);
    definition.job.spot = true;
    definition.job.max_wait_seconds = Some(7_200);
    definition.spot_fallback = true;
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    run.take(&[described(20, job(0), MaxWait, 0)]);
    run.take(&[time_passed(21)]);
    let retry = JobKey { attempt: 2, ..job(0) };
    assert!(run.state.job(retry).is_some_and(|job| job.order.on_demand), "{:?}", run.state.trials);
    let rulings = run.take(&[answered(25, retry, 0, 1)]);
    assert!(
        matches!(rulings.first(), Some(Ruling::TuningEnding { why: EndReason::Failed(_) })),
        "{rulings:?}"
    );
}

/// Slow deliveries ended the memory of the refusal before the trial continued, and the first type was asked until the wait
/// for a quota expired.
#[test]
fn a_type_whose_quota_is_too_small_is_asked_again_only_after_the_others() {
    let mut definition = three_choices();
    definition.limits.max_parallel = 1;
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    run.take(&[answered(5, job(0), 0, 1)]);
    // Longer than a choice counts as lacking capacity.
    run.take(&[never_started(5_000, job(0))]);
    let live = run.state.jobs().next().map(|(key, _, job)| (key.attempt, job.order.instances));
    assert_eq!(live, Some((2, ChoiceId(1))));
}

#[test]
fn a_job_that_is_accepted_shows_that_the_quota_of_its_instances_suffices() {
    let mut definition = three_choices();
    definition.limits.max_parallel = 1;
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    run.take(&[answered(5, job(0), 0, 1)]);
    assert_eq!(run.state.capacity.below_need, [ChoiceId(0)]);
    run.take(&[started(6, job(0))]);
    assert_eq!(run.state.capacity.below_need, []);
}

/// The user stops the first job, so the second is the one that shows when the quota has room.
#[test]
fn a_quota_does_not_cancel_the_only_job_that_is_not_being_stopped() {
    let mut run = waiting(&jobs(20, 2));
    run.take(&[recorded(10, Fact::JobStopRequested { job: job(0) })]);
    check_next(&mut run, &[time_passed(605)], &[]);
}
