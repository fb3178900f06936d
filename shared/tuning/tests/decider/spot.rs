//! Spot capacity that fails a job, and instances that are not to be had: what is tried next, and at what price.

use tuning::definition::{Definition, Instances};
use tuning::fact::JobEnd::{AlgorithmError, CapacityError, Completed, MaxWait, Stopped};
use tuning::fact::JobPhase::{Interrupted, Starting, Training};
use tuning::fact::{Fact, JobKey, Recorded};
use tuning::money::{MicroUsd, Rate};
use tuning::ruling::Ruling;

use crate::support::build::*;
use crate::support::check_next;
use crate::support::run::Run;

/// Spot with a fall-back to on demand, one job at a time. An hour may wait for 4,000 s.
fn spot() -> Definition {
    let mut definition = jobs(10, 1);
    definition.job.spot = true;
    definition.job.max_wait_seconds = Some(4_000);
    definition.spot_fallback = true;
    definition.max_interruptions = 2;
    definition
}

fn begun(definition: &Definition) -> Run {
    let mut run = Run::new(definition);
    check_next(&mut run, &[submitted()], &["start 0-0-1"]);
    run
}

/// Interruption number `n` of a job, and its return.
fn interrupted(n: i64, key: JobKey) -> Vec<Recorded> {
    vec![
        phase(100 * n, key, Interrupted),
        phase(100 * n + 10, key, Starting),
        phase(100 * n + 20, key, Training),
    ]
}

#[test]
fn spot_capacity_that_does_not_come_is_followed_by_an_attempt_on_demand_at_once() {
    let mut run = begun(&spot());
    let expect = ["retry after 0-0-1: OnDemand, from 4000", "start 0-0-2 on demand"];
    check_next(&mut run, &[described(4_000, job(0), MaxWait, 0)], &expect);
    let Some(Ruling::StartOrdered { limits, reservation, .. }) = run.rulings.last() else { panic!() };
    assert_eq!(limits.max_wait_seconds, None);
    assert_eq!(reservation.0, WORST_CASE, "what an hour costs, without the wait");
}

#[test]
fn without_the_fall_back_it_is_waited_for_again() {
    let mut run = begun(&Definition { spot_fallback: false, ..spot() });
    let expect = ["retry after 0-0-1: MaxWait, from 4030", "start 1-0-1"];
    check_next(&mut run, &[described(4_000, job(0), MaxWait, 0)], &expect);
}

#[test]
fn a_job_interrupted_more_often_than_allowed_is_stopped_and_goes_on_on_demand() {
    let mut run = begun(&spot());
    run.take(&interrupted(1, job(0)));
    check_next(&mut run, &interrupted(2, job(0)), &[]);
    check_next(&mut run, &interrupted(3, job(0)), &["stop 0-0-1: 3 interruptions"]);
    let expect = ["retry after 0-0-1: OnDemand, from 400", "start 0-0-2 on demand"];
    check_next(&mut run, &[described(400, job(0), Stopped, 50)], &expect);
}

#[test]
fn one_that_ended_well_before_the_stop_landed_has_ended_well() {
    let mut run = begun(&spot());
    run.take(&[logged(50, job(0), 9, 0.5)]);
    for n in 1..=3 {
        run.take(&interrupted(n, job(0)));
    }
    let expect = ["trial 0 completed", "start 1-0-1"];
    check_next(&mut run, &[described(400, job(0), Completed, 50)], &expect);
}

#[test]
fn on_demand_it_is_not_stopped_for_interruptions_again() {
    let mut run = begun(&spot());
    run.take(&[described(4_000, job(0), MaxWait, 0)]);
    for n in 41..=45 {
        check_next(&mut run, &interrupted(n, attempt(0, 2)), &[]);
    }
}

#[test]
fn a_job_whose_attempt_on_demand_the_cap_does_not_allow_goes_on_on_spot() {
    // On the first choice there is no capacity just now, and the other one is dearer than what is left.
    let mut definition = spot();
    definition.job.fallbacks = three_choices().job.fallbacks;
    definition.limits.max_parallel = 2;
    definition.cap = Some(MicroUsd(4 * WORST_CASE));
    let stopped = |definition: &Definition| {
        let mut run = Run::new(definition);
        run.take(&[submitted()]);
        run.state.short_until = vec![i64::MAX, i64::MAX, 0];
        for n in 1..=3 {
            run.take(&interrupted(n, job(0)));
        }
        run.state.job(job(0)).is_some_and(|job| job.stop.is_some())
    };
    assert!(!stopped(&definition), "an hour of it costs five times as much");
    assert!(stopped(&Definition { cap: Some(MicroUsd(10 * WORST_CASE)), ..definition }));
}

/// Two more choices of instances: dearer, and dearer still.
fn three_choices() -> Definition {
    let mut definition = jobs(20, 2);
    let rate = |factor| Some(Rate { instance_hour: SECOND * 3_600 * factor, volume_kilo_gib_hour: 0 });
    definition.job.fallbacks = vec![
        Instances { count: 2, volume_gib: 0, rate: rate(1) },
        Instances { count: 1, volume_gib: 0, rate: rate(5) },
    ];
    definition
}

#[test]
fn where_there_is_no_capacity_the_next_choice_is_tried_at_once_and_by_new_trials_too() {
    let mut run = Run::new(&three_choices());
    check_next(&mut run, &[submitted()], &["start 0-0-1", "start 1-0-1"]);
    let expect = ["retry after 0-0-1: NextInstances, from 60", "start 0-0-2 on choice 1"];
    check_next(&mut run, &[described(60, job(0), CapacityError, 0)], &expect);
    let reserved = run.state.job(attempt(0, 2)).unwrap().reservation;
    assert_eq!(reserved.0, 2 * WORST_CASE, "what runs is what is reserved");
    check_next(
        &mut run,
        &[logged(70, job(1), 9, 0.5), described(80, job(1), Completed, 10)],
        &["trial 1 goes on at rung 1.0, epoch 9: 1 of 1", "trial 1 completed", "start 2-0-1 on choice 1"],
    );
    // After a while the first choice is asked for again.
    check_next(&mut run, &[described(700, job(2), Completed, 10)], &["trial 2 completed", "start 3-0-1"]);
}

#[test]
fn a_bill_is_that_of_the_instances_that_ran() {
    let mut run = Run::new(&three_choices());
    run.take(&[submitted()]);
    run.take(&[described(60, job(0), CapacityError, 0)]);
    run.take(&[described(100, attempt(0, 2), Completed, 30)]);
    assert_eq!(run.state.ledger.spent.0, 2 * 30 * SECOND);
}

#[test]
fn when_no_choice_has_capacity_the_trial_waits_and_begins_with_the_one_that_is_soonest_back() {
    let mut run = Run::new(&Definition {
        limits: tuning::definition::Limits { max_parallel: 1, ..jobs(20, 1).limits },
        ..three_choices()
    });
    check_next(&mut run, &[submitted()], &["start 0-0-1"]);
    let expect = ["retry after 0-0-1: NextInstances, from 60", "start 0-0-2 on choice 1"];
    check_next(&mut run, &[described(60, job(0), CapacityError, 0)], &expect);
    let expect = ["retry after 0-0-2: NextInstances, from 120", "start 0-0-3 on choice 2"];
    check_next(&mut run, &[described(120, attempt(0, 2), CapacityError, 0)], &expect);
    let expect = ["retry after 0-0-3: Capacity, from 210", "start 1-0-1"];
    check_next(&mut run, &[described(180, attempt(0, 3), CapacityError, 0)], &expect);
}

#[test]
fn one_that_no_other_choice_can_take_waits_at_once() {
    let mut run = Run::new(&three_choices());
    check_next(&mut run, &[submitted()], &["start 0-0-1", "start 1-0-1"]);
    let mut back_now = run.clone();
    run.state.short_until = vec![0, at(61), i64::MAX];
    let expect = ["retry after 0-0-1: Capacity, from 90", "start 2-0-1 on choice 1"];
    check_next(&mut run, &[described(60, job(0), CapacityError, 0)], &expect);
    // A choice is taken to have capacity again from the very time on.
    back_now.state.short_until = vec![0, at(60), i64::MAX];
    let expect = ["retry after 0-0-1: NextInstances, from 60", "start 0-0-2 on choice 1"];
    check_next(&mut back_now, &[described(60, job(0), CapacityError, 0)], &expect);
}

#[test]
fn a_choice_that_lacks_capacity_elsewhere_is_no_other_choice() {
    // Trial 0 runs on choice 1 and finds no capacity there; the first choice has it, the last has not.
    let mut run = Run::new(&three_choices());
    run.state.short_until = vec![at(30), i64::MIN, i64::MAX];
    check_next(&mut run, &[submitted()], &["start 0-0-1 on choice 1", "start 1-0-1 on choice 1"]);
    let mut none = run.clone();
    let expect = ["retry after 0-0-1: NextInstances, from 40", "start 0-0-2"];
    check_next(&mut run, &[described(40, job(0), CapacityError, 0)], &expect);
    // Nobody else has it: not even its own choice, which it has just left.
    none.state.short_until = vec![at(100), i64::MIN, i64::MAX];
    let rulings = none.take(&[described(40, job(0), CapacityError, 0)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(text[0], "retry after 0-0-1: Capacity, from 70");
}

#[test]
fn a_trial_waits_after_as_many_moves_as_there_are_choices_although_some_are_free_again() {
    let mut definition = three_choices();
    definition.limits.max_parallel = 1;
    let mut run = begun(&definition);
    // Each time the memory of the choice before has passed.
    let expect = ["retry after 0-0-1: NextInstances, from 1000", "start 0-0-2 on choice 1"];
    check_next(&mut run, &[described(1_000, job(0), CapacityError, 0)], &expect);
    let expect = ["retry after 0-0-2: NextInstances, from 2000", "start 0-0-3"];
    check_next(&mut run, &[described(2_000, attempt(0, 2), CapacityError, 0)], &expect);
    let expect = ["retry after 0-0-3: Capacity, from 3030", "start 1-0-1 on choice 1"];
    check_next(&mut run, &[described(3_000, attempt(0, 3), CapacityError, 0)], &expect);
}

#[test]
fn instances_of_all_choices_count_for_the_most_that_may_run() {
    let mut definition = three_choices();
    definition.limits.max_instances = Some(2);
    let mut run = Run::new(&definition);
    check_next(&mut run, &[submitted()], &["start 0-0-1", "start 1-0-1"]);
    // Two instances do not fit beside the one that runs.
    check_next(
        &mut run,
        &[described(60, job(0), CapacityError, 0)],
        &["retry after 0-0-1: NextInstances, from 60"],
    );
    assert_eq!(run.state.instances(&run.definition), 1);
}

#[test]
fn the_least_cap_pays_the_dearest_choice() {
    assert_eq!(three_choices().least_cap(), Some(MicroUsd(5 * WORST_CASE)));
    let mut unknown = three_choices();
    unknown.job.fallbacks[0].rate = None;
    assert_eq!(unknown.least_cap(), None);
}

/// A quota of the account keeps `key` from being started until then.
fn limited(seconds: i64, key: JobKey, until: i64) -> Recorded {
    let reason = "a limit is reached".to_owned();
    recorded(seconds, Fact::ActionDeferred { job: key, not_before: at(until), reason, limited: true })
}

/// Three jobs at once on either of two kinds of instances.
fn two_kinds() -> Definition {
    let mut definition = jobs(10, 3);
    definition.job.fallbacks = vec![Instances {
        count: 2,
        volume_gib: 0,
        rate: Some(Rate { instance_hour: 7, volume_kilo_gib_hour: 0 }),
    }];
    definition
}

#[test]
fn a_quota_on_one_kind_of_instances_lets_others_go_first_on_the_next_kind() {
    let mut run = Run::new(&two_kinds());
    run.take(&[submitted()]);
    check_next(&mut run, &[limited(5, job(0), 35)], &["stop 0-0-1: other instances"]);
    let expect = ["retry after 0-0-1: NextInstances, from 6", "start 0-0-2 on choice 1"];
    check_next(&mut run, &[never_started(6, job(0))], &expect);
    assert_eq!(run.state.hold_starts_until, None, "nobody waits for it");
    check_next(
        &mut run,
        &[logged(10, job(1), 9, 0.5), described(20, job(1), Completed, 9)],
        &["trial 1 goes on at rung 1.0, epoch 9: 1 of 1", "trial 1 completed", "start 3-0-1 on choice 1"],
    );
    assert_eq!(run.state.launched, 4, "what was called off is no job");
}

#[test]
fn one_that_was_started_before_it_could_be_called_off_is_billed_and_goes_on_elsewhere() {
    let mut run = Run::new(&two_kinds());
    run.take(&[submitted()]);
    run.take(&[limited(5, job(0), 35)]);
    run.take(&[phase(6, job(0), Training)]);
    let expect = ["retry after 0-0-1: NextInstances, from 9", "start 0-0-2 on choice 1"];
    check_next(&mut run, &[described(9, job(0), Stopped, 3)], &expect);
}

#[test]
fn when_all_kinds_are_limited_starts_wait() {
    let mut run = Run::new(&two_kinds());
    run.take(&[submitted()]);
    run.take(&[limited(5, job(0), 35)]);
    run.take(&[never_started(6, job(0))]);
    check_next(&mut run, &[limited(7, attempt(0, 2), 37)], &[]);
    assert_eq!(run.state.hold_starts_until, Some(at(37)));
    // The job keeps its place, and is tried again by the one who performs it.
    check_next(&mut run, &[started(38, attempt(0, 2))], &[]);
}

#[test]
fn with_one_kind_of_instances_a_quota_is_waited_for() {
    let mut run = Run::new(&jobs(10, 3));
    run.take(&[submitted()]);
    check_next(&mut run, &[limited(5, job(0), 35)], &[]);
    assert_eq!(run.state.hold_starts_until, Some(at(35)));
}

#[test]
fn one_that_is_called_off_while_the_tuning_is_stopped_never_started() {
    let mut run = Run::new(&two_kinds());
    run.take(&[submitted()]);
    run.take(&[limited(5, job(0), 35)]);
    run.take(&[stop_requested(6)]);
    check_next(&mut run, &[never_started(7, job(0))], &["trial 0 never started"]);
}

/// Found by the simulator: an event that a slow clock had put earlier, and a look that told the true time, counted twice.
#[test]
fn an_interruption_that_is_seen_in_two_ways_counts_once() {
    let mut run = begun(&spot());
    let again = [101, 102, 103].map(|seconds| phase(seconds, job(0), Interrupted));
    check_next(&mut run, &[phase(100, job(0), Interrupted)], &[]);
    check_next(&mut run, &again, &[]);
    assert_eq!(run.state.job(job(0)).unwrap().interruptions, 1);
}

/// "P6 a rung never promotes a failure": nor is a program that failed tried again, whatever it was to be stopped for.
#[test]
fn p6_a_program_that_failed_before_its_stop_for_interruptions_landed_is_not_tried_again() {
    let mut run = begun(&spot());
    run.take(&[logged(50, job(0), 1, 0.5)]);
    for n in 1..=3 {
        run.take(&interrupted(n, job(0)));
    }
    let expect = ["trial 0 stopped: 3 interruptions", "start 1-0-1"];
    check_next(&mut run, &[described(400, job(0), AlgorithmError, 50)], &expect);
}

#[test]
fn the_best_configuration_s_last_training_goes_on_on_demand_as_well() {
    let mut definition = Definition { refit: true, ..spot() };
    definition.limits.target = Some(0.5);
    let mut run = begun(&definition);
    run.take(&[logged(50, job(0), 9, 0.5)]);
    let expect = ["trial 0 completed", "start 1-0-1 to 9 once more"];
    check_next(&mut run, &[described(60, job(0), Completed, 50)], &expect);
    run.take(&interrupted(1, job(1)));
    run.take(&interrupted(2, job(1)));
    check_next(&mut run, &interrupted(3, job(1)), &["stop 1-0-1: 3 interruptions"]);
    let expect = ["retry after 1-0-1: OnDemand, from 400", "start 1-0-2 to 9 on demand once more"];
    check_next(&mut run, &[described(400, job(1), Stopped, 50)], &expect);
}
