//! The outcome of a tuning whose training command misbehaves, or that ends early.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::support::{Fixture, request};
use local::host::{Claimed, SystemClock};
use serde_json::{Value, json};
use use_cases::lookup::{self, LookupError};
use use_cases::ports::Clock;

/// Trains nine epochs with a rising value.
const GOOD: &str = "i=0; while [ $i -lt 9 ]; do echo \"[$i]#011validation-auc:0.$i$SM_HP_DEPTH\"; i=$((i+1)); sleep 0.02; done";

fn failure(described: &Value) -> &str {
    assert_eq!(described["HyperParameterTuningJobStatus"], "Failed", "{described:#}");
    assert_eq!(described["Controller"]["EndReason"], "Failed");
    assert_eq!(described["Controller"]["ReservedUsd"].as_f64(), Some(0.0));
    described["FailureReason"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_metric_regex_that_never_matches_fails_the_tuning_with_a_hint() {
    let (described, jobs) = Fixture::new("echo nothing of interest").run(&request("mute", 20)).await;
    let hint = "no line has a name followed by a number; check that this is the log of the training program";
    assert!(failure(&described).contains(hint), "{described:#}");
    assert!(jobs.len() < 20, "the tuning fails before all {} jobs run", jobs.len());
    assert!(jobs.iter().all(|job| job["ObjectiveStatus"] == "Failed"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_fails_at_once_fails_the_tuning_with_its_failure_reason() {
    let script = "echo 'no such table: customers' > $SM_ROOT/output/failure; exit 3";
    let (described, jobs) = Fixture::new(script).run(&request("broken", 20)).await;
    let reason = failure(&described);
    let cause = "training jobs failed for the same reason: exit code 3, no such table: customers";
    assert!(reason.starts_with("the first ") && reason.ends_with(cause), "{reason}");
    assert!(jobs.len() < 20, "the tuning fails before all {} jobs run", jobs.len());
    let failed = jobs.iter().filter(|job| job["TrainingJobStatus"] == "Failed").count();
    assert!(failed >= 3, "{jobs:#?}");
    // On a busy machine, the last started job may be stopped before it fails.
    let stopped = |job: &Value| job["Controller"]["StopReason"] == "TuningEnding";
    assert!(jobs.iter().all(|job| job["TrainingJobStatus"] == "Failed" || stopped(job)), "{jobs:#?}");
}

/// `NoObjectiveSeconds` 4 let jobs run for 10 s: a deadline waited for the next sweep.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn regression_a_deadline_does_not_wait_for_the_next_sweep() {
    let mut request = request("silent", 6);
    request["Controller"]["NoObjectiveSeconds"] = json!(1);
    let mut fixture = Fixture::new("echo '[0]#011validation-auc:0.5'; sleep 3600");
    fixture.sweep_every = Duration::from_hours(1);
    let (described, jobs) = fixture.run(&request).await;
    assert_eq!(described["Controller"]["EndReason"], "MaxJobs", "{described:#}");
    assert_eq!(jobs.len(), 6);
    assert!(jobs.iter().all(|job| job["Controller"]["StopReason"] == "NoObjective"), "{jobs:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trial_whose_metric_is_nan_is_never_promoted() {
    let script =
        "i=0; while [ $i -lt 9 ]; do echo \"[$i]#011validation-auc:nan\"; i=$((i+1)); sleep 0.05; done";
    let (described, jobs) = Fixture::new(script).run(&request("nan", 60)).await;
    assert!(failure(&described).contains("objective metric"), "{described:#}");
    assert!(jobs.len() < 60, "{}", jobs.len());
    for bracket in described["Controller"]["Brackets"].as_array().unwrap() {
        for rung in bracket["Rungs"].as_array().unwrap() {
            // The last rung compares no trials.
            assert_eq!(rung.get("WentOn").unwrap_or(&json!(0)), 0, "P6: no failed trial is promoted");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_ignores_sigterm_is_killed_after_the_grace_period() {
    let script = "trap '' TERM; i=0; while [ $i -lt 900 ]; do echo \"[$i]#011validation-auc:0.$SM_HP_DEPTH\"; \
                  i=$((i+1)); sleep 0.05; done";
    let mut fixture = Fixture::new(script);
    fixture.grace = Duration::from_millis(300);
    let (described, jobs) = fixture.run(&request("stubborn", 4)).await;
    assert_eq!(described["HyperParameterTuningJobStatus"], "Completed", "{described:#}");
    assert!(jobs.iter().all(|job| job["TrainingJobStatus"] == "Stopped"), "{jobs:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupted_spot_jobs_continue_from_their_checkpoints() {
    // Writes a checkpoint after each epoch. Epochs are absolute, as in the request.
    let script = "d=$SM_ROOT/checkpoints; i=$(cat $d/at 2>/dev/null || echo 0); while [ $i -lt 9 ]; do \
                  echo \"[$i]#011validation-auc:0.$i$SM_HP_DEPTH\"; i=$((i+1)); echo $i > $d/at.new; \
                  mv $d/at.new $d/at; sleep 0.2; done";
    let mut request = request("spot", 4);
    let definition = &mut request["TrainingJobDefinition"];
    definition["EnableManagedSpotTraining"] = json!(true);
    definition["CheckpointConfig"] = json!({"S3Uri": "s3://example-bucket/checkpoints"});
    definition["StoppingCondition"] = json!({"MaxRuntimeInSeconds": 300, "MaxWaitTimeInSeconds": 600});
    let mut fixture = Fixture::new(script);
    fixture.spot_interruptions_per_hour = 3_600.0;
    fixture.grace = Duration::from_millis(500);
    let (described, jobs) = fixture.run(&request).await;
    assert_eq!(described["HyperParameterTuningJobStatus"], "Completed", "{described:#}");
    assert!(jobs.iter().any(|job| job["Controller"]["Resource"] == 9), "{jobs:#?}");
    let data = fixture.folder.path().join("data/training/jobs");
    let streams = |job: &Value| {
        std::fs::read_dir(data.join(job["TrainingJobName"].as_str().unwrap()).join("logs")).unwrap().count()
    };
    assert!(jobs.iter().any(|job| streams(job) > 1), "a restart opens a new log stream");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cap_below_the_cost_of_one_job_is_refused_with_the_minimum() {
    let fixture = Fixture::new(GOOD);
    let host = fixture.open().await;
    let mut small = request("poor", 8);
    small["Controller"]["MaxCostUsd"] = json!(0.001);
    let refused = host.submit(small.to_string().as_bytes()).await.unwrap_err().to_string();
    // 900 s of one instance at 0.115 USD an hour are 2.875 cents.
    assert!(refused.contains("expected at least 0.03"), "{refused}");
    assert!(matches!(lookup::find(host.store(), "poor").await, Err(LookupError::NotFound(_))));
    host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tuning_ends_at_its_cap_before_the_job_limit() {
    let mut request = request("capped", 1_000);
    // One job costs at most 360 s at 0.115 USD per hour, 1.15 cents. The cap covers some more seconds.
    request["TrainingJobDefinition"]["StoppingCondition"] = json!({"MaxRuntimeInSeconds": 60});
    request["Controller"]["MaxCostUsd"] = json!(0.0117);
    let (described, jobs) = Fixture::new(GOOD).run(&request).await;
    assert_eq!(described["Controller"]["EndReason"], "CostCap", "{described:#}");
    let controller = &described["Controller"];
    assert!(controller["SpentUsd"].as_f64() <= controller["CapUsd"].as_f64(), "P1: {controller}");
    assert!(jobs.len() > 1, "{}", jobs.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_request_stops_running_jobs_and_ends_the_tuning() {
    let fixture = Fixture::new("sleep 600");
    let host = fixture.open().await;
    let id = host.submit(request("halt", 8).to_string().as_bytes()).await.unwrap().id();
    let mut changes = host.changes();
    while host.store().load(&id).await.unwrap().unwrap().state.running() < 2 {
        changes.changed().await.unwrap();
    }
    host.stop("HALT").await.unwrap();
    host.ended(&id).await.unwrap();
    let described = host.describe(&id).await.unwrap().unwrap();
    assert_eq!(described.base.status, "Stopped");
    assert_eq!(described.controller.totals.end_reason.as_deref(), Some("Stopped"));
    host.shutdown().await;
}

/// The host continued these jobs until the decider ordered their stops, and the news of their ends started others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn regression_no_job_of_a_stopped_tuning_runs_another_command() {
    let mut fixture = Fixture { slots: NonZeroU32::new(1), ..Fixture::new("sleep 600") };
    let host = fixture.open().await;
    let id = host.submit(request("halt", 8).to_string().as_bytes()).await.unwrap().id();
    // The second job waits for the slot of the first one.
    let jobs = fixture.data().join("training/jobs");
    let is_created = |job: &std::fs::DirEntry| job.path().join("job.json").exists();
    while std::fs::read_dir(&jobs).unwrap().flatten().filter(is_created).count() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    host.shutdown().await;
    let mark = fixture.data().join("another-command-ran");
    fixture.script = format!("echo $TRAINING_JOB_NAME >> {}; sleep 600", mark.display());
    let claimed = Claimed::claim(fixture.config()).await.unwrap();
    lookup::stop(claimed.store(), "halt", SystemClock.now()).await.unwrap();
    let host = claimed.open().await.unwrap();
    host.ended(&id).await.unwrap();
    assert_eq!(host.describe(&id).await.unwrap().unwrap().base.status, "Stopped");
    host.shutdown().await;
    assert!(!mark.exists(), "{:?}", std::fs::read_to_string(&mark));
}
