//! The controller is killed at any point of its work; then another controller opens its folder.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use local::training::{OpenError, TrainingService};
use serde_json::{Value, json};
use use_cases::ports::training::TrainingJobs;

use crate::world::{World, config, instances, processes, request, shell, spot, text, until};

/// A controller in its own process, which runs one job.
pub(crate) struct Controller {
    child: Child,
    states: std::io::Lines<BufReader<ChildStdout>>,
}

impl Controller {
    pub(crate) fn start(folder: &Path, request: &Value, script: &str) -> Self {
        let file = folder.join("request.json");
        fs::write(&file, request.to_string()).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_local-test-host"))
            .args(["serve".as_ref(), folder.join("root").as_os_str(), file.as_os_str()])
            .args(["0", "--"])
            .args(shell(script))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let states = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, states }
    }

    pub(crate) fn wait_for(&mut self, state: &str) {
        assert!(self.states.any(|line| line.unwrap() == state), "the job did not reach {state}");
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

const COUNT: &str = "trap '' TERM HUP; setsid -f sh -c 'trap \"\" TERM HUP; sleep 616'; echo up; \
                     c=$SM_ROOT/checkpoints/$SM_CURRENT_HOST; n=$(cat $c 2>/dev/null || echo 0); echo from $n; \
                     while [ $n -lt 60 ]; do sleep 0.02; n=$((n+1)); echo $n > $c.new; mv $c.new $c; done";

fn progress(folder: &Path) -> u32 {
    let file = folder.join("root/jobs/crashed/checkpoints/algo-1");
    fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_controller_leaves_no_process_and_its_spot_job_continues() {
    let folder = tempfile::tempdir().unwrap();
    let mut controller = Controller::start(folder.path(), &instances(spot("crashed"), 2), COUNT);
    controller.wait_for("Training");
    until("it has a checkpoint", || progress(folder.path()) >= 5).await;
    let attempts = processes(&folder.path().join("root"), "crashed");
    // Two hosts, each with a shim, a shell with a child, and a grandchild in its own session.
    assert!(attempts.len() >= 6, "{attempts:?}");
    controller.kill();
    // `open` waits until all old processes have ended.
    let world = World::open(folder, COUNT, |_| {}).await;
    assert!(world.states("crashed").len() <= 1 || progress(world.folder.path()) < 60);
    let end = world.ended("crashed").await;
    assert_eq!(end["TrainingJobStatus"], "Completed");
    let states = ["Interrupted", "Starting", "Downloading", "Training", "Uploading", "Completed"];
    assert_eq!(world.states("crashed"), states);
    let from: Vec<String> =
        world.messages("crashed/algo-1-").into_iter().filter(|line| line.starts_with("from")).collect();
    assert_eq!(from.len(), 1);
    assert_ne!(from[0], "from 0");
    let streams = fs::read_dir(world.root().join("jobs/crashed/logs")).unwrap().count();
    assert_eq!(streams, 4);
    assert_eq!(world.service.describe("crashed").await.unwrap().interruptions, 1);
    assert_eq!(processes(&world.root(), "crashed"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_end_when_the_controller_is_killed_and_not_restarted() {
    let folder = tempfile::tempdir().unwrap();
    let mut controller = Controller::start(folder.path(), &request("orphaned"), COUNT);
    controller.wait_for("Training");
    let left = || processes(&folder.path().join("root"), "orphaned");
    until("they run", || left().len() >= 4).await;
    controller.kill();
    until("all are gone", || left().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_on_demand_job_fails_when_its_controller_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut controller = Controller::start(folder.path(), &request("lost"), COUNT);
    controller.wait_for("Training");
    controller.kill();
    let world = World::open(folder, COUNT, |_| {}).await;
    let end = world.ended("lost").await;
    let reason = "InternalServerError: the host was lost when the controller on this machine ended.";
    assert_eq!(end["FailureReason"], reason);
    assert!(end["BillableTimeInSeconds"].as_u64().unwrap() >= 1);
}

/// Its attempt used up one of `MaxNumberOfTrainingJobs`, and it was reported as failed.
#[tokio::test(flavor = "multi_thread")]
async fn regression_an_on_demand_job_continues_after_a_shutdown() {
    let count = "c=$SM_ROOT/checkpoints/n; n=$(cat $c 2>/dev/null || echo 0); echo from $n; echo 1 > $c; \
                 until [ -e $SM_ROOT/checkpoints/go ]; do sleep 0.02; done";
    let world = World::new(count).await;
    world.create(&request("cut")).await;
    let checkpoints = world.root().join("jobs/cut/checkpoints");
    until("it has a checkpoint", || checkpoints.join("n").exists()).await;
    world.service.shutdown().await;
    fs::write(checkpoints.join("go"), "").unwrap();
    let world = world.reopen(count, |_| {}).await;
    assert_eq!(world.ended("cut").await["TrainingJobStatus"], "Completed");
    let from: Vec<String> =
        world.messages("cut/algo-1-").into_iter().filter(|line| line.starts_with("from")).collect();
    assert_eq!(from, ["from 1"]);
    let described = world.service.describe("cut").await.unwrap();
    assert_eq!(described.interruptions, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_completes_after_kills_of_the_controller_at_many_points() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let starts = || fs::read_to_string(root.join("jobs/again/checkpoints/n")).unwrap_or_default().len();
    for point in ["opens", "created", "Starting", "Downloading", "Training", "runs", "Interrupted"] {
        let before = starts();
        let mut controller = Controller::start(
            folder.path(),
            &spot("again"),
            "echo >> $SM_ROOT/checkpoints/n; exec sleep 600",
        );
        match point {
            "opens" => until("the folder is there", || root.exists()).await,
            "created" => until("the job is there", || root.join("jobs/again").exists()).await,
            "runs" => until("the program runs", || starts() > before).await,
            state => controller.wait_for(state),
        }
        controller.kill();
    }
    let world = World::open(folder, "exit 0", |_| {}).await;
    assert_eq!(world.ended("again").await["TrainingJobStatus"], "Completed");
    // The kills at `Downloading` and at `Training`. A line of the program that the latter killed can come late, and then the
    // next kill strikes before the folder opens.
    assert!(world.service.describe("again").await.unwrap().interruptions >= 2);
    assert_eq!(processes(&world.root(), "again"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_controllers_cannot_open_the_same_folder() {
    let world = World::new("exit 0").await;
    let refused = TrainingService::open(config(&world.root(), "exit 0")).await.unwrap_err();
    let OpenError::InUse { pid, .. } = &refused else { panic!("{refused:?}") };
    assert_eq!(*pid, std::process::id().to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_process_that_does_not_end_is_named_in_the_error() {
    let world = World::new("exec sleep 600").await;
    world.create(&spot("job")).await;
    until("it trains", || world.states("job").len() == 3).await;
    world.service.shutdown().await;
    let lock = world.root().join("jobs/job/locks/algo-1");
    let held = fs::File::options().write(true).open(&lock).unwrap();
    fs::write(&lock, "4242\n").unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let refused = TrainingService::open(config(&world.root(), "exit 0")).await.unwrap_err();
    let text = refused.to_string();
    assert!(text.starts_with("process 4242 (host algo-1 of training job job)"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_record_is_reported_and_affects_no_other_job() {
    let world = World::new("exit 0").await;
    for job in ["good", "bad"] {
        world.create(&request(job)).await;
        world.ended(job).await;
    }
    world.service.shutdown().await;
    let record = world.root().join("jobs/bad/job.json");
    let whole = fs::read(&record).unwrap();
    for (damage, name) in
        [(&whole[..whole.len() / 2], "truncated"), (b"\0garbage", "garbage"), (b"", "empty")]
    {
        fs::write(&record, damage).unwrap();
        let (service, _feeds) = TrainingService::open(config(&world.root(), "exit 0")).await.unwrap();
        let damaged = service.damaged().await;
        assert_eq!(damaged.len(), 1, "{name}");
        assert!(damaged[0].path.ends_with("jobs/bad/job.json"), "{name}");
        let description = service.describe("bad").await.unwrap();
        assert_eq!(description.status, "Failed");
        let reason = description.failure_reason.unwrap();
        assert!(
            reason.starts_with("InternalServerError: the record ") && reason.contains("job.json"),
            "{reason}"
        );
        assert!(service.create(&request("bad")).await.is_err());
        assert!(service.stop("bad").await.is_err());
        assert_eq!(text(&service.describe_json("bad").await.unwrap()["TrainingJobStatus"]), "Failed");
        assert_eq!(service.describe("good").await.unwrap().status, "Completed");
        service.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_created_job_starts_after_a_restart() {
    let world =
        World::with("exit 0", |config| config.delays.start = std::time::Duration::from_mins(10)).await;
    world.create(&request("job")).await;
    world.service.shutdown().await;
    // A crash during a create leaves such a folder.
    fs::create_dir(world.root().join("jobs/.new-half")).unwrap();
    let world = world.reopen("exit 0", |_| {}).await;
    let end = world.ended("job").await;
    assert_eq!(end["TrainingJobStatus"], "Completed");
    assert_eq!(world.service.describe("job").await.unwrap().interruptions, 0);
    assert!(!world.root().join("jobs/.new-half").exists());
    assert_eq!(world.states("job")[0], json!("Starting"));
}
