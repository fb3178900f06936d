//! Helpers of the tests: a folder with a request and a training program, runs of the program in it, and waits.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use wire::sample;

/// Maximum wait of a test. No test needs an idle machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(4);

/// Prints nine epochs quickly. A greater `x` is better.
pub(crate) const QUICK: &str = r#"
i=0
while [ $i -lt 9 ]; do
  printf '[%d]\tvalidation-auc:0.%d%s\n' $i $((i + 1)) "${SM_HP_X#0.}"
  sleep 0.02
  i=$((i + 1))
done
"#;

/// Prints one epoch, then trains forever.
pub(crate) const ENDLESS: &str = r"
printf '[0]\tvalidation-auc:0.5\n'
while :; do sleep 1; done
";

pub(crate) struct World {
    folder: TempDir,
    is_damaged: Cell<bool>,
}

/// Returns a request whose training jobs are a full set of its brackets.
pub(crate) fn full_set(name: &str) -> Value {
    let mut request = request(name);
    request["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(17);
    request
}

impl World {
    /// Creates a folder with `request.json` and `train.sh`.
    pub(crate) fn new(script: &str) -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap(), is_damaged: Cell::new(false) };
        world.write("train.sh", script);
        world.write_request("request.json", &request("t"));
        world
    }

    /// Leaves out the audit at the end: the test damages stored rows.
    pub(crate) fn will_be_damaged(&self) {
        self.is_damaged.set(true);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn write_request(&self, name: &str, request: &Value) {
        self.write(name, &request.to_string());
    }

    /// Returns the command that runs the program with `arguments` in the folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hyperband"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .env_remove("HYPERBAND_ENDPOINT")
            .env_remove("HTTPS_PROXY")
            .env_remove("https_proxy")
            .env_remove("ALL_PROXY")
            .env_remove("all_proxy")
            .env_remove("NO_PROXY")
            .env_remove("no_proxy")
            .env_remove("AWS_ACCESS_KEY_ID")
            .env_remove("AWS_SECRET_ACCESS_KEY")
            .env_remove("AWS_SESSION_TOKEN")
            .env_remove("AWS_PROFILE")
            .env("AWS_CONFIG_FILE", "/dev/null")
            .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
            .env("TERM", "xterm-256color")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program until it ends.
    pub(crate) fn hyperband(&self, arguments: &[&str]) -> Ended {
        ended(self.command(arguments).spawn().unwrap())
    }

    /// Runs `hyperband run request.json …options -- sh train.sh` until it ends.
    pub(crate) fn run(&self, options: &[&str]) -> Ended {
        ended(self.start(options))
    }

    /// Like [`Self::run`], but does not wait.
    pub(crate) fn start(&self, options: &[&str]) -> Child {
        let arguments = [&["run", "request.json"], options, &["--", "sh", "train.sh"]].concat();
        self.command(&arguments).spawn().unwrap()
    }

    /// Waits until the description of the tuning t satisfies `wanted`.
    pub(crate) fn until_described(&self, what: &str, wanted: impl Fn(&Value) -> bool) {
        until(what, || {
            let shown = self.hyperband(&["describe", "t", "--output", "json"]);
            shown.code == 0 && wanted(&shown.json())
        });
    }

    /// Returns the command lines of the folder's training processes, except zombies.
    pub(crate) fn processes(&self) -> Vec<String> {
        let mark = format!("SM_ROOT={}/", self.path(".hyperband").display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(environment) = fs::read(entry.path().join("environ")) else { continue };
            if environment.split(|byte| *byte == 0).any(|entry| entry.starts_with(mark.as_bytes())) {
                found.push(fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default());
            }
        }
        found
    }
}

/// Each tuning of each test is audited: P1, P2, P5 and P6, computed anew from its rows.
impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() || self.is_damaged.get() {
            return;
        }
        for entry in fs::read_dir(self.folder.path()).unwrap().flatten() {
            if entry.path().join("table.sqlite").exists() {
                let audited = self.hyperband(&["audit", "--data-dir", entry.path().to_str().unwrap()]);
                assert_eq!(audited.code, 0, "{audited:?}");
            }
        }
    }
}

/// The exit code and output of the program.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

/// Waits for a process. Panics after [`PATIENCE`].
pub(crate) fn ended(mut child: Child) -> Ended {
    let reader = std::thread::spawn({
        let id = child.id();
        let (out, err) = (child.stdout.take(), child.stderr.take());
        move || {
            let err = std::thread::spawn(move || err.map(std::io::read_to_string));
            let out = out.map(std::io::read_to_string);
            (id, out, err.join().unwrap())
        }
    });
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("the program did not end: {:?}", reader.join());
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let (_, out, err) = reader.join().unwrap();
    let text = |read: Option<std::io::Result<String>>| read.transpose().unwrap().unwrap_or_default();
    Ended { code: status.code().unwrap_or(-1), out: text(out), err: text(err) }
}

/// Waits until `condition` holds.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a signal by its name.
pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", child.id())]).status().unwrap();
    assert!(sent.success());
}

/// Returns a request with at most nine epochs and two parallel jobs.
pub(crate) fn request(name: &str) -> Value {
    let kinds = ["<script>alert('x')</script>", "<script>alert('y')</script>"];
    let ranges = json!({
        "IntegerParameterRanges": null,
        "ContinuousParameterRanges": [{"Name": "x", "MinValue": "0.1", "MaxValue": "0.9"}],
        "CategoricalParameterRanges": [{"Name": "kind", "Values": kinds}],
    });
    let metrics = json!([{"Name": "validation:auc", "Regex": r"validation-auc:([-+.\w]*\w)"}]);
    let changes = json!({
        "HyperParameterTuningJobConfig": {
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 6},
            "ParameterRanges": ranges,
        },
        "TrainingJobDefinition": {"AlgorithmSpecification": {"MetricDefinitions": metrics}},
    });
    sample::with(sample::local_request(name), changes)
}

/// Returns whether the file exists.
pub(crate) fn exists(path: &Path) -> bool {
    path.exists()
}
