//! `hyperband run` killed with SIGKILL at random moments, again and again, and started again each time.
//!
//! P4: "a crash between any two calls loses nothing." P2: "no decision is performed twice with effect, none is lost."
//! P1: "spent + reserved <= cap at every step." P5: "replay gives the same decisions, on any machine."
//! Once with jobs that are stopped, once with trials that are promoted while their machines are taken away as well.
#![expect(clippy::unwrap_used, reason = "helpers of a test fail with it")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

const HYPERBAND: &str = env!("CARGO_BIN_EXE_hyperband");
/// Kills after which the tuning is left in peace in any case.
const MOST_KILLS: usize = 40;
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

/// The same for trials that are promoted: it trains to the epochs that it is told. What it trains and what it keeps is noted,
/// in an order that can only be stricter than what happened: an epoch before it is shown, a checkpoint after it is there.
/// A line that a killed controller had not read yet is lost; so a job that finds nothing to train shows its last value again.
const TRAIN_TO_LEVEL: &str = r#"
d="$SM_ROOT/checkpoints"
echo "$TRAINING_JOB_NAME $SM_ATTEMPT_ID" >> "$STARTS"
i=$(cat "$d/at" 2>/dev/null || echo 0)
[ "$i" -lt "$SM_HP_EPOCHS" ] || echo "[$((i-1))]#011validation-auc:0.$((i-1))$SM_HP_DEPTH"
while [ "$i" -lt "$SM_HP_EPOCHS" ]; do
  echo "$TRAINING_JOB_NAME trains $i" >> "$EPOCHS"
  echo "[$i]#011validation-auc:0.$i$SM_HP_DEPTH"
  i=$((i+1))
  echo "$i" > "$d/at.new" && mv "$d/at.new" "$d/at"
  echo "$TRAINING_JOB_NAME keeps $i" >> "$EPOCHS"
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

/// Two full sets of brackets whose trials are promoted: 44 jobs.
fn promoting() -> Value {
    let mut request = request();
    request["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(44);
    request["Controller"]["RungExecution"] = json!("Promote");
    request["Controller"]["ResourceHyperParameter"] = json!("epochs");
    request
}

struct Run {
    folder: TempDir,
    train: &'static str,
    /// Further options of `run`.
    options: &'static [&'static str],
}

impl Run {
    fn new(request: &Value, train: &'static str, options: &'static [&'static str]) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("request.json"), request.to_string()).unwrap();
        Self { folder, train, options }
    }

    fn command(&self) -> Command {
        let path = |name: &str| self.folder.path().join(name);
        let mut command = Command::new(HYPERBAND);
        command.env(MARK, self.folder.path()).env("STARTS", path("starts"));
        command.env("EPOCHS", path("epochs"));
        command.args(["run", "--output", "json", "--grace-seconds", "2", "--data-dir"]).arg(path("data"));
        command.args(self.options).arg(path("request.json")).args(["--", "sh", "-c", self.train]);
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

/// A sequence that looks random and is the same in every run; milliseconds up to `longest`.
fn moments(longest: u64) -> impl Iterator<Item = Duration> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::from_fn(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some(Duration::from_millis(30 + state % longest))
    })
}

fn names(data: &Path) -> Vec<String> {
    let jobs = std::fs::read_dir(data.join("training/jobs")).unwrap().flatten();
    jobs.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// Kills the controller `kills` times, and more often until `enough` of its jobs' starts, and starts it again each time; then
/// leaves it in peace. The result of the tuning.
fn killed(run: &Run, kills: usize, longest: u64, enough: fn(&str) -> bool) -> Value {
    let mut killed = 0;
    let starts = || std::fs::read_to_string(run.folder.path().join("starts")).unwrap_or_default();
    for (number, moment) in moments(longest).take(MOST_KILLS).enumerate() {
        if number >= kills && enough(&starts()) {
            break;
        }
        let mut child = run.start();
        sleep(moment);
        if child.try_wait().unwrap().is_none() {
            killed += 1;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        run.no_process_is_left();
    }
    assert!(killed * 6 >= kills * 5, "only {killed} of {kills} kills hit a running controller");
    assert!(enough(&starts()), "too little was done between the kills:\n{}", starts());
    let output = run.command().output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    run.no_process_is_left();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Nothing was lost, nothing done twice, nothing paid twice; the decisions are the same again.
fn assert_as_if_never_killed(run: &Run, result: &Value) {
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

/// Whether a job was started for a rung above the first.
fn is_promoted(starts: &str) -> bool {
    // <tuning>-<trial>-<rung>-<attempt> <start>
    let names = starts.lines().filter_map(|line| line.split(' ').next());
    names.filter_map(|name| name.rsplit('-').nth(1)).any(|rung| rung != "0")
}

/// No epoch that a trial's checkpoint held was trained again, by any job of the trial.
fn assert_no_kept_epoch_is_trained_again(run: &Run) {
    let notes = std::fs::read_to_string(run.folder.path().join("epochs")).unwrap();
    let mut kept: BTreeMap<String, u32> = BTreeMap::new();
    for note in notes.lines() {
        let words: Vec<&str> = note.split(' ').collect();
        let &[job, what, epoch] = words.as_slice() else { panic!("{note}") };
        // <tuning>-<trial>-<rung>-<attempt>
        let trial = job.rsplitn(3, '-').last().unwrap().to_owned();
        let epoch: u32 = epoch.parse().unwrap();
        let kept = kept.entry(trial).or_default();
        match what {
            "trains" => assert!(epoch >= *kept, "{note}, although {kept} epochs were kept\n{notes}"),
            "keeps" => *kept = (*kept).max(epoch),
            _ => panic!("{note}"),
        }
    }
}

#[test]
fn a_run_killed_at_random_moments_ends_as_if_it_had_not_been() {
    let run = Run::new(&request(), TRAIN, &[]);
    let result = killed(&run, 24, 900, |_| true);
    assert_as_if_never_killed(&run, &result);
}

#[test]
fn trials_are_promoted_whatever_is_killed_or_taken_away_meanwhile() {
    let run = Run::new(&promoting(), TRAIN_TO_LEVEL, &["--spot-interruptions", "7200"]);
    let result = killed(&run, 12, 2_500, is_promoted);
    assert_as_if_never_killed(&run, &result);
    assert_no_kept_epoch_is_trained_again(&run);
    let jobs = result["TrainingJobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 44);
    let mut to_the_end = BTreeSet::new();
    for job in jobs {
        let controller = &job["Controller"];
        assert_eq!(job["TrainingJobStatus"], "Completed", "{job:#}");
        assert_eq!(controller["Resource"], controller["Level"], "{job:#}");
        assert!(controller.get("RepeatedFrom").is_none(), "{job:#}");
        if controller["Level"] == 9 {
            to_the_end.insert(controller["Bracket"].as_u64().unwrap());
        }
    }
    assert_eq!(to_the_end, BTreeSet::from([0, 1, 2]), "one of every bracket comes to its end");
}
