//! Instances that are kept after a job on demand, for the next one.

use std::path::Path;
use std::time::Duration;

use local::training::JobRecords;
use serde_json::{Value, json};
use service::ports::training::{TrainingJobs, TrainingJobsError, WarmPool};

use crate::crash::Controller;
use crate::world::{PATIENCE, World, instances, request, spot, until};

/// A request that asks for its instances to be kept for so many seconds.
fn keeping(job: &str, seconds: u64) -> Value {
    let mut request = request(job);
    request["ResourceConfig"]["KeepAlivePeriodInSeconds"] = json!(seconds);
    request
}

/// `WarmPoolStatus` as describe shows it; the port tells the same.
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

/// What was let go within the patience of a test: who took it, and that its seconds are those and no more.
fn let_go(shown: &Value, status: &str) -> Option<String> {
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
async fn what_a_job_leaves_is_taken_by_the_next_and_by_one_only() {
    let world = World::new("[ $SM_HP_NUM_ROUND = 27 ] || exec sleep 600").await;
    run(&world, &keeping("first", 3_600)).await;
    assert_eq!(shown(&world, "first").await, json!({"Status": AVAILABLE}));
    let event = world.events("first").pop().unwrap();
    assert_eq!(event["detail"]["WarmPoolStatus"], json!({"Status": AVAILABLE}));

    let mut long = keeping("second", 3_600);
    long["HyperParameters"]["num_round"] = json!("1");
    world.create(&long).await;
    assert_eq!(let_go(&shown(&world, "first").await, "Reused").as_deref(), Some("second"));
    until("it trains", || world.states("second").len() == 3).await;
    assert_eq!(shown(&world, "second").await, json!({"Status": "InUse"}));
    run(&world, &request("third")).await;
    assert_eq!(let_go(&shown(&world, "first").await, "Reused").as_deref(), Some("second"));
    assert_eq!(shown(&world, "third").await, Value::Null, "it does not ask for it");

    world.service.stop("second").await.unwrap();
    world.ended("second").await;
    assert_eq!(shown(&world, "second").await, json!({"Status": AVAILABLE}), "a stopped job leaves its own");
    // The job that takes it need not leave it in its turn.
    run(&world, &request("fourth")).await;
    assert_eq!(let_go(&shown(&world, "second").await, "Reused").as_deref(), Some("fourth"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_job_leaves_its_instances_and_one_that_never_had_any_none() {
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
    assert!(refused(world.service.release("never").await).contains("its instances are not kept"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_released_ends_at_once_and_only_what_is_kept_can_be() {
    let world = World::new("[ $SM_HP_NUM_ROUND = 27 ] || exec sleep 600").await;
    run(&world, &keeping("job", 3_600)).await;
    world.service.release("job").await.unwrap();
    let over = shown(&world, "job").await;
    assert_eq!(let_go(&over, "Terminated"), None);
    let message = refused(world.service.release("job").await);
    assert_eq!(message, "Unable to update training job job: its instances are not kept");
    assert_eq!(shown(&world, "job").await, over, "a second release bills nothing more");
    run(&world, &keeping("after", 3_600)).await;
    assert_eq!(shown(&world, "job").await, over, "what was released is taken by nobody");

    let mut runs = keeping("runs", 3_600);
    runs["HyperParameters"]["num_round"] = json!("1");
    world.create(&runs).await;
    until("it trains", || world.states("runs").len() == 3).await;
    refused(world.service.release("runs").await);
    refused(world.service.release("after").await);
    run(&world, &request("keeps-none")).await;
    refused(world.service.release("keeps-none").await);
    let nobody = world.service.release("nobody").await.unwrap_err();
    assert_eq!(nobody, TrainingJobsError::NotFound("Requested resource not found.".to_owned()));
    world.service.shutdown().await;
    assert!(matches!(world.service.release("job").await, Err(TrainingJobsError::Unavailable(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_one_that_was_kept_longest_is_taken_and_only_by_the_same_instances() {
    let world = World::new("exit 0").await;
    for job in ["b-first", "a-second"] {
        // Not at once: the second would take what the first left.
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
    assert_eq!(let_go(&shown(&world, "two").await, "Reused").as_deref(), Some("two-again"));

    // Two of the same, since neither found anything when it began.
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
    assert_eq!(let_go(&shown(&world, "z-older").await, "Reused").as_deref(), Some("next"));
    assert_eq!(shown(&world, "y-newer").await, json!({"Status": AVAILABLE}));
}

#[tokio::test(flavor = "multi_thread")]
async fn time_ends_it_also_while_no_controller_runs() {
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
    assert_eq!(shown(&world, "job").await, terminated, "too late to be taken");
    refused(world.service.release("job").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_or_released_stays_so_when_the_controller_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let start = |request: &Value, script: &str| Controller::start(folder.path(), request, script);
    let mut one = start(&keeping("one", 3_600), "exit 0");
    one.wait_for("Completed");
    one.kill();
    assert_eq!(on_disk(folder.path(), "one").await.status, AVAILABLE);
    // Another controller takes it, and dies.
    let mut two = start(&keeping("two", 3_600), "exec sleep 600");
    two.wait_for("Training");
    two.kill();
    let world = World::open(folder, "exit 0", |_| {}).await;
    assert_eq!(let_go(&shown(&world, "one").await, "Reused").as_deref(), Some("two"));
    assert_eq!(world.ended("two").await["TrainingJobStatus"], "Failed");
    assert_eq!(shown(&world, "two").await, json!({"Status": AVAILABLE}));
    world.service.release("two").await.unwrap();
    let released = shown(&world, "two").await;
    let_go(&released, "Terminated");
    let world = world.reopen("exit 0", |_| {}).await;
    assert_eq!(shown(&world, "two").await, released);
    assert_eq!(let_go(&shown(&world, "one").await, "Reused").as_deref(), Some("two"));
}

async fn on_disk(folder: &Path, job: &str) -> WarmPool {
    JobRecords::at(&folder.join("root")).describe(job).await.unwrap().warm_pool.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_written_has_not_happened() {
    let world = World::new("exit 0").await;
    run(&world, &keeping("job", 3_600)).await;
    let in_the_way = world.root().join("jobs/job/job.json.new");
    std::fs::create_dir(&in_the_way).unwrap();
    let trouble = world.service.release("job").await.unwrap_err();
    assert!(matches!(&trouble, TrainingJobsError::Unavailable(message) if message.contains("job.json")));
    run(&world, &request("next")).await;
    assert_eq!(shown(&world, "job").await, json!({"Status": AVAILABLE}), "the next one runs on its own");
    std::fs::remove_dir(in_the_way).unwrap();
    world.service.release("job").await.unwrap();
    let_go(&shown(&world, "job").await, "Terminated");
}

#[tokio::test(flavor = "multi_thread")]
async fn how_long_instances_may_be_kept_is_checked() {
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
