//! A service in a temporary folder with collected feeds, and helpers to build requests and to wait.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tuning::unit::time::Time;

use base64::Engine;
use local::training::{Config, Feeds, TrainingService};
use serde_json::{Value, json};
use tempfile::TempDir;
use use_cases::ports::training::{JobLogs, LogLine, TrainingJobs};

/// The time-out of each wait of a test.
pub(crate) const PATIENCE: Duration = Duration::from_mins(4);

pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) service: TrainingService,
    pub(crate) received: Arc<Mutex<Received>>,
}

/// Everything that the feeds delivered.
#[derive(Default)]
pub(crate) struct Received {
    pub(crate) events: Vec<Value>,
    pub(crate) batches: Vec<Value>,
    /// The arrival time of each batch, in milliseconds since the epoch.
    pub(crate) times: Vec<i64>,
}

pub(crate) fn shim() -> Vec<OsString> {
    vec![env!("CARGO_BIN_EXE_local-test-host").into(), "__host".into()]
}

/// Returns a command that runs a shell script.
pub(crate) fn shell(script: &str) -> Vec<OsString> {
    ["/bin/sh", "-c", script].map(OsString::from).to_vec()
}

pub(crate) fn config(root: &Path, script: &str) -> Config {
    Config {
        grace: Duration::from_millis(300),
        delays: local::training::Delays { restart: Duration::from_millis(20), ..Default::default() },
        account: "111122223333".to_owned(),
        region: "us-east-1".to_owned(),
        ..Config::new(root.to_owned(), shell(script), shim())
    }
}

impl World {
    pub(crate) async fn new(script: &str) -> Self {
        Self::with(script, |_| {}).await
    }

    pub(crate) async fn with(script: &str, change: impl FnOnce(&mut Config)) -> Self {
        Self::open(tempfile::tempdir().unwrap(), script, change).await
    }

    pub(crate) async fn open(folder: TempDir, script: &str, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config(&folder.path().join("root"), script);
        change(&mut config);
        let (service, feeds) = TrainingService::open(config).await.unwrap();
        Self { folder, service, received: collect(feeds) }
    }

    /// Shuts this service down and opens another one on its folder.
    pub(crate) async fn reopen(self, script: &str, change: impl FnOnce(&mut Config)) -> Self {
        self.service.shutdown().await;
        let Self { folder, service, .. } = self;
        drop(service);
        Self::open(folder, script, change).await
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub(crate) async fn create(&self, request: &Value) {
        self.service.create(request).await.unwrap();
    }

    /// Returns the announced secondary statuses of a job, in order.
    pub(crate) fn states(&self, job: &str) -> Vec<String> {
        self.events(job).iter().map(|event| text(&event["detail"]["SecondaryStatus"])).collect()
    }

    pub(crate) fn events(&self, job: &str) -> Vec<Value> {
        let received = self.received.lock().unwrap();
        received.events.iter().filter(|event| event["detail"]["TrainingJobName"] == job).cloned().collect()
    }

    /// Returns the delivered messages of streams whose names contain `part`.
    pub(crate) fn messages(&self, part: &str) -> Vec<String> {
        let received = self.received.lock().unwrap();
        let mine = received.batches.iter().filter(|batch| text(&batch["logStream"]).contains(part));
        mine.flat_map(|batch| batch["logEvents"].as_array().unwrap().clone())
            .map(|event| text(&event["message"]))
            .collect()
    }

    pub(crate) fn streams(&self, part: &str) -> std::collections::BTreeSet<String> {
        let received = self.received.lock().unwrap();
        let names = received.batches.iter().map(|batch| text(&batch["logStream"]));
        names.filter(|name| name.contains(part)).collect()
    }

    /// Waits for the event of a job's end and returns its detail.
    pub(crate) async fn ended(&self, job: &str) -> Value {
        let last = || {
            self.events(job).into_iter().find(|event| {
                matches!(
                    event["detail"]["TrainingJobStatus"].as_str(),
                    Some("Completed" | "Failed" | "Stopped")
                )
            })
        };
        until(&format!("{job} ends"), || last().is_some()).await;
        last().unwrap()["detail"].clone()
    }

    pub(crate) async fn stored(&self, job: &str, host: &str) -> Vec<LogLine> {
        self.service.read(job, host, Time(0), None).await.unwrap().items
    }
}

/// Collects both feeds in one task. The service delivers the lines of a job before the event of its end, so they are in
/// the queue when that event arrives.
fn collect(mut feeds: Feeds) -> Arc<Mutex<Received>> {
    let received = Arc::new(Mutex::new(Received::default()));
    let kept = Arc::clone(&received);
    tokio::spawn(async move {
        let keep = |batch: &[u8]| {
            let batch = decode(batch);
            let mut received = kept.lock().unwrap();
            received.batches.push(batch);
            received.times.push(now());
        };
        loop {
            tokio::select! {
                Some(batch) = feeds.logs.recv() => keep(&batch),
                Some(event) = feeds.events.recv() => {
                    for _ in 0..feeds.logs.len() {
                        feeds.logs.try_recv().into_iter().for_each(|batch| keep(&batch));
                    }
                    kept.lock().unwrap().events.push(event);
                }
                else => break,
            }
        }
    });
    received
}

pub(crate) fn now() -> i64 {
    let passed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(passed.as_millis()).unwrap()
}

/// Decodes a delivery like a subscribed function.
pub(crate) fn decode(delivery: &[u8]) -> Value {
    let delivery: Value = serde_json::from_slice(delivery).unwrap();
    let data = base64::engine::general_purpose::STANDARD.decode(text(&delivery["awslogs"]["data"])).unwrap();
    let mut json = String::new();
    flate2::read::GzDecoder::new(&data[..]).read_to_string(&mut json).unwrap();
    serde_json::from_str(&json).unwrap()
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Waits until `condition` holds.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "timed out waiting until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Returns a request for one instance.
pub(crate) fn request(job: &str) -> Value {
    json!({
        "TrainingJobName": job,
        "HyperParameters": {"num_round": "27", "objective": "binary:logistic"},
        "AlgorithmSpecification": {"TrainingImage": "local", "TrainingInputMode": "File"},
        "RoleArn": "arn:aws:iam::111122223333:role/example",
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
        "ResourceConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        "Tags": [{"Key": "hyperband:tuning", "Value": "t"}],
    })
}

/// Returns a request for a spot job.
pub(crate) fn spot(job: &str) -> Value {
    let mut request = request(job);
    request["EnableManagedSpotTraining"] = json!(true);
    request["StoppingCondition"]["MaxWaitTimeInSeconds"] = json!(1200);
    request
}

pub(crate) fn instances(mut request: Value, count: u32) -> Value {
    request["ResourceConfig"]["InstanceCount"] = json!(count);
    request
}

/// Returns the host processes of `job` of the service on `root`, without zombies.
pub(crate) fn processes(root: &Path, job: &str) -> Vec<String> {
    let mark = format!("SM_ROOT={}/jobs/{job}/", root.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(environment) = std::fs::read(entry.path().join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|entry| entry.starts_with(mark.as_bytes())) {
            let command = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            found.push(format!("{} {}", entry.file_name().display(), command.replace('\0', " ")));
        }
    }
    found
}
