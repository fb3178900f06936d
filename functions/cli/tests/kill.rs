//! `hyperband run` killed with SIGKILL at random moments, again and again, and started again each time.
//!
//! P4: "a crash between any two calls loses nothing." P2: "no decision is performed twice with effect, none is lost."
//! P1: "spent + reserved <= cap at every step." P5: "replay gives the same decisions, on any machine."
#![expect(clippy::unwrap_used, reason = "helpers of a test fail with it")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

const HYPERBAND: &str = env!("CARGO_BIN_EXE_hyperband");
/// Kills before the tuning is left in peace.
const KILLS: u32 = 24;
/// Marks every process of this test.
const MARK: &str = "HYPERBAND_KILL_TEST";

/// Checkpoints each epoch, goes on from them, and says absolute epochs. Every start of a job is noted.
const TRAIN: &str = r#"
d="$SM_ROOT/checkpoints"
echo "$TRAINING_JOB_NAME $SM_ATTEMPT_ID" >> "$STARTS"
i=$(cat "$d/at" 2>/dev/null || echo 0)
while [ "$i" -lt 9 ]; do
  echo "[$i]#011validation-auc:0.$i$SM_HP_DEPTH"
  i=$((i+1))
  echo "$i" > "$d/at.new" && mv "$d/at.new" "$d/at"
  sleep 0.1
done
"#;

fn request() -> Value {
    json!({
        "HyperParameterTuningJobName": "killed",
        "HyperParameterTuningJobConfig": {
            "Strategy": "Hyperband",
            "StrategyConfig": {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 9}},
            "RandomSeed": 3,
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "validation:auc"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 60, "MaxParallelTrainingJobs": 3},
            "ParameterRanges": {"IntegerParameterRanges": [
                {"Name": "depth", "MinValue": "1", "MaxValue": "99999", "ScalingType": "Linear"}
            ]}
        },
        "TrainingJobDefinition": {
            "AlgorithmSpecification": {
                "TrainingImage": "local",
                "TrainingInputMode": "File",
                "MetricDefinitions": [{"Name": "validation:auc", "Regex": "#011validation-auc:(\\S+)"}]
            },
            "RoleArn": "arn:aws:iam::111122223333:role/example-training-role",
            "OutputDataConfig": {"S3OutputPath": "s3://example-bucket/out"},
            "HyperParameterTuningResourceConfig": {
                "InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1
            },
            "EnableManagedSpotTraining": true,
            "CheckpointConfig": {"S3Uri": "s3://example-bucket/checkpoints"},
            "StoppingCondition": {"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 1200}
        },
        "Controller": {
            "MaxCostUsd": 1,
            "InstancePricesUsdPerHour": {"ml.m5.large": 0.115},
            "EpochPattern": "\\[(\\d+)\\]",
            "EpochBase": 0
        }
    })
}

struct Run {
    folder: TempDir,
}

impl Run {
    fn command(&self) -> Command {
        let path = |name: &str| self.folder.path().join(name);
        let mut command = Command::new(HYPERBAND);
        command.env(MARK, self.folder.path()).env("STARTS", path("starts"));
        command.args(["run", "--output", "json", "--grace-seconds", "2", "--data-dir"]).arg(path("data"));
        command.arg(path("request.json")).args(["--", "sh", "-c", TRAIN]);
        command
    }

    fn start(&self) -> Child {
        self.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn ask(&self, words: &[&str]) -> Output {
        let mut command = Command::new(HYPERBAND);
        command.args(words).arg("--data-dir").arg(self.folder.path().join("data")).output().unwrap()
    }

    /// Processes that carry this test's mark.
    fn marked(&self) -> BTreeSet<u32> {
        let mark = format!("{MARK}={}", self.folder.path().display());
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        })
        .collect()
    }

    /// Waits until no process carries the mark: none is orphaned.
    fn no_process_is_left(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !self.marked().is_empty() {
            assert!(Instant::now() < deadline, "orphaned processes: {:?}", self.marked());
            sleep(Duration::from_millis(20));
        }
    }
}

/// A sequence that looks random and is the same in every run.
fn moments() -> impl Iterator<Item = Duration> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::from_fn(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some(Duration::from_millis(30 + state % 900))
    })
}

fn names(data: &Path) -> Vec<String> {
    let jobs = std::fs::read_dir(data.join("training/jobs")).unwrap().flatten();
    jobs.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[test]
fn a_run_killed_at_random_moments_ends_as_if_it_had_not_been() {
    let run = Run { folder: TempDir::new().unwrap() };
    std::fs::write(run.folder.path().join("request.json"), request().to_string()).unwrap();

    let mut killed = 0;
    for moment in moments().take(usize::try_from(KILLS).unwrap()) {
        let mut child = run.start();
        sleep(moment);
        if child.try_wait().unwrap().is_none() {
            killed += 1;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        run.no_process_is_left();
    }
    assert!(killed >= 20, "only {killed} kills hit a running controller");

    let output = run.command().output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    run.no_process_is_left();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let tuning = &result["TuningJob"];
    assert_eq!(tuning["HyperParameterTuningJobStatus"], "Completed", "{tuning:#}");
    let jobs = result["TrainingJobs"].as_array().unwrap();

    // No training job name was used twice, and the training service knows no job that the tuning does not.
    let told: BTreeSet<&str> = jobs.iter().map(|job| job["TrainingJobName"].as_str().unwrap()).collect();
    assert_eq!(told.len(), jobs.len());
    let created = names(&run.folder.path().join("data"));
    assert!(created.iter().all(|name| told.contains(name.as_str())), "{created:?} {told:?}");
    // Each start of a job was one run of its own.
    let starts = std::fs::read_to_string(run.folder.path().join("starts")).unwrap();
    let starts: Vec<&str> = starts.lines().collect();
    assert_eq!(
        starts.iter().collect::<BTreeSet<_>>().len(),
        starts.len(),
        "a run of a job was started twice"
    );

    // Nothing is paid twice: what was spent is the sum of the jobs' bills, and within the cap.
    let micro = |value: &Value| (value.as_f64().unwrap_or(0.0) * 1e6).round();
    let bills: f64 = jobs.iter().map(|job| micro(&job["Controller"]["CostUsd"])).sum();
    let controller = &tuning["Controller"];
    assert!((bills - micro(&controller["SpentUsd"])).abs() < 0.5, "{bills} {controller}");
    assert!(micro(&controller["ReservedUsd"]) < 0.5);
    assert!(micro(&controller["SpentUsd"]) <= micro(&controller["CapUsd"]), "P1");
    let interrupted = jobs.iter().filter(|job| job["TrainingJobStatus"] == "Failed").count();
    assert_eq!(interrupted, 0, "a spot job that lost its machine goes on");

    let replay = run.ask(&["replay", "killed"]);
    assert_eq!(replay.status.code(), Some(0), "{}", String::from_utf8_lossy(&replay.stdout));
}
