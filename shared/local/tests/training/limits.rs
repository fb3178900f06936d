//! Time limits of jobs.

use std::time::Duration;

use serde_json::json;

use crate::world::{World, request, spot};

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_stopped_at_its_maximum_runtime() {
    let world = World::new("exec sleep 600").await;
    let mut short = request("job");
    short["StoppingCondition"]["MaxRuntimeInSeconds"] = json!(1);
    world.create(&short).await;
    let end = world.ended("job").await;
    assert_eq!(
        (&end["TrainingJobStatus"], &end["SecondaryStatus"]),
        (&json!("Stopped"), &json!("MaxRuntimeExceeded"))
    );
    let states = ["Starting", "Downloading", "Training", "Stopping", "MaxRuntimeExceeded"];
    assert_eq!(world.states("job"), states);
    let ran = end["TrainingEndTime"].as_i64().unwrap() - end["TrainingStartTime"].as_i64().unwrap();
    assert!((1_000..5_000).contains(&ran), "{ran}");
}

/// Such a job ended as if no spot capacity had come, since its wait counts from its creation. It was tried again.
#[tokio::test(flavor = "multi_thread")]
async fn regression_a_spot_job_that_kept_its_instances_ends_at_its_maximum_runtime() {
    let world = World::new("exec sleep 600").await;
    let mut short = spot("job");
    short["StoppingCondition"] = json!({"MaxRuntimeInSeconds": 1, "MaxWaitTimeInSeconds": 1});
    world.create(&short).await;
    assert_eq!(world.ended("job").await["SecondaryStatus"], "MaxRuntimeExceeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_runs_count_towards_the_maximum_runtime() {
    // An interruption about every 0.2 s, so no single run reaches the limit of 1 s.
    let world = World::with("exec sleep 600", |config| config.spot_interruptions_per_hour = 18_000.0).await;
    let mut short = spot("job");
    short["StoppingCondition"]["MaxRuntimeInSeconds"] = json!(1);
    world.create(&short).await;
    let end = world.ended("job").await;
    assert_eq!(end["SecondaryStatus"], "MaxRuntimeExceeded");
    assert!(world.states("job").iter().filter(|state| *state == "Interrupted").count() >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_spot_job_ends_at_its_maximum_wait_time() {
    let world = World::with("exec sleep 600", |config| {
        config.spot_interruptions_per_hour = 360_000.0;
        config.delays.restart = Duration::from_mins(10);
    })
    .await;
    let mut short = spot("job");
    short["StoppingCondition"] = json!({"MaxRuntimeInSeconds": 1, "MaxWaitTimeInSeconds": 1});
    world.create(&short).await;
    let end = world.ended("job").await;
    assert_eq!(
        (&end["TrainingJobStatus"], &end["SecondaryStatus"]),
        (&json!("Stopped"), &json!("MaxWaitTimeExceeded"))
    );
    assert_eq!(
        world.states("job"),
        ["Starting", "Downloading", "Training", "Interrupted", "MaxWaitTimeExceeded"]
    );
    assert_eq!(end["BillableTimeInSeconds"], 1);
}
