//! Missing spot capacity and missing instances: the next attempt, and its price.

use tuning::decide::deadline;
use tuning::definition::{Definition, Instances};
use tuning::log::fact::JobEnd::{AlgorithmError, CapacityError, Completed, MaxWait, Stopped};
use tuning::log::fact::JobPhase::{Interrupted, Starting, Training};
use tuning::log::fact::{Fact, JobKey, Recorded};
use tuning::log::ruling::{Order, Ruling};
use tuning::unit::money::{MicroUsd, Rate};
use tuning::unit::time::{Millis, Time};

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

/// Returns spot jobs with a fallback to on demand, one at a time. A job of an hour may wait for 4,000 s.
fn spot() -> Definition {
    let mut definition = jobs(10, 1);
    definition.job.spot = true;
    definition.job.max_wait_seconds = Some(4_000);
    definition.spot_fallback = true;
    definition.settings.max_interruptions = 2;
    definition
}

fn begun(definition: &Definition) -> Run {
    let mut run = Run::new(definition);
    check_next(&mut run, &[submitted()], &["start 0-0-1"]);
    run
}

/// Returns the facts of the `n`-th interruption of a job, up to its restart.
fn interrupted(n: i64, key: JobKey) -> Vec<Recorded> {
    vec![
        phase(100 * n, key, Interrupted),
        phase(100 * n + 10, key, Starting),
        phase(100 * n + 20, key, Training),
    ]
}

#[test]
fn an_expired_spot_wait_is_retried_on_demand_at_once() {
    let mut run = begun(&spot());
    let expect = ["retry after 0-0-1: OnDemand, from 4000", "start 0-0-2 on demand"];
    check_next(&mut run, &[described(4_000, job(0), MaxWait, 0)], &expect);
    let Some(Ruling::Order(Order::Start { limits, reservation, .. })) = run.rulings.last() else { panic!() };
    assert_eq!(limits.max_wait_seconds, None);
    assert_eq!(reservation.0, WORST_CASE, "the cost of an hour, without the wait");
}

#[test]
fn without_the_fallback_the_trial_waits_for_spot_capacity_again() {
    let mut run = begun(&Definition { spot_fallback: false, ..spot() });
    let expect = ["retry after 0-0-1: MaxWait, from 4030"];
    check_next(&mut run, &[described(4_000, job(0), MaxWait, 0)], &expect);
}

#[test]
fn a_job_above_the_allowed_interruptions_is_stopped_and_retried_on_demand() {
    let mut run = begun(&spot());
    run.take(&interrupted(1, job(0)));
    check_next(&mut run, &interrupted(2, job(0)), &[]);
    check_next(&mut run, &interrupted(3, job(0)), &["stop 0-0-1: 3 interruptions"]);
    let expect = ["retry after 0-0-1: OnDemand, from 400", "start 0-0-2 on demand"];
    check_next(&mut run, &[described(400, job(0), Stopped, 50)], &expect);
}

#[test]
fn a_job_that_completes_before_its_stop_is_completed() {
    let mut run = begun(&spot());
    run.take(&[logged(50, job(0), 9, 0.5)]);
    for n in 1..=3 {
        run.take(&interrupted(n, job(0)));
    }
    let expect = ["trial 0 completed", "start 1-0-1"];
    check_next(&mut run, &[described(400, job(0), Completed, 50)], &expect);
}

#[test]
fn an_on_demand_attempt_is_not_stopped_for_interruptions() {
    let mut run = begun(&spot());
    run.take(&[described(4_000, job(0), MaxWait, 0)]);
    for n in 41..=45 {
        check_next(&mut run, &interrupted(n, attempt(0, 2)), &[]);
    }
}

#[test]
fn a_job_stays_on_spot_when_the_cap_does_not_pay_for_on_demand() {
    // Only the last choice has capacity, and it costs more than the money left.
    let mut definition = spot();
    definition.job.fallbacks = three_choices().job.fallbacks;
    definition.limits.max_parallel = 2;
    definition.cap = Some(MicroUsd(4 * WORST_CASE));
    let stopped = |definition: &Definition| {
        let mut run = Run::new(definition);
        run.take(&[submitted()]);
        run.state.capacity.no_capacity_until = vec![Time::MAX, Time::MAX, Time(0)];
        for n in 1..=3 {
            run.take(&interrupted(n, job(0)));
        }
        run.state.job(job(0)).is_some_and(|job| job.stop.is_some())
    };
    assert!(!stopped(&definition), "an hour on demand costs five times as much");
    assert!(stopped(&Definition { cap: Some(MicroUsd(10 * WORST_CASE)), ..definition }));
}

/// Returns a tuning with two more choices of instances, at two and five times the price of the first.
pub(crate) fn three_choices() -> Definition {
    let mut definition = jobs(20, 2);
    let rate = |factor| Some(Rate { instance_hour: SECOND * 3_600 * factor, volume_kilo_gib_hour: 0 });
    definition.job.fallbacks = vec![
        Instances { count: 2, volume_gib: 0, rate: rate(1) },
        Instances { count: 1, volume_gib: 0, rate: rate(5) },
    ];
    definition
}

#[test]
fn after_a_capacity_error_retries_and_new_trials_use_the_next_choice() {
    let mut run = Run::new(&three_choices());
    check_next(&mut run, &[submitted()], &["start 0-0-1", "start 1-0-1"]);
    let expect = ["retry after 0-0-1: NextInstances, from 60", "start 0-0-2 on choice 1"];
    check_next(&mut run, &[described(60, job(0), CapacityError, 0)], &expect);
    let reserved = run.state.job(attempt(0, 2)).unwrap().bill.reservation;
    assert_eq!(reserved.0, 2 * WORST_CASE, "the reservation is for the instances that run");
    check_next(
        &mut run,
        &[logged(70, job(1), 9, 0.5), described(80, job(1), Completed, 10)],
        &["trial 1 continues at rung 1.0, epoch 9: 1 of 1", "trial 1 completed", "start 2-0-1 on choice 1"],
    );
    // Later, the first choice is tried again.
    check_next(&mut run, &[described(700, job(2), Completed, 10)], &["trial 2 completed", "start 3-0-1"]);
}

#[test]
fn a_bill_uses_the_price_of_the_instances_that_ran() {
    let mut run = Run::new(&three_choices());
    run.take(&[submitted()]);
    run.take(&[described(60, job(0), CapacityError, 0)]);
    run.take(&[described(100, attempt(0, 2), Completed, 30)]);
    assert_eq!(run.state.money.ledger.spent.0, 2 * 30 * SECOND);
}

#[test]
fn when_no_choice_has_capacity_the_trial_waits_for_the_earliest_choice() {
    let mut run = Run::new(&Definition {
        limits: tuning::definition::Limits { max_parallel: 1, ..jobs(20, 1).limits },
        ..three_choices()
    });
    check_next(&mut run, &[submitted()], &["start 0-0-1"]);
    let expect = ["retry after 0-0-1: NextInstances, from 60", "start 0-0-2 on choice 1"];
    check_next(&mut run, &[described(60, job(0), CapacityError, 0)], &expect);
    let expect = ["retry after 0-0-2: NextInstances, from 120", "start 0-0-3 on choice 2"];
    check_next(&mut run, &[described(120, attempt(0, 2), CapacityError, 0)], &expect);
    let expect = ["retry after 0-0-3: Capacity, from 210"];
    check_next(&mut run, &[described(180, attempt(0, 3), CapacityError, 0)], &expect);
}

#[test]
fn a_trial_without_another_choice_waits_at_once() {
    let mut run = Run::new(&three_choices());
    check_next(&mut run, &[submitted()], &["start 0-0-1", "start 1-0-1"]);
    let mut back_now = run.clone();
    run.state.capacity.no_capacity_until = vec![Time(0), at(61), Time::MAX];
    let expect = ["retry after 0-0-1: Capacity, from 90"];
    check_next(&mut run, &[described(60, job(0), CapacityError, 0)], &expect);
    // A choice counts as having capacity again at exactly that time.
    back_now.state.capacity.no_capacity_until = vec![Time(0), at(60), Time::MAX];
    let expect = ["retry after 0-0-1: NextInstances, from 60", "start 0-0-2 on choice 1"];
    check_next(&mut back_now, &[described(60, job(0), CapacityError, 0)], &expect);
}

#[test]
fn a_choice_without_capacity_is_skipped() {
    // Trial 0 finds no capacity on choice 1. The first choice has capacity; the last choice has none.
    let mut run = Run::new(&three_choices());
    run.state.capacity.no_capacity_until = vec![at(30), Time::MIN, Time::MAX];
    check_next(&mut run, &[submitted()], &["start 0-0-1 on choice 1", "start 1-0-1 on choice 1"]);
    let mut none = run.clone();
    let expect = ["retry after 0-0-1: NextInstances, from 40", "start 0-0-2"];
    check_next(&mut run, &[described(40, job(0), CapacityError, 0)], &expect);
    // No other choice has capacity, and trial 0 has just left its own choice.
    none.state.capacity.no_capacity_until = vec![at(100), Time::MIN, Time::MAX];
    let rulings = none.take(&[described(40, job(0), CapacityError, 0)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(text[0], "retry after 0-0-1: Capacity, from 70");
}

#[test]
fn a_trial_waits_after_trying_every_choice_although_some_have_capacity_again() {
    let mut definition = three_choices();
    definition.limits.max_parallel = 1;
    let mut run = begun(&definition);
    // Each time, the earlier capacity error has expired.
    let expect = ["retry after 0-0-1: NextInstances, from 1000", "start 0-0-2 on choice 1"];
    check_next(&mut run, &[described(1_000, job(0), CapacityError, 0)], &expect);
    let expect = ["retry after 0-0-2: NextInstances, from 2000", "start 0-0-3"];
    check_next(&mut run, &[described(2_000, attempt(0, 2), CapacityError, 0)], &expect);
    let expect = ["retry after 0-0-3: Capacity, from 3000", "start 0-0-4 on choice 1"];
    check_next(&mut run, &[described(3_000, attempt(0, 3), CapacityError, 0)], &expect);
}

#[test]
fn instances_of_all_choices_count_toward_the_instance_limit() {
    let mut definition = three_choices();
    definition.limits.max_instances = Some(2);
    let mut run = Run::new(&definition);
    check_next(&mut run, &[submitted()], &["start 0-0-1", "start 1-0-1"]);
    // Two more instances do not fit beside the running instance.
    check_next(
        &mut run,
        &[described(60, job(0), CapacityError, 0)],
        &["retry after 0-0-1: NextInstances, from 60"],
    );
    assert_eq!(run.state.instances(&run.definition), 1);
}

#[test]
fn the_least_cap_pays_for_the_most_expensive_choice() {
    assert_eq!(three_choices().least_cap(), Some(MicroUsd(5 * WORST_CASE)));
    let mut unknown = three_choices();
    unknown.job.fallbacks[0].rate = None;
    assert_eq!(unknown.least_cap(), None);
}

/// Returns the fact that an account quota defers the start of `key` until second `until`.
fn limited(seconds: i64, key: JobKey, until: i64) -> Recorded {
    let reason = "a limit is reached".to_owned();
    recorded(seconds, Fact::ActionDeferred { job: key, not_before: at(until), reason, quota_exceeded: true })
}

/// Returns three parallel jobs with a choice of two instance types.
fn two_types() -> Definition {
    let mut definition = jobs(10, 3);
    definition.job.fallbacks = vec![Instances {
        count: 2,
        volume_gib: 0,
        rate: Some(Rate { instance_hour: 7, volume_kilo_gib_hour: 0 }),
    }];
    definition
}

#[test]
fn a_quota_on_one_instance_type_moves_jobs_to_the_next_type() {
    let mut run = Run::new(&two_types());
    run.take(&[submitted()]);
    check_next(&mut run, &[limited(5, job(0), 35)], &["stop 0-0-1: other instances"]);
    let expect = ["retry after 0-0-1: NextInstances, from 6", "start 0-0-2 on choice 1"];
    check_next(&mut run, &[never_started(6, job(0))], &expect);
    assert_eq!(run.state.capacity.no_start_before, None, "no start waits for the quota");
    check_next(
        &mut run,
        &[logged(10, job(1), 9, 0.5), described(20, job(1), Completed, 9)],
        &["trial 1 continues at rung 1.0, epoch 9: 1 of 1", "trial 1 completed", "start 3-0-1 on choice 1"],
    );
    assert_eq!(run.state.results.launched, 4, "a cancelled start does not count as a job");
}

/// Only time makes this due: without a wake, the job waited for the next fact.
#[test]
fn regression_a_job_under_a_quota_wakes_when_other_instances_count_as_free() {
    let mut run = Run::new(&two_types());
    run.state.capacity.no_capacity_until = vec![Time(0), at(30)];
    run.take(&[submitted()]);
    check_next(&mut run, &[limited(5, job(0), 35)], &[]);
    assert_eq!(deadline(&run.definition, &run.state), Some(at(30)));
    check_next(&mut run, &[time_passed(30)], &["stop 0-0-1: other instances"]);
}

#[test]
fn a_job_that_starts_before_its_cancellation_is_billed_and_moves_to_the_next_choice() {
    let mut run = Run::new(&two_types());
    run.take(&[submitted()]);
    run.take(&[limited(5, job(0), 35)]);
    run.take(&[phase(6, job(0), Training)]);
    let expect = ["retry after 0-0-1: NextInstances, from 9", "start 0-0-2 on choice 1"];
    check_next(&mut run, &[described(9, job(0), Stopped, 3)], &expect);
}

#[test]
fn starts_wait_when_a_quota_limits_every_type() {
    let mut run = Run::new(&two_types());
    run.take(&[submitted()]);
    run.take(&[limited(5, job(0), 35)]);
    run.take(&[never_started(6, job(0))]);
    check_next(&mut run, &[limited(7, attempt(0, 2), 37)], &[]);
    assert_eq!(run.state.capacity.no_start_before, Some(at(37)));
    // The job keeps its slot, and the deferred action is performed again.
    check_next(&mut run, &[started(38, attempt(0, 2))], &[]);
}

#[test]
fn with_one_instance_type_starts_wait_for_the_quota() {
    let mut run = Run::new(&jobs(10, 3));
    run.take(&[submitted()]);
    check_next(&mut run, &[limited(5, job(0), 35)], &[]);
    assert_eq!(run.state.capacity.no_start_before, Some(at(35)));
}

#[test]
fn a_start_cancelled_while_the_tuning_stops_never_started() {
    let mut run = Run::new(&two_types());
    run.take(&[submitted()]);
    run.take(&[limited(5, job(0), 35)]);
    run.take(&[stop_requested(6)]);
    check_next(&mut run, &[never_started(7, job(0))], &["trial 0 never started"]);
}

/// Found by the simulator: an event with the time of a slow clock and a look with the true time counted as two
/// interruptions.
#[test]
fn an_interruption_seen_twice_counts_once() {
    let mut run = begun(&spot());
    let again = [101, 102, 103].map(|seconds| phase(seconds, job(0), Interrupted));
    check_next(&mut run, &[phase(100, job(0), Interrupted)], &[]);
    check_next(&mut run, &again, &[]);
    assert_eq!(run.state.job(job(0)).unwrap().interruptions(), 1);
}

/// "P6 a rung never promotes a failure": a program failure is not retried either, for any stop reason.
#[test]
fn p6_a_program_failure_before_a_stop_for_interruptions_is_not_retried() {
    let mut run = begun(&spot());
    run.take(&[logged(50, job(0), 1, 0.5)]);
    for n in 1..=3 {
        run.take(&interrupted(n, job(0)));
    }
    let expect = ["trial 0 stopped: 3 interruptions", "start 1-0-1"];
    check_next(&mut run, &[described(400, job(0), AlgorithmError, 50)], &expect);
}

#[test]
fn a_refit_falls_back_to_on_demand() {
    let mut definition = Definition { refit: true, ..spot() };
    definition.limits.target = Some(0.5);
    let mut run = begun(&definition);
    run.take(&[logged(50, job(0), 9, 0.5)]);
    let expect = ["trial 0 completed", "ending: Target", "start 1-0-1 to 9 as refit"];
    check_next(&mut run, &[described(60, job(0), Completed, 50)], &expect);
    run.take(&interrupted(1, job(1)));
    run.take(&interrupted(2, job(1)));
    check_next(&mut run, &interrupted(3, job(1)), &["stop 1-0-1: 3 interruptions"]);
    let expect = ["retry after 1-0-1: OnDemand, from 400", "start 1-0-2 to 9 on demand as refit"];
    check_next(&mut run, &[described(400, job(1), Stopped, 50)], &expect);
}

/// A short wait may end before the service has launched any instances.
#[test]
fn after_a_lack_of_capacity_a_short_spot_job_waits_longer() {
    let mut definition = capped(jobs(9, 1), 9);
    definition.job.spot = true;
    definition.job.max_wait_seconds = Some(4_000);
    let mut run = Run::new(&definition);
    run.state.results.timings.epoch_ms = vec![Millis(10_000); 5];
    run.state.results.timings.tail_ms = vec![Millis(0)];
    run.take(&[submitted()]);
    let wait = |run: &Run, key| run.state.job(key).unwrap().order.limits.max_wait_seconds;
    assert_eq!(wait(&run, job(0)), Some(144 + 144));
    run.take(&[described(60, job(0), MaxWait, 0), time_passed(95)]);
    assert_eq!(wait(&run, attempt(0, 2)), Some(144 + 900));
}

/// The longer wait also counted for the refit, so that a small cap paid for nothing, and the tuning ended at its first lack
/// of capacity.
#[test]
fn regression_a_longer_wait_takes_no_money_of_the_refit() {
    let mut definition = jobs(9, 1);
    definition.refit = true;
    definition.job.spot = true;
    definition.job.max_runtime_seconds = 120;
    definition.job.max_wait_seconds = Some(3_600);
    // A job costs 540 seconds at most, and 1,320 with the longer wait.
    for (cap, wait) in [(1_080, 240), (1_800, 240), (1_860, 1_020)] {
        definition.cap = Some(MicroUsd(cap * SECOND));
        let expect = ["retry after 0-0-1: MaxWait, from 90"];
        let given = [submitted()];
        let run = &mut check(&definition, &given, &[described(60, job(0), MaxWait, 0)], &expect);
        run.take(&[time_passed(95)]);
        let limits = run.state.job(attempt(0, 2)).map(|job| job.order.limits);
        assert_eq!(limits.and_then(|limits| limits.max_wait_seconds), Some(wait), "a cap of {cap} seconds");
    }
}
