//! Cluster sizes as a dimension of the search: each trial keeps its own number of instances.

use std::collections::BTreeMap;

use proptest::prelude::*;
use search::{Configuration, Domain, Parameter, Space};
use tuning::definition::{Definition, INSTANCE_COUNT, Instances, Scheduling};
use tuning::log::fact::JobEnd::{CapacityError, Completed, MaxWait, ServiceError};
use tuning::log::fact::{Fact, JobKey, JobPhase};
use tuning::log::reasons::EndReason;
use tuning::log::ruling::{Order, Ruling};
use tuning::unit::ids::{ChoiceId, SizeId};
use tuning::unit::money::{MicroUsd, Rate};
use tuning::unit::time::Millis;

use crate::histories::{definitions, faults};
use crate::quota::answered;
use crate::support::build::*;
use crate::support::run::Run;
use crate::support::service::Faults;
use crate::support::world::World;
use crate::support::{cases, check, check_next};
use crate::waits::{done, on, two_rungs};

/// Returns `definition` with the cluster sizes 1, 2 and 4, which the first trials have in the order of `first`.
pub(crate) fn sized(definition: Definition, first: &[u32]) -> Definition {
    let mut definition = definition;
    let sizes = vec![1, 2, 4];
    let mut parameters = definition.space.parameters().to_vec();
    let values = sizes.iter().map(u32::to_string).collect();
    parameters.push(Parameter { name: INSTANCE_COUNT.to_owned(), domain: Domain::Ordinal { values } });
    definition.space = Space::new(parameters).unwrap();
    let given = |count: &u32| Configuration([(INSTANCE_COUNT.to_owned(), count.to_string())].into());
    definition.initial = first.iter().map(given).collect();
    definition.job.fallbacks = instances(&sizes[1..], SECOND);
    definition.job.sizes = sizes;
    definition
}

/// Returns instance choices with these numbers of instances, at a price for each second of one.
fn instances(counts: &[u32], second: u64) -> Vec<Instances> {
    let rate = Some(Rate { instance_hour: second * 3_600, volume_kilo_gib_hour: 0 });
    counts.iter().map(|count| Instances { count: *count, volume_gib: 0, rate }).collect()
}

/// Adds a second instance type at twice the price.
fn two_types(mut definition: Definition) -> Definition {
    let sizes = definition.job.sizes.clone();
    definition.job.fallbacks.extend(instances(&sizes, 2 * SECOND));
    definition
}

fn begun(definition: &Definition) -> Run {
    let mut run = Run::new(definition);
    run.take(&[submitted()]);
    run
}

/// Returns trial, instances and reservation, in worst cases of one instance, of each live job.
fn live(run: &Run) -> Vec<(u32, u32, u64)> {
    let shape = &run.definition.job;
    let of_job = |reserved: MicroUsd| reserved.0 / WORST_CASE;
    run.state
        .jobs()
        .map(|(key, _, job)| {
            (key.trial.0, shape.instances(job.order.instances).count, of_job(job.bill.reservation))
        })
        .collect()
}

#[test]
fn each_trial_runs_and_reserves_for_its_own_number_of_instances() {
    let run = begun(&capped(sized(jobs(9, 3), &[4, 1, 2]), 100));
    assert_eq!(live(&run), [(0, 4, 4), (1, 1, 1), (2, 2, 2)]);
    assert_eq!(run.state.money.ledger.reserved, MicroUsd(7 * WORST_CASE));
}

#[test]
fn a_bill_counts_the_instances_of_its_job() {
    let mut run = begun(&sized(random(3, 1), &[4]));
    run.take(&[logged(10, job(0), 1, 0.5), described(40, job(0), Completed, 30)]);
    assert_eq!(run.state.money.ledger.spent, MicroUsd(30 * 4 * SECOND));
}

#[test]
fn the_first_trials_have_every_size() {
    let mut run = begun(&sized(random(16, 16), &[]));
    run.take(&[time_passed(1)]);
    for count in [1, 2, 4] {
        let trials = live(&run).iter().filter(|(_, instances, _)| *instances == count).count();
        assert!(trials >= 4, "{trials} of 16 trials have {count} instances");
    }
}

/// Small clusters that always fit would keep a large one waiting for ever.
#[test]
fn a_large_cluster_blocks_the_jobs_behind_it_until_it_has_its_instances() {
    let mut definition = sized(random(9, 4), &[1, 2, 4, 1]);
    definition.limits.max_instances = Some(5);
    let mut run = begun(&definition);
    assert_eq!(live(&run), [(0, 1, 1), (1, 2, 2)], "four more would be seven");
    assert_eq!(run.state.search.drawn.as_ref().map(|(trial, ..)| trial.0), Some(2));
    let done = [logged(10, job(1), 1, 0.5), described(20, job(1), Completed, 30)];
    check_next(&mut run, &done, &["trial 1 completed", "start 2-0-1 on choice 2"]);
    check_next(&mut run, &[time_passed(30)], &[]);
}

#[test]
fn a_size_that_the_cap_cannot_pay_becomes_the_largest_that_it_can() {
    let run = begun(&capped(sized(random(9, 1), &[4]), 3));
    assert_eq!(live(&run), [(0, 2, 2)]);
    let trial = &run.state.trials.values().next().unwrap().configuration;
    assert_eq!(trial.get(INSTANCE_COUNT), Some("2"), "the configuration says how it runs");
}

/// The steps did not record that a trial was drawn with another size.
#[test]
fn a_lowered_size_is_recorded_with_the_drawn_one() {
    let mut run = Run::new(&capped(sized(random(9, 1), &[4]), 3));
    check_next(&mut run, &[submitted()], &["trial 0 is drawn: \"4\"", "start 0-0-1 on choice 1"]);
}

/// A large trial waited for the month's cap although the granted money paid a smaller one.
#[test]
fn a_size_that_the_month_denies_becomes_one_that_it_grants() {
    let mut run = Run::new(&granting(sized(random(9, 1), &[4, 4])));
    let ask = format!("ask 1: {} to {}", 4 * WORST_CASE, 4 * WORST_CASE);
    check_next(&mut run, &[submitted()], &[&ask, "trial 0 is drawn: \"4\""]);
    check_next(&mut run, &[granted_amount(1, 1, 0)], &[]);
    // The smallest size asks again, for the money of one instance.
    let ask = format!("ask 2: {WORST_CASE} to {WORST_CASE}");
    check_next(&mut run, &[time_passed(301)], &[&ask]);
    // The month has money again, so the drawn size asks.
    let ask = format!("ask 3: {} to {}", 2 * WORST_CASE, 2 * WORST_CASE);
    check_next(&mut run, &[granted_amount(302, 2, 2 * WORST_CASE)], &[&ask]);
    check_next(&mut run, &[granted_amount(303, 3, 0)], &["start 0-0-1 on choice 1"]);
}

#[test]
fn a_large_job_waits_for_money_that_a_running_job_may_free() {
    let mut run = begun(&capped(sized(random(9, 2), &[2, 4]), 5));
    assert_eq!(live(&run), [(0, 2, 2)]);
    let done = [logged(10, job(0), 1, 0.5), described(20, job(0), Completed, 30)];
    run.take(&done);
    assert_eq!(live(&run), [(1, 4, 4)]);
}

#[test]
fn a_lack_of_capacity_changes_the_instance_type_and_not_the_size() {
    let definition = two_types(sized(random(9, 1), &[2, 2]));
    let expect = [
        "retry after 0-0-1: NextInstances, from 20",
        // The second type, with two instances.
        "start 0-0-2 on choice 4",
    ];
    check(&definition, &[submitted()], &[described(20, job(0), CapacityError, 0)], &expect);
}

/// Each fact drew the waiting trial again, until it had a size that could start.
#[test]
fn a_trial_that_waits_for_instances_keeps_its_configuration() {
    let mut definition = sized(jobs(9, 2), &[4, 4]);
    definition.limits.max_instances = Some(5);
    let mut run = Run::new(&definition);
    check_next(&mut run, &[submitted()], &["start 0-0-1 on choice 2", "trial 1 is drawn: \"4\""]);
    // A further draw would give a smaller size.
    run.definition.initial = sized(jobs(9, 2), &[4, 1]).initial;
    run.take(&[logged(10, job(0), 1, 0.5)]);
    run.take(&[described(20, job(0), Completed, 30)]);
    assert_eq!(live(&run).first(), Some(&(1, 4, 4)));
}

/// One size without capacity held the starts of all sizes.
#[test]
fn a_size_without_capacity_holds_only_its_own_trials() {
    let mut run = begun(&sized(random(9, 1), &[4, 1, 4, 2]));
    let lack = [described(20, job(0), CapacityError, 0)];
    check_next(&mut run, &lack, &["retry after 0-0-1: Capacity, from 50", "start 1-0-1"]);
    let done = [logged(30, job(1), 1, 0.5), described(40, job(1), Completed, 30)];
    // Trial 2 was drawn with four instances.
    check_next(&mut run, &done, &["trial 1 completed", "trial 2 is drawn: \"4\"", "start 2-0-1 on choice 1"]);
    let done = [logged(45, job(2), 1, 0.5), described(50, job(2), Completed, 30)];
    check_next(&mut run, &done, &["trial 2 completed", "start 0-0-2 on choice 2"]);
}

/// No size is smaller.
#[test]
fn the_smallest_size_becomes_a_larger_one_while_it_lacks_capacity() {
    let mut run = begun(&sized(random(9, 2), &[1, 4, 1]));
    let expect =
        ["retry after 0-0-1: Capacity, from 50", "trial 2 is drawn: \"1\"", "start 2-0-1 on choice 1"];
    check_next(&mut run, &[described(20, job(0), CapacityError, 0)], &expect);
}

/// Trial 2 is the best of two, and waits for the capacity of four instances.
#[test]
fn a_promotion_without_capacity_does_not_block_new_trials_of_other_sizes() {
    let definition = sized(two_rungs(100, Scheduling::Asynchronous), &[4, 1, 4, 4, 1, 1, 1]);
    let mut run = begun(&definition);
    run.take(&[logged(5, on(0, 0), 1, 0.4), logged(5, on(2, 0), 1, 0.4)]);
    run.take(&[described(10, on(3, 0), CapacityError, 0)]);
    run.take(&done(12, on(0, 0), 4, 0.5));
    let expect = ["trial 2 waits at rung 0.0, epoch 4", "start 6-0-1 to 4"];
    check_next(&mut run, &done(14, on(2, 0), 4, 0.6), &expect);
}

/// Both facts arrive together.
#[test]
fn a_stop_request_is_the_reason_although_a_lowered_cap_puts_a_size_out_of_reach() {
    let mut run = begun(&capped(sized(two_rungs(100, Scheduling::Synchronous), &[4, 1]), 40));
    run.take(&done(10, on(0, 0), 4, 0.5));
    let cap = Some(MicroUsd(3 * WORST_CASE));
    let lowered = recorded(20, Fact::LimitsChanged { cap, max_parallel: None, paused: None });
    let rulings = run.take(&[lowered, stop_requested(20)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert!(text.contains(&"trial 0 stopped: tuning ending".to_owned()), "{text:?}");
}

#[test]
fn a_silent_job_of_any_size_is_looked_at() {
    let mut run = begun(&silent_for(sized(random(9, 1), &[4]), 600));
    run.take(&[phase(100, job(0), JobPhase::Training)]);
    check_next(&mut run, &[time_passed(700)], &["look at 0-0-1, silent since 100"]);
}

/// The lack of one size ended the tuning while a job of another size waited for its instances as usual.
#[test]
fn a_size_without_capacity_does_not_end_a_tuning_whose_other_jobs_only_start() {
    let mut definition = sized(random(9, 1), &[4, 1, 1]);
    definition.settings.capacity_wait_seconds = 60;
    let mut run = begun(&definition);
    check_next(
        &mut run,
        &[described(20, job(0), CapacityError, 0)],
        &["retry after 0-0-1: Capacity, from 50", "start 1-0-1"],
    );
    check_next(&mut run, &[time_passed(200)], &[]);

    let done = [logged(230, job(1), 1, 0.5), described(240, job(1), Completed, 30)];
    check_next(&mut run, &done, &["trial 1 completed", "start 0-0-2 on choice 2"]);
}

/// A quota below one size failed the whole tuning.
#[test]
fn a_quota_below_a_size_leaves_the_smaller_ones() {
    let mut run = begun(&sized(random(9, 1), &[4, 4, 4]));
    check_next(&mut run, &[answered(5, job(0), 2, 4)], &["stop 0-0-1: out of reach"]);
    let expect = ["trial 0 never started", "trial 1 is drawn: \"4\"", "start 1-0-1 on choice 1"];
    check_next(&mut run, &[never_started(6, job(0))], &expect);
    // Two instances are in use elsewhere, so the quota is not too small.
    check_next(&mut run, &[answered(7, job(1), 2, 2)], &[]);

    let mut none = begun(&sized(random(9, 1), &[4, 2, 1]));
    check_next(&mut none, &[answered(5, job(0), 0, 4)], &["stop 0-0-1: out of reach"]);
    check_next(&mut none, &[never_started(6, job(0))], &["trial 0 never started", "start 1-0-1 on choice 1"]);
    check_next(&mut none, &[answered(7, job(1), 0, 2)], &["stop 1-0-1: out of reach"]);
    check_next(&mut none, &[never_started(8, job(1))], &["trial 1 never started", "start 2-0-1"]);
    let ending = none.take(&[answered(9, job(2), 0, 1)]);
    assert!(matches!(ending.first(), Some(Ruling::TuningEnding { why: EndReason::Failed(_) })), "{ending:?}");
}

/// The trial stayed on the second type until the tuning failed after a day, because it had moved once.
#[test]
fn a_trial_leaves_a_quota_below_its_size_for_one_without_room() {
    let mut run = begun(&two_types(sized(random(9, 1), &[2, 2])));
    // The quota of the first type is in use elsewhere.
    check_next(&mut run, &[answered(5, job(0), 2, 2)], &["stop 0-0-1: other instances"]);
    let expect = ["retry after 0-0-1: NextInstances, from 6", "start 0-0-2 on choice 4"];
    check_next(&mut run, &[never_started(6, job(0))], &expect);
    let second = JobKey { attempt: 2, ..job(0) };
    check_next(&mut run, &[answered(7, second, 1, 2)], &[]);
    check_next(&mut run, &[time_passed(700)], &["stop 0-0-2: other instances"]);
    let expect = ["retry after 0-0-2: NextInstances, from 701", "start 0-0-3 on choice 1"];
    check_next(&mut run, &[never_started(701, second)], &expect);
    // Both types lack room or quota: the trial waits on the one that can get room.
    let third = JobKey { attempt: 3, ..job(0) };
    check_next(&mut run, &[answered(702, third, 2, 2)], &[]);
    check_next(&mut run, &[time_passed(2_000)], &[]);
}

/// The quota on demand took the size from trials that spot could run.
#[test]
fn a_quota_on_demand_does_not_count_for_spot() {
    let mut definition = sized(random(9, 1), &[4, 4, 4]);
    definition.job.spot = true;
    definition.job.max_wait_seconds = Some(7_200);
    definition.spot_fallback = true;
    let mut run = begun(&definition);
    run.take(&[described(20, job(0), MaxWait, 0)]);
    let retry = JobKey { attempt: 2, ..job(0) };
    run.take(&[time_passed(21)]);
    assert!(run.state.job(retry).is_some_and(|job| job.order.on_demand), "{:?}", run.state.trials);
    run.take(&[answered(25, retry, 1, 4)]);
    assert!(!run.state.capacity.below_need.contains(&ChoiceId(2)), "{:?}", run.state.capacity);
}

/// A waiting trial that the cap could never continue blocked its rung, and all new trials.
#[test]
fn a_waiting_trial_that_the_cap_can_never_continue_makes_room_for_a_smaller_one() {
    let mut definition = sized(two_rungs(100, Scheduling::Asynchronous), &[4, 1, 1, 1]);
    definition.limits.max_parallel = 2;
    definition.cap = Some(MicroUsd(5_500 * SECOND));
    let mut run = Run::new(&definition);
    run.state.results.timings.epoch_ms = vec![Millis(100_000); 5];
    run.state.results.timings.epoch_sizes = vec![SizeId::at(0); 5];
    run.state.results.timings.startup_ms = vec![Millis(0); 5];
    check_next(&mut run, &[submitted()], &["start 0-0-1 to 4 on choice 2", "start 1-0-1 to 9"]);
    let mut first = done(10, on(0, 0), 4, 0.9);
    first[1] = described(11, on(0, 0), Completed, 670);
    check_next(
        &mut run,
        &first,
        &["trial 0 waits at rung 0.0, epoch 4", "trial 0 stopped: out of reach", "start 2-0-1 to 4"],
    );
    let expect = [
        "trial 2 waits at rung 0.0, epoch 4",
        "trial 2 promoted from rung 0.0 to 9: 1 of 2, best 1",
        "start 2-1-2 to 9",
    ];
    check_next(&mut run, &done(20, on(2, 0), 4, 0.1), &expect);
}

/// Plays a history, and returns the numbers of instances of the jobs of each trial.
fn played(definition: &Definition, faults: Faults) -> BTreeMap<TrialId, Vec<u32>> {
    let mut world = World::new(Run::sampled(definition, 9), faults);
    world.play();
    let mut jobs: BTreeMap<TrialId, Vec<u32>> = BTreeMap::new();
    for ruling in &world.run.rulings {
        if let Ruling::Order(Order::Start { job, configuration, launch, .. }) = ruling {
            let count = definition.job.instances(launch.instances).count;
            assert_eq!(configuration.get(INSTANCE_COUNT), Some(count.to_string().as_str()));
            jobs.entry(job.trial).or_default().push(count);
        }
    }
    jobs
}

#[test]
fn a_promoted_trial_keeps_its_size() {
    let jobs = played(&promoting(sized(jobs(40, 4), &[]), Scheduling::Asynchronous), Faults::default());
    assert!(jobs.values().any(|counts| counts.len() > 1 && counts.first() > Some(&1)), "{jobs:?}");
}

proptest! {
    #![proptest_config(cases(80))]

    /// [`World::play`] checks the ends and the ledger of every history.
    #[test]
    fn all_jobs_of_a_trial_have_its_size(
        definition in definitions(),
        faults in faults(),
        (refit, other, promotes) in any::<(bool, bool, bool)>(),
    ) {
        let mut definition = sized(Definition { refit, ..definition }, &[]);
        definition.limits.max_instances = definition.limits.max_instances.map(|most| most.max(4));
        // The cap pays for a job of any size.
        definition.cap = definition.cap.map(|cap| MicroUsd(cap.0.saturating_mul(4)));
        if other {
            definition = two_types(definition);
        }
        if promotes && definition.compared().is_some() {
            definition = promoting(definition, Scheduling::Asynchronous);
        }
        for counts in played(&definition, faults).values() {
            prop_assert!(counts.iter().all(|count| Some(count) == counts.first()), "{counts:?}");
        }
    }
}

/// A limit from the times of four instances ended the jobs of one instance too early.
#[test]
fn limits_come_from_jobs_of_the_same_size_or_allow_for_a_slower_one() {
    let limit_of = |size: u32, timed: u32, startup: i64| {
        let mut definition = sized(jobs(9, 1), &[size]);
        definition.cap = Some(MicroUsd(100_000 * SECOND));
        let mut run = Run::new(&definition);
        let timed = definition.job.sizes.iter().position(|count| *count == timed).unwrap();
        run.state.results.timings.epoch_ms = vec![Millis(10_000); 9];
        run.state.results.timings.epoch_sizes = vec![SizeId::at(timed); 9];
        run.state.results.timings.startup_ms = vec![Millis(startup); 9];
        run.state.results.timings.startup_sizes = vec![SizeId::at(timed); 9];
        run.state.results.timings.tail_ms = vec![Millis(0)];
        run.take(&[submitted()]);
        run.state.jobs().next().unwrap().2.order.limits.max_runtime_seconds
    };
    assert_eq!(limit_of(4, 4, 0), 132, "145 % of 9 x 10 seconds");
    assert_eq!(limit_of(1, 4, 0), 526, "a quarter of the instances may take four times as long");
    assert_eq!(limit_of(4, 1, 0), 132, "more instances may be no faster");
    // The first epoch is part of a start-up.
    let of_startup = |size, timed| limit_of(size, timed, 20_000) - limit_of(size, timed, 0);
    assert_eq!((of_startup(4, 4), of_startup(1, 4)), (29, 117));
}

/// Found by the simulator: a further attempt of a refit that waited for money was recorded as a new trial.
#[test]
fn a_refit_that_waits_for_money_is_not_drawn_again() {
    let mut definition = Definition { refit: true, ..granting(sized(jobs(100, 1), &[1])) };
    definition.limits.target = Some(0.7);
    let mut run = begun(&definition);
    let trained = [logged(10, job(0), 3, 0.75), described(20, job(0), Completed, 10)];
    for fact in [granted(1, 1, 2)].into_iter().chain(trained) {
        run.take(&[fact]);
    }
    assert_eq!(run.state.refit, Some(job(1)), "{:?}", run.rulings);
    run.take(&[returned(21, 1)]);
    run.take(&[described(30, job(1), ServiceError, 1)]);
    run.take(&[returned(31, 2)]);
    check_next(&mut run, &[time_passed(60)], &[&format!("ask 2: {WORST_CASE} to {WORST_CASE}")]);
}

/// The sampler tries each size often enough before it chooses by itself.
#[test]
fn each_trial_of_the_search_counts_once_for_its_size() {
    let mut definition = Definition { refit: true, ..sized(random(20, 2), &[4, 1, 4]) };
    definition.limits.target = Some(0.7);
    let mut run = begun(&definition);
    assert_eq!(run.state.results.trials_by_size, [1, 0, 1]);
    let expect = ["retry after 1-0-1: ServiceError, from 40", "start 2-0-1 on choice 2"];
    check_next(&mut run, &[described(10, job(1), ServiceError, 1)], &expect);
    assert_eq!(run.state.results.trials_by_size, [1, 0, 2]);
    let first = [logged(50, job(2), 1, 0.5), described(60, job(2), Completed, 50)];
    check_next(&mut run, &first, &["trial 2 completed", "start 1-0-2"]);
    run.take(&[logged(70, job(0), 3, 0.75), described(80, attempt(1, 2), Completed, 10)]);
    let expect = ["trial 0 completed", "ending: Target", "start 3-0-1 to 3 on choice 2 as refit"];
    check_next(&mut run, &[described(90, job(0), Completed, 10)], &expect);
    assert_eq!(run.state.results.trials_by_size, [1, 0, 2], "neither the retry nor the refit is a new trial");
    assert!(begun(&random(20, 2)).state.results.trials_by_size.is_empty(), "without sizes");
}

/// The search could otherwise spend the money of a refit with four instances.
#[test]
fn the_money_for_the_refit_pays_for_the_largest_size() {
    let definition = Definition { refit: true, ..sized(random(9, 1), &[2]) };
    assert_eq!(live(&begun(&capped(definition.clone(), 6))), [(0, 2, 2)]);
    assert_eq!(live(&begun(&capped(definition, 5))), [(0, 1, 1)], "two instances and the refit cost six");
}
