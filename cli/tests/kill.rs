//! Kills `hyperband run` with SIGKILL at seeded points of its progress and restarts it, many times.
//!
//! P4: "a crash between any two calls loses nothing." P2: "no decision is performed twice with effect, none is lost."
//! P1: "spent + reserved <= cap at every step." P5: "replay gives the same decisions, on any machine."
//! One test stops jobs at rungs. The other promotes trials and interrupts spot jobs.
#![expect(clippy::unwrap_used, reason = "a failed helper fails its test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;
use wire::sample;

const HYPERBAND: &str = env!("CARGO_BIN_EXE_hyperband");
/// Environment variable of all processes of this test.
const MARK: &str = "HYPERBAND_KILL_TEST";
/// The time without a sign of progress after which a test fails. A busy machine needs seconds.
const HANG: Duration = Duration::from_mins(4);
/// Maximum number of the table's writes between a saved epoch and a kill. One decision has about as many.
const WRITES_MAX: usize = 4;

/// Saves a checkpoint after each epoch, continues from it, and prints absolute epochs. Records each start of a job, each
/// epoch before it is printed and each checkpoint after it is saved, so that the record is at least as strict as
/// reality. A killed controller can lose a line that it has not read, so a job without epochs left prints its last
/// value again.
const TRAIN: &str = r#"
d="$SM_ROOT/checkpoints"
echo "$TRAINING_JOB_NAME $SM_ATTEMPT_ID" >> "$STARTS"
i=$(cat "$d/at" 2>/dev/null || echo 0)
goal=${SM_HP_EPOCHS:-9}
[ "$i" -lt "$goal" ] || echo "[$((i-1))]#011validation-auc:0.$((i-1))$SM_HP_DEPTH"
while [ "$i" -lt "$goal" ]; do
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
    /// Additional options of `run`.
    options: &'static [&'static str],
}

impl Run {
    fn new(request: &Value, options: &'static [&'static str]) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("request.json"), request.to_string()).unwrap();
        Self { folder, options }
    }

    fn command(&self) -> Command {
        let path = |name: &str| self.folder.path().join(name);
        let mut command = Command::new(HYPERBAND);
        command.env(MARK, self.folder.path()).env("STARTS", path("starts"));
        command.env("EPOCHS", path("epochs"));
        command.args(["run", "--output", "json", "--grace-seconds", "2", "--data-dir"]).arg(path("data"));
        command.args(self.options).arg(path("request.json")).args(["--", "sh", "-c", TRAIN]);
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
        let start = Instant::now();
        while !self.marked().is_empty() {
            assert!(start.elapsed() < HANG, "orphaned processes: {:?}", self.marked());
            sleep(Duration::from_millis(20));
        }
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(file)).unwrap_or_default()
    }

    /// Returns the number of saved epochs. A saved epoch is never trained again, so each is progress of the tuning.
    fn kept(&self) -> usize {
        self.read("epochs").lines().filter(|note| note.contains(" keeps ")).count()
    }

    /// Returns a sign that differs after each write of the table: size and time of the write-ahead log.
    fn written(&self) -> Option<(u64, SystemTime)> {
        let log = std::fs::metadata(self.folder.path().join("data/table.sqlite-wal")).ok()?;
        Some((log.len(), log.modified().unwrap()))
    }

    /// Waits until `moment` has come. Returns whether the controller still runs.
    fn wait_for(&self, moment: Moment, child: &mut Child) -> bool {
        let goal = self.kept() + moment.epochs;
        let mut runs = progressed(child, || self.kept() >= goal);
        for _ in 0..moment.writes {
            let before = self.written();
            runs = runs && progressed(child, || self.written() != before);
        }
        runs
    }
}

/// Waits until `sign` holds. Returns `false` if the controller has ended before.
fn progressed(child: &mut Child, sign: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !sign() {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        assert!(start.elapsed() < HANG, "no progress");
        sleep(Duration::from_millis(1));
    }
    true
}

/// The time of a kill in signs of progress, not in seconds, so that the machine's speed does not matter.
#[derive(Debug, Clone, Copy)]
struct Moment {
    /// Number of further epochs that jobs save.
    epochs: usize,
    /// Number of the table's writes after that.
    writes: usize,
}

/// Returns a deterministic pseudorandom sequence of moments with up to `epochs_max` epochs.
fn moments(epochs_max: usize) -> impl Iterator<Item = Moment> {
    let mut state = 0x9e37_79b9_7f4a_7c15_usize;
    let mut next = move |max: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 8) % (max + 1)
    };
    std::iter::from_fn(move || Some(Moment { epochs: next(epochs_max), writes: next(WRITES_MAX) }))
}

fn names(data: &Path) -> Vec<String> {
    let jobs = std::fs::read_dir(data.join("training/jobs")).unwrap().flatten();
    jobs.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// Kills and restarts the controller `kills` times, and further until `enough` holds for the recorded starts. Then runs
/// it to the end and returns the result.
fn killed(run: &Run, kills: usize, epochs_max: usize, enough: fn(&str) -> bool) -> Value {
    let mut done = Vec::new();
    for moment in moments(epochs_max) {
        if done.len() >= kills && enough(&run.read("starts")) {
            break;
        }
        let mut child = run.start();
        assert!(
            run.wait_for(moment, &mut child),
            "the tuning ended before {moment:?}, after the kills {done:?}"
        );
        child.kill().unwrap();
        child.wait().unwrap();
        done.push(moment);
        run.assert_all_processes_end();
    }
    let before = |writes| done.iter().any(|moment| moment.epochs == 0 && moment.writes == writes);
    assert!((0..WRITES_MAX).any(before), "no kill came before a job trained: {done:?}");
    let after = |writes| done.iter().any(|moment| moment.epochs > 0 && moment.writes == writes);
    assert!((0..=WRITES_MAX).all(after), "a phase of a decision had no kill: {done:?}");
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
    let starts = run.read("starts");
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
    let notes = run.read("epochs");
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
fn kills_at_any_point_of_progress_do_not_change_the_result() {
    let run = Run::new(&request(), &[]);
    let result = killed(&run, 24, 4, |_| true);
    assert_as_if_never_killed(&run, &result);
    assert_no_kept_epoch_is_trained_again(&run);
}

#[test]
fn promotions_survive_kills_and_spot_interruptions() {
    let run = Run::new(&promoting(), &["--spot-interruptions", "3600"]);
    let result = killed(&run, 12, 7, is_promoted);
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
