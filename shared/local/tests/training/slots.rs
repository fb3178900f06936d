//! Jobs wait for slots of the machine.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::timeout;
use use_cases::ports::training::TrainingJobs;

use crate::world::{PATIENCE, World, instances, processes, request, spot, until};

const ENDLESS: &str = "echo up; while :; do sleep 0.01; done";

async fn with_slots(script: &str, slots: u32) -> World {
    World::with(script, |config| config.slots = NonZeroU32::new(slots)).await
}

async fn trains(world: &World, job: &str, hosts: usize) {
    until(&format!("{job} trains"), || world.messages(&format!("{job}/")).len() >= hosts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_get_slots_in_the_order_of_their_creation() {
    let world = with_slots(ENDLESS, 2).await;
    world.create(&request("first")).await;
    trains(&world, "first", 1).await;
    world.create(&instances(request("wide"), 2)).await;
    until("the wide job waits", || world.states("wide") == ["Starting"]).await;
    // A slot is free, but a smaller job must not starve the wide one.
    world.create(&request("last")).await;
    world.service.stop("first").await.unwrap();
    trains(&world, "wide", 2).await;
    assert_eq!(processes(&world.root(), "last"), Vec::<String>::new());
    assert_eq!(world.states("last"), ["Starting"]);
    world.service.stop("wide").await.unwrap();
    trains(&world, "last", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_with_more_hosts_than_slots_runs_alone() {
    let world = with_slots(ENDLESS, 2).await;
    world.create(&instances(request("wide"), 3)).await;
    trains(&world, "wide", 3).await;
    world.create(&request("small")).await;
    until("the small job waits", || world.states("small") == ["Starting"]).await;
    world.service.stop("wide").await.unwrap();
    trains(&world, "small", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_job_continues_to_wait_after_a_restart_and_can_be_stopped() {
    let world = with_slots(ENDLESS, 1).await;
    world.create(&spot("runs")).await;
    trains(&world, "runs", 1).await;
    world.create(&request("waits")).await;
    world.create(&request("stopped")).await;
    world.service.stop("stopped").await.unwrap();
    let end = world.ended("stopped").await;
    assert_eq!(end["SecondaryStatus"], "Stopped");
    assert!(end["TrainingStartTime"].is_null() && end["BillableTimeInSeconds"].is_null(), "{end}");

    let world = world.reopen("exit 0", |config| config.slots = NonZeroU32::new(1)).await;
    for job in ["runs", "waits"] {
        assert_eq!(world.ended(job).await["TrainingJobStatus"], "Completed");
    }
}

/// The wait for slots is no lack of spot capacity, so `MaxWaitTimeInSeconds` does not count it.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_slots_does_not_end_a_spot_job() {
    let world = with_slots("echo up; [ $TRAINING_JOB_NAME = late ] || exec sleep 600", 1).await;
    world.create(&request("first")).await;
    trains(&world, "first", 1).await;
    let mut late = spot("late");
    late["StoppingCondition"] = json!({"MaxRuntimeInSeconds": 1, "MaxWaitTimeInSeconds": 1});
    world.create(&late).await;
    let created = Instant::now();
    until("its wait time is over", || created.elapsed() > Duration::from_millis(1_200)).await;
    assert_eq!(world.states("late"), ["Starting"]);
    world.service.stop("first").await.unwrap();
    assert_eq!(world.ended("late").await["TrainingJobStatus"], "Completed");
}

/// Its driver kept the record locked while it waited.
#[tokio::test]
async fn regression_a_job_that_waits_for_a_slot_is_described_and_stopped() {
    let world = with_slots(ENDLESS, 1).await;
    world.create(&request("runs")).await;
    trains(&world, "runs", 1).await;
    for job in ["waits", "waits-too"] {
        world.create(&request(job)).await;
        // On one thread, the job's driver now gets as far as it can: to its wait for a slot.
        until("the job is announced", || world.states(job) == ["Starting"]).await;
    }
    for job in ["waits", "waits-too"] {
        let description = timeout(PATIENCE, world.service.describe(job)).await.expect("it is described");
        assert_eq!(description.unwrap().secondary_status, "Starting");
        timeout(PATIENCE, world.service.stop(job)).await.expect("it is stopped").unwrap();
        assert_eq!(world.ended(job).await["SecondaryStatus"], "Stopped");
    }
}
