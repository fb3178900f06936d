//! Interruptions of spot jobs: simulated, or by a shutdown of the controller.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use use_cases::ports::training::{TrainingJobs, TrainingJobsError};

use crate::world::{World, now, processes, request, spot, text, until};

/// Returns a script that counts to `last` in its checkpoint, 20 ms per step, and prints each number and the attempt.
fn counting(last: u32) -> String {
    format!(
        "echo attempt $SM_ATTEMPT_ID; c=$SM_ROOT/checkpoints/n; n=$(cat $c 2>/dev/null || echo 0); \
         while [ $n -lt {last} ]; do sleep 0.02; n=$((n+1)); echo step $n; echo $n > $c.new; mv $c.new $c; done"
    )
}

fn steps(world: &World) -> BTreeSet<String> {
    world.messages("job/").into_iter().filter(|line| line.starts_with("step")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_job_continues_from_its_checkpoint_in_a_new_stream() {
    // With this seed, the first two runs are interrupted after 0.5 s each, and the third is not.
    let world = World::with(&counting(60), |config| {
        config.spot_interruptions_per_hour = 6_000.0;
        config.seed = 51_363;
    })
    .await;
    world.create(&spot("job")).await;
    let end = world.ended("job").await;
    assert_eq!(end["TrainingJobStatus"], "Completed");
    let interruptions = world.states("job").iter().filter(|state| *state == "Interrupted").count();
    assert!(interruptions >= 1, "{:?}", world.states("job"));
    let streams = world.streams("job/").len();
    // On a busy machine, a run may end before it prints.
    assert!(streams >= 2 && streams <= interruptions + 1, "{streams} streams, {interruptions} interruptions");
    assert_eq!(steps(&world).len(), 60);
    let attempts: BTreeSet<String> =
        world.messages("job/").into_iter().filter(|line| line.starts_with("attempt")).collect();
    assert_eq!(attempts.len(), streams);
    let description = world.service.describe("job").await.unwrap();
    assert_eq!(usize::try_from(description.interruptions).unwrap(), interruptions);
    let around: Vec<String> =
        world.states("job").into_iter().skip_while(|state| state != "Interrupted").take(4).collect();
    assert_eq!(around, ["Interrupted", "Starting", "Downloading", "Training"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wait_time_of_a_spot_job_is_not_billed() {
    // With this seed, the first run is interrupted after 0.3 to 0.4 s, and the second is not.
    let world = World::with(&counting(25), |config| {
        config.spot_interruptions_per_hour = 3_000.0;
        config.seed = 7_096;
        config.delays.restart = Duration::from_secs(2);
    })
    .await;
    world.create(&spot("job")).await;
    let end = world.ended("job").await;
    let waits = world.states("job").iter().filter(|state| *state == "Interrupted").count();
    let (all, billed) =
        (end["TrainingTimeInSeconds"].as_u64().unwrap(), end["BillableTimeInSeconds"].as_u64().unwrap());
    assert!(waits >= 1 && all > billed, "{all} {billed} {waits}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_waits_for_capacity_can_be_stopped() {
    let world = World::with("exec sleep 600", |config| {
        config.spot_interruptions_per_hour = 360_000.0;
        config.delays.restart = Duration::from_mins(10);
    })
    .await;
    world.create(&spot("job")).await;
    until("it waits", || world.states("job").iter().any(|state| state == "Interrupted")).await;
    world.service.stop("job").await.unwrap();
    assert_eq!(world.ended("job").await["SecondaryStatus"], "Stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_shutdown_all_jobs_continue() {
    let world = World::new(&counting(50)).await;
    world.create(&spot("job")).await;
    world.create(&request("on-demand")).await;
    until("both run", || steps(&world).len() > 3 && world.messages("on-demand/").len() > 3).await;
    let start = now();
    world.service.shutdown().await;
    assert!(now() - start < 5_000);
    assert_eq!(processes(&world.root(), "on-demand"), Vec::<String>::new());
    let refused = world.service.create(&request("late")).await.unwrap_err();
    assert!(matches!(refused, TrainingJobsError::Unavailable(_)));
    let before = steps(&world).len();
    assert!(before < 50);
    let world = world.reopen(&counting(50), |_| {}).await;
    assert_eq!(world.ended("on-demand").await["TrainingJobStatus"], "Completed");
    let end: Value = world.ended("job").await;
    assert_eq!(end["TrainingJobStatus"], "Completed");
    assert_eq!(text(&end["SecondaryStatusTransitions"][3]["Status"]), "Interrupted");
    let first: u32 =
        world.messages("job/").iter().find_map(|line| line.strip_prefix("step ")?.parse().ok()).unwrap();
    assert!(first > 3, "the job continued at step {first}");
}
