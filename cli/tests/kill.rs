//! Kills `hyperband run` with SIGKILL at random times and restarts it, many times.
//!
//! P4: "a crash between any two calls loses nothing." P2: "no decision is performed twice with effect, none is lost."
//! P1: "spent + reserved <= cap at every step." P5: "replay gives the same decisions, on any machine."
//! One test stops jobs at rungs. The other promotes trials and interrupts spot jobs.
#![expect(clippy::unwrap_used, reason = "a failed helper fails its test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use wire::sample;

const HYPERBAND: &str = env!("CARGO_BIN_EXE_hyperband");
/// Maximum number of kills.
const MAX_KILLS: usize = 40;
/// Environment variable of all processes of this test.
const MARK: &str = "HYPERBAND_KILL_TEST";

/// Saves a checkpoint after each epoch, continues from it, and prints absolute epochs. Records each start of a job.
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

/// Like [`TRAIN`], but trains to the requested epoch. Records each epoch before it is printed and each checkpoint after
/// it is saved, so that the record is at least as strict as reality. A killed controller can lose a line that it has
/// not read, so a job without epochs left prints its last value again.
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
    let resources = json!({"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1});
    let limits = json!({"MaxNumberOfTrainingJobs": 60, "MaxParallelTrainingJobs": 3});
    let changes = json!({
        "HyperParameterTuningJobConfig": {"RandomSeed": 3, "ResourceLimits": limits},
        "TrainingJobDefinition": {
            "ResourceConfig": null,
            "HyperParameterTuningResourceConfig": resources,
            "EnableManagedSpotTraining": true,
            "CheckpointConfig": {"S3Uri": "s3://example-bucket/checkpoints"},
            "StoppingCondition": {"MaxWaitTimeInSeconds": 1200},
        },
        "Controller": {"MaxCostUsd": 1},
    });
    sample::with(sample::local_request("killed"), changes)
}

/// Returns a request for two full sets of brackets with promotion: 44 jobs.
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
    /// Additional options of `run`.
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

    /// Returns the processes with this test's environment variable.
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

    /// Asserts that all processes end: none is orphaned.
    fn assert_all_processes_end(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !self.marked().is_empty() {
            assert!(Instant::now() < deadline, "orphaned processes: {:?}", self.marked());
            sleep(Duration::from_millis(20));
        }
    }
}

/// Returns a deterministic pseudorandom sequence of durations up to `longest` milliseconds.
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

/// Kills and restarts the controller `kills` times, and further until `enough` holds for the recorded starts. Then runs
/// it to the end and returns the result.
fn killed(run: &Run, kills: usize, longest: u64, enough: fn(&str) -> bool) -> Value {
    let mut killed = 0;
    let starts = || std::fs::read_to_string(run.folder.path().join("starts")).unwrap_or_default();
    for (number, moment) in moments(longest).take(MAX_KILLS).enumerate() {
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
        run.assert_all_processes_end();
    }
    assert!(killed * 6 >= kills * 5, "only {killed} of {kills} kills hit a running controller");
    assert!(enough(&starts()), "too little progress between the kills:\n{}", starts());
    let output = run.command().output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    run.assert_all_processes_end();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Asserts that nothing was lost, performed twice or paid twice, and that a replay gives the same decisions.
fn assert_as_if_never_killed(run: &Run, result: &Value) {
    let tuning = &result["TuningJob"];
    assert_eq!(tuning["HyperParameterTuningJobStatus"], "Completed", "{tuning:#}");
    let jobs = result["TrainingJobs"].as_array().unwrap();

    // Job names are unique, and the tuning knows all jobs of the training service.
    let known: BTreeSet<&str> = jobs.iter().map(|job| job["TrainingJobName"].as_str().unwrap()).collect();
    assert_eq!(known.len(), jobs.len());
    let created = names(&run.folder.path().join("data"));
    assert!(created.iter().all(|name| known.contains(name.as_str())), "{created:?} {known:?}");
    // No start of a job happened twice.
    let starts = std::fs::read_to_string(run.folder.path().join("starts")).unwrap();
    let starts: Vec<&str> = starts.lines().collect();
    assert_eq!(
        starts.iter().collect::<BTreeSet<_>>().len(),
        starts.len(),
        "a run of a job was started twice"
    );

    // The spent amount is the sum of the bills, and within the cap.
    let micro = |value: &Value| (value.as_f64().unwrap_or(0.0) * 1e6).round();
    let bills: f64 = jobs.iter().map(|job| micro(&job["Controller"]["CostUsd"])).sum();
    let controller = &tuning["Controller"];
    assert!((bills - micro(&controller["SpentUsd"])).abs() < 0.5, "{bills} {controller}");
    assert!(micro(&controller["ReservedUsd"]) < 0.5);
    assert!(micro(&controller["SpentUsd"]) <= micro(&controller["CapUsd"]), "P1");
    let interrupted = jobs.iter().filter(|job| job["TrainingJobStatus"] == "Failed").count();
    assert_eq!(interrupted, 0, "an interrupted spot job continues");

    let replay = run.ask(&["replay", "killed"]);
    assert_eq!(replay.status.code(), Some(0), "{}", String::from_utf8_lossy(&replay.stdout));
}

/// Returns whether a job was started for a rung above the first.
fn is_promoted(starts: &str) -> bool {
    // <tuning>-<trial>-<rung>-<attempt> <start>
    let names = starts.lines().filter_map(|line| line.split(' ').next());
    names.filter_map(|name| name.rsplit('-').nth(1)).any(|rung| rung != "0")
}

/// Asserts that no job trained an epoch again that was in its trial's checkpoint.
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
fn kills_at_random_times_do_not_change_the_result() {
    let run = Run::new(&request(), TRAIN, &[]);
    let result = killed(&run, 24, 900, |_| true);
    assert_as_if_never_killed(&run, &result);
}

#[test]
fn promotions_survive_kills_and_spot_interruptions() {
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
