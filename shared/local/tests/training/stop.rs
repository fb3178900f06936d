//! Stops and failures: all processes end, and the job has the reason.

use std::time::{Duration, Instant};

use use_cases::ports::training::{TrainingJobs, TrainingJobsError};

use crate::world::{World, instances, processes, request, spot, until};

async fn training(world: &World, job: &str, hosts: usize) {
    until("its hosts run", || world.messages(&format!("{job}/")).len() >= hosts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_job_can_save_its_work_within_the_grace_period() {
    let script = "trap 'echo saved > $SM_ROOT/checkpoints/$SM_CURRENT_HOST; exit 0' TERM; echo up; \
                  while :; do sleep 0.01; done";
    let world = World::with(script, |config| config.grace = Duration::from_secs(30)).await;
    world.create(&instances(request("job"), 2)).await;
    training(&world, "job", 2).await;
    world.service.stop("job").await.unwrap();
    let stopping = world.service.describe("job").await.unwrap();
    assert_eq!((stopping.status.as_str(), stopping.secondary_status.as_str()), ("Stopping", "Stopping"));
    world.service.stop("job").await.unwrap();
    let end = world.ended("job").await;
    assert_eq!((&end["TrainingJobStatus"], &end["SecondaryStatus"]), (&"Stopped".into(), &"Stopped".into()));
    assert_eq!(world.states("job"), ["Starting", "Downloading", "Training", "Stopping", "Stopped"]);
    let checkpoints = world.root().join("jobs/job/checkpoints");
    assert_eq!(std::fs::read_dir(checkpoints).unwrap().count(), 2);
    let late = world.service.stop("job").await.unwrap_err();
    let text = "The request was rejected because the training job is in status Stopped.";
    assert_eq!(late, TrainingJobsError::AlreadyEnded(text.to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_ignores_sigterm_is_killed_after_the_grace_period() {
    let world = World::new("trap '' TERM; echo up; while :; do sleep 0.01; done").await;
    world.create(&request("job")).await;
    training(&world, "job", 1).await;
    let start = Instant::now();
    world.service.stop("job").await.unwrap();
    world.ended("job").await;
    assert!(start.elapsed() >= Duration::from_millis(300), "{:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_eq!(processes(&world.root(), "job"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_can_be_stopped_right_after_its_creation() {
    let world = World::with("exec sleep 600", |config| config.delays.start = Duration::from_mins(10)).await;
    world.create(&request("job")).await;
    world.service.stop("job").await.unwrap();
    let end = world.ended("job").await;
    assert_eq!(end["SecondaryStatus"], "Stopped");
    assert!(end["TrainingStartTime"].is_null() && end["BillableTimeInSeconds"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn grandchildren_in_their_own_session_end_with_the_job() {
    let script = "(setsid sleep 611 &) ; setsid -f sh -c 'trap \"\" TERM HUP; sleep 612' ; echo up; $LAST";
    let world = World::new(&format!("MARK=grand; export MARK; {}", script.replace("$LAST", "exit 0"))).await;
    world.create(&request("grand-exit")).await;
    assert_eq!(world.ended("grand-exit").await["TrainingJobStatus"], "Completed");
    assert_eq!(processes(&world.root(), "grand-exit"), Vec::<String>::new());

    let world = World::new(&script.replace("$LAST", "exec sleep 613")).await;
    world.create(&request("grand-stop")).await;
    training(&world, "grand-stop", 1).await;
    assert!(processes(&world.root(), "grand-stop").len() >= 4);
    world.service.stop("grand-stop").await.unwrap();
    world.ended("grand-stop").await;
    assert_eq!(processes(&world.root(), "grand-stop"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_shim_is_killed_leaves_no_process() {
    let world = World::new("setsid -f sleep 614; echo up; exec sleep 615").await;
    world.create(&request("shimless")).await;
    training(&world, "shimless", 1).await;
    let lock = world.root().join("jobs/shimless/locks/algo-1");
    let shim: i32 = std::fs::read_to_string(lock).unwrap().trim().parse().unwrap();
    let shim = rustix::process::Pid::from_raw(shim).unwrap();
    rustix::process::kill_process(shim, rustix::process::Signal::KILL).unwrap();
    let end = world.ended("shimless").await;
    let reason = "InternalServerError: host algo-1 was lost: its shim was ended by signal 9";
    assert_eq!(end["FailureReason"], reason);
    assert_eq!(processes(&world.root(), "shimless"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_host_fails_the_job_and_ends_the_other_hosts() {
    let script = "if [ $SM_CURRENT_HOST = algo-2 ]; then echo 'loss is nan' > $SM_ROOT/output/failure; exit 7; fi; \
                  exec sleep 600";
    let world = World::new(script).await;
    world.create(&instances(request("job"), 3)).await;
    let end = world.ended("job").await;
    assert_eq!((&end["TrainingJobStatus"], &end["SecondaryStatus"]), (&"Failed".into(), &"Failed".into()));
    assert_eq!(end["FailureReason"], "AlgorithmError: loss is nan, exit code: 7");
    assert_eq!(end["BillableTimeInSeconds"], 1);
    assert_eq!(processes(&world.root(), "job"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_fails_or_is_killed_fails_the_job() {
    let world = World::new("if [ $SM_HP_NUM_ROUND = 1 ]; then kill -9 $$; fi; exit 3").await;
    let mut killed = request("killed");
    killed["HyperParameters"]["num_round"] = "1".into();
    world.create(&request("failed")).await;
    world.create(&killed).await;
    let reason = world.ended("failed").await["FailureReason"].clone();
    assert_eq!(reason, "AlgorithmError: , exit code: 3");
    let reason = world.ended("killed").await["FailureReason"].clone();
    assert_eq!(reason, "AlgorithmError: host algo-1 was ended by signal 9, exit code: 137");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_lines_of_standard_error_are_the_failure_reason_unless_the_program_wrote_one() {
    let script = "echo 1 >&2; echo 'to stdout'; printf '2\\n\\033[31m3\\033[0m\\nModuleNotFoundError: no xgboost' >&2; \
                  if [ $SM_HP_NUM_ROUND = 1 ]; then echo 'no data' > $SM_ROOT/output/failure; fi; exit 1";
    let world = World::new(script).await;
    let mut wrote = request("wrote");
    wrote["HyperParameters"]["num_round"] = "1".into();
    world.create(&request("silent")).await;
    world.create(&wrote).await;
    let reason = world.ended("silent").await["FailureReason"].clone();
    assert_eq!(reason, "AlgorithmError: 2\n3\nModuleNotFoundError: no xgboost, exit code: 1");
    let reason = world.ended("wrote").await["FailureReason"].clone();
    assert_eq!(reason, "AlgorithmError: no data, exit code: 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_cannot_be_started_is_the_failure_reason() {
    let world = World::with("", |config| config.command = vec!["/no/such/program".into()]).await;
    world.create(&request("job")).await;
    let end = world.ended("job").await;
    let reason = "AlgorithmError: cannot start the command '/no/such/program': No such file or directory (os error \
                  2), exit code: 127";
    assert_eq!(end["FailureReason"], reason);
    let world = World::with("", |config| config.shim = vec!["/no/such/shim".into()]).await;
    world.create(&request("job")).await;
    let reason = world.ended("job").await["FailureReason"].clone();
    assert!(
        reason.as_str().unwrap().starts_with("InternalServerError: cannot start the host shim of algo-1")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unwritable_folder_fails_the_job_but_not_the_service() {
    let world = World::new("exit 0").await;
    std::fs::write(world.root().join("checkpoints"), "in the way").unwrap();
    let mut blocked = spot("blocked");
    blocked["CheckpointConfig"] = serde_json::json!({"S3Uri": "s3://b/c"});
    world.create(&blocked).await;
    let reason = world.ended("blocked").await["FailureReason"].clone();
    assert!(reason.as_str().unwrap().starts_with("InternalServerError: cannot prepare /"), "{reason}");
    // The record cannot be written: a folder has the name of its new version.
    let world = World::new("echo up; exec sleep 600").await;
    world.create(&request("full")).await;
    training(&world, "full", 1).await;
    std::fs::create_dir(world.root().join("jobs/full/job.json.new")).unwrap();
    world.service.stop("full").await.unwrap();
    assert_eq!(world.ended("full").await["SecondaryStatus"], "Stopped");
    world.create(&request("next")).await;
    world.service.stop("next").await.unwrap();
    world.ended("next").await;
}
