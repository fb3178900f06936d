//! Warm pools of on-demand jobs.

use std::path::Path;
use std::time::Duration;

use local::training::JobRecords;
use serde_json::{Value, json};
use use_cases::ports::training::{TrainingJobs, TrainingJobsError, WarmPool};

use crate::crash::Controller;
use crate::world::{PATIENCE, World, instances, request, spot, until};

/// Returns a request with a keep-alive period.
fn keeping(job: &str, seconds: u64) -> Value {
    let mut request = request(job);
    request["ResourceConfig"]["KeepAlivePeriodInSeconds"] = json!(seconds);
    request
}

/// Returns `WarmPoolStatus` of a job, and checks that the port returns the same.
async fn shown(world: &World, job: &str) -> Value {
    let described = world.service.describe_json(job).await.unwrap()["WarmPoolStatus"].clone();
    let port = world.service.describe(job).await.unwrap().warm_pool;
    let as_port = described["Status"].as_str().map(|status| WarmPool {
        status: status.to_owned(),
        retained_seconds: described["ResourceRetainedBillableTimeInSeconds"].as_u64(),
    });
    assert_eq!(port, as_port, "{described}");
    described
}

/// Checks that a pool has the status `status` and plausible retained seconds. Returns the job that reuses it.
fn reused_by(shown: &Value, status: &str) -> Option<String> {
    assert_eq!(shown["Status"], status, "{shown}");
    let seconds = shown["ResourceRetainedBillableTimeInSeconds"].as_u64().unwrap();
    assert!(Duration::from_secs(seconds) <= PATIENCE, "{shown}");
    shown["ReusedByJob"].as_str().map(ToOwned::to_owned)
}

async fn run(world: &World, request: &Value) {
    world.create(request).await;
    world.ended(request["TrainingJobName"].as_str().unwrap()).await;
}

fn refused(answer: Result<(), TrainingJobsError>) -> String {
    match answer {
        Err(TrainingJobsError::Refused { code, message }) if code == "ValidationException" => message,
        other => panic!("{other:?}"),
    }
}

const AVAILABLE: &str = "Available";

#[tokio::test(flavor = "multi_thread")]
async fn a_warm_pool_is_reused_by_the_next_job_only() {
    let world = World::new("[ $SM_HP_NUM_ROUND = 27 ] || exec sleep 600").await;
    run(&world, &keeping("first", 3_600)).await;
    assert_eq!(shown(&world, "first").await, json!({"Status": AVAILABLE}));
    let event = world.events("first").pop().unwrap();
    assert_eq!(event["detail"]["WarmPoolStatus"], json!({"Status": AVAILABLE}));

    let mut long = keeping("second", 3_600);
    long["HyperParameters"]["num_round"] = json!("1");
    world.create(&long).await;
    assert_eq!(reused_by(&shown(&world, "first").await, "Reused").as_deref(), Some("second"));
    until("it trains", || world.states("second").len() == 3).await;
    assert_eq!(shown(&world, "second").await, json!({"Status": "InUse"}));
    run(&world, &request("third")).await;
    assert_eq!(reused_by(&shown(&world, "first").await, "Reused").as_deref(), Some("second"));
    assert_eq!(shown(&world, "third").await, Value::Null, "the job has no keep-alive period");

    world.service.stop("second").await.unwrap();
    world.ended("second").await;
    assert_eq!(shown(&world, "second").await, json!({"Status": AVAILABLE}), "a stopped job has a warm pool");
    // A job without a keep-alive period can reuse a pool.
    run(&world, &request("fourth")).await;
    assert_eq!(reused_by(&shown(&world, "second").await, "Reused").as_deref(), Some("fourth"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_job_has_a_warm_pool_and_a_job_that_never_started_has_none() {
    let world = World::new("exit 3").await;
    run(&world, &keeping("failed", 3_600)).await;
    assert_eq!(shown(&world, "failed").await, json!({"Status": AVAILABLE}));
    let world = world.reopen("exit 0", |config| config.delays.start = Duration::from_mins(10)).await;
    let mut other = keeping("never", 3_600);
    other["RoleArn"] = json!("arn:aws:iam::111122223333:role/other");
    world.create(&other).await;
    world.service.stop("never").await.unwrap();
    world.ended("never").await;
    assert_eq!(shown(&world, "never").await, Value::Null);
    assert!(refused(world.service.release("never").await).contains("it has no available warm pool"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_released_pool_ends_at_once_and_only_an_available_pool_can_be_released() {
    let world = World::new("[ $SM_HP_NUM_ROUND = 27 ] || exec sleep 600").await;
    run(&world, &keeping("job", 3_600)).await;
    world.service.release("job").await.unwrap();
    let over = shown(&world, "job").await;
    assert_eq!(reused_by(&over, "Terminated"), None);
    let message = refused(world.service.release("job").await);
    assert_eq!(message, "Unable to update training job job: it has no available warm pool");
    assert_eq!(shown(&world, "job").await, over, "a second release bills nothing more");
    run(&world, &keeping("after", 3_600)).await;
    assert_eq!(shown(&world, "job").await, over, "no job reuses a released pool");

    let mut runs = keeping("runs", 3_600);
    runs["HyperParameters"]["num_round"] = json!("1");
    world.create(&runs).await;
    until("it trains", || world.states("runs").len() == 3).await;
    refused(world.service.release("runs").await);
    refused(world.service.release("after").await);
    run(&world, &request("keeps-none")).await;
    refused(world.service.release("keeps-none").await);
    let missing = world.service.release("missing").await.unwrap_err();
    assert_eq!(missing, TrainingJobsError::NotFound("Requested resource not found.".to_owned()));
    world.service.shutdown().await;
    assert!(matches!(world.service.release("job").await, Err(TrainingJobsError::Unavailable(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_reuses_the_oldest_pool_with_the_same_instances() {
    let world = World::new("exit 0").await;
    for job in ["b-first", "a-second"] {
        // With different roles, so that the second job does not reuse the pool of the first.
        let mut other = keeping(job, 3_600);
        other["RoleArn"] = json!(format!("arn:aws:iam::111122223333:role/{job}"));
        run(&world, &other).await;
    }
    let mut two = instances(keeping("two", 3_600), 2);
    run(&world, &two).await;
    run(&world, &spot("spot")).await;
    for job in ["b-first", "a-second", "two"] {
        assert_eq!(shown(&world, job).await, json!({"Status": AVAILABLE}), "{job}");
    }
    two["TrainingJobName"] = json!("two-again");
    run(&world, &two).await;
    assert_eq!(reused_by(&shown(&world, "two").await, "Reused").as_deref(), Some("two-again"));

    // Both jobs start before a pool is available, so that two equal pools exist afterwards.
    let gate = world.folder.path().join("gate");
    let script = format!("until [ -e {} ]; do sleep 0.01; done", gate.display());
    let world = world.reopen(&script, |_| {}).await;
    world.create(&keeping("z-older", 3_600)).await;
    world.create(&keeping("y-newer", 3_600)).await;
    until("it trains", || world.states("z-older").len() == 3).await;
    world.service.stop("z-older").await.unwrap();
    world.ended("z-older").await;
    tokio::time::sleep(Duration::from_millis(2)).await;
    std::fs::write(&gate, "").unwrap();
    world.ended("y-newer").await;
    run(&world, &keeping("next", 3_600)).await;
    assert_eq!(reused_by(&shown(&world, "z-older").await, "Reused").as_deref(), Some("next"));
    assert_eq!(shown(&world, "y-newer").await, json!({"Status": AVAILABLE}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_expires_while_no_controller_runs() {
    let world = World::new("exit 0").await;
    run(&world, &keeping("job", 1)).await;
    world.service.shutdown().await;
    let over = || async { JobRecords::at(&world.root()).describe("job").await.unwrap().warm_pool };
    while over().await.is_some_and(|pool| pool.status == AVAILABLE) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(over().await, Some(WarmPool { status: "Terminated".to_owned(), retained_seconds: Some(1) }));
    let world = world.reopen("exit 0", |_| {}).await;
    let terminated = json!({"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 1});
    assert_eq!(shown(&world, "job").await, terminated);
    run(&world, &keeping("next", 1)).await;
    assert_eq!(shown(&world, "job").await, terminated, "no job reuses an expired pool");
    refused(world.service.release("job").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn reused_and_released_pools_stay_so_after_a_kill_of_the_controller() {
    let folder = tempfile::tempdir().unwrap();
    let start = |request: &Value, script: &str| Controller::start(folder.path(), request, script);
    let mut one = start(&keeping("one", 3_600), "exit 0");
    one.wait_for("Completed");
    one.kill();
    assert_eq!(on_disk(folder.path(), "one").await.status, AVAILABLE);
    // A job of another controller reuses the pool, then the controller is killed.
    let mut two = start(&keeping("two", 3_600), "exec sleep 600");
    two.wait_for("Training");
    two.kill();
    let world = World::open(folder, "exit 0", |_| {}).await;
    assert_eq!(reused_by(&shown(&world, "one").await, "Reused").as_deref(), Some("two"));
    assert_eq!(world.ended("two").await["TrainingJobStatus"], "Failed");
    assert_eq!(shown(&world, "two").await, json!({"Status": AVAILABLE}));
    world.service.release("two").await.unwrap();
    let released = shown(&world, "two").await;
    reused_by(&released, "Terminated");
    let world = world.reopen("exit 0", |_| {}).await;
    assert_eq!(shown(&world, "two").await, released);
    assert_eq!(reused_by(&shown(&world, "one").await, "Reused").as_deref(), Some("two"));
}

async fn on_disk(folder: &Path, job: &str) -> WarmPool {
    JobRecords::at(&folder.join("root")).describe(job).await.unwrap().warm_pool.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_stays_available_when_its_release_cannot_be_written() {
    let world = World::new("exit 0").await;
    run(&world, &keeping("job", 3_600)).await;
    let obstacle = world.root().join("jobs/job/job.json.new");
    std::fs::create_dir(&obstacle).unwrap();
    let error = world.service.release("job").await.unwrap_err();
    assert!(matches!(&error, TrainingJobsError::Unavailable(message) if message.contains("job.json")));
    run(&world, &request("next")).await;
    assert_eq!(shown(&world, "job").await, json!({"Status": AVAILABLE}), "the next job gets new instances");
    std::fs::remove_dir(obstacle).unwrap();
    world.service.release("job").await.unwrap();
    reused_by(&shown(&world, "job").await, "Terminated");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_keep_alive_period_is_refused() {
    let world = World::new("exit 0").await;
    let mut on_spot = spot("job");
    on_spot["ResourceConfig"]["KeepAlivePeriodInSeconds"] = json!(600);
    let mut broken = keeping("job", 0);
    broken["ResourceConfig"]["KeepAlivePeriodInSeconds"] = json!(1.5);
    for (bad, expected) in [
        (keeping("job", 21_601), "less than or equal to 21600"),
        (broken, "'resourceConfig.keepAlivePeriodInSeconds'"),
        (on_spot.clone(), "not supported when EnableManagedSpotTraining is set to true"),
    ] {
        let message = refused(world.service.create(&bad).await);
        assert!(message.contains(expected), "{message} does not name {expected}");
    }
    on_spot["ResourceConfig"]["KeepAlivePeriodInSeconds"] = json!(0);
    run(&world, &on_spot).await;
    assert_eq!(shown(&world, "job").await, Value::Null);
    run(&world, &keeping("longest", 21_600)).await;
    assert_eq!(shown(&world, "longest").await, json!({"Status": AVAILABLE}));
}
