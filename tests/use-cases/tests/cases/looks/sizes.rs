//! What a training costs on each cluster size, as Describe shows it.

use port_tests::memory::MemoryTable;
use serde_json::json;
use tuning::definition::INSTANCE_COUNT;
use tuning::log::fact::{JobEnd, JobPhase};
use tuning::unit::money::MicroUsd;
use use_cases::describe::describe;
use wire::describe::Costs;
use wire::sample;

use super::world::{World, now};
use crate::support::place;

/// Cost of a second of one instance, in micro-dollars.
const CENT: u64 = 10_000;

/// Creates a tuning that chooses between one and two instances.
fn choosing() -> World {
    let changes = json!({
        "HyperParameterTuningJobConfig": {
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 8, "MaxParallelTrainingJobs": 8},
        },
        "Controller": {
            "InstanceCounts": [1, 2],
            "MaxCostUsd": 1000,
            "EpochPattern": r"epoch (\d+)",
            "InstancePricesUsdPerHour": {"ml.m5.large": 36},
        },
    });
    World::of(MemoryTable::new(), &sample::with(sample::request("t"), changes))
}

/// Returns a trial with this number of instances.
fn of_size(world: &World, count: &str) -> u32 {
    let state = world.state();
    let mut trials = state.trials.iter();
    let found =
        trials.find(|(_, trial)| trial.configuration.0.get(INSTANCE_COUNT).is_some_and(|n| n == count));
    found.unwrap().0.0
}

/// Trains a trial to its end. Its first epoch takes four seconds from the start, and each later one `epoch_ms`.
fn trained(world: &mut World, trial: u32, epoch_ms: i64, value: f64) {
    world.phase(trial, JobPhase::Training);
    world.now += 4_000;
    world.logged(trial, &[(1, value)]);
    world.now += 8 * epoch_ms - 1_000;
    world.logged(trial, &[(9, value)]);
    world.now += 2_000;
    world.billed(trial, JobEnd::Completed, 100);
}

fn costs(world: &World) -> Costs {
    now(describe(&world.store, &place(), &world.id)).unwrap().unwrap().controller.costs
}

#[test]
fn the_times_and_costs_of_each_cluster_size_are_shown() {
    let mut world = choosing();
    let (one, two) = (of_size(&world, "1"), of_size(&world, "2"));
    let trials = |count: &str| {
        let state = world.state();
        let of_size = |trial: &tuning::trial::Trial| trial.configuration.0[INSTANCE_COUNT] == count;
        u32::try_from(state.trials.values().filter(|trial| of_size(trial)).count()).unwrap()
    };
    let counts = [trials("1"), trials("2")];
    trained(&mut world, one, 10_000, 0.5);
    trained(&mut world, two, 6_250, 0.6);
    let Costs { cluster_sizes, front, .. } = costs(&world);
    let shown = cluster_sizes.iter().map(|size| (size.instance_count, size.trials, size.best_value));
    assert_eq!(shown.collect::<Vec<_>>(), [(1, counts[0], Some(0.5)), (2, counts[1], Some(0.6))]);
    let epochs = cluster_sizes.iter().map(|size| (size.seconds_per_epoch, size.usd_per_epoch, size.speed_up));
    let expected = [
        (Some(10.0), Some(MicroUsd(10 * CENT)), Some(1.0)),
        (Some(6.25), Some(MicroUsd(2 * 6 * CENT + CENT / 2)), Some(1.6)),
    ];
    assert_eq!(epochs.collect::<Vec<_>>(), expected);
    // The start-up with the first epoch, eight more, and the tail.
    let trainings = cluster_sizes.iter().map(|size| (size.seconds_per_training, size.usd_per_training));
    let expected = [
        (Some(4.0 + 80.0 + 3.0), Some(MicroUsd(87 * CENT))),
        (Some(4.0 + 50.0 + 3.0), Some(MicroUsd(2 * 57 * CENT))),
    ];
    assert_eq!(trainings.collect::<Vec<_>>(), expected);
    let front = front.iter().map(|point| (point.trial, point.value, point.usd_per_training));
    let expected = [(two, 0.6, Some(MicroUsd(2 * 57 * CENT))), (one, 0.5, Some(MicroUsd(87 * CENT)))];
    assert_eq!(front.collect::<Vec<_>>(), expected);
}
