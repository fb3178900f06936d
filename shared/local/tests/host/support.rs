//! A host in a temporary folder, and a request.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::time::Duration;

use local::host::{Host, HostConfig, training_path};
use local::training::Config;
use serde_json::{Value, json};
use tempfile::TempDir;
use wire::sample;

/// A data directory and the settings of its host.
pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    pub(crate) grace: Duration,
    pub(crate) spot_interruptions_per_hour: f64,
    pub(crate) sweep_every: Duration,
    pub(crate) slots: Option<NonZeroU32>,
    pub(crate) script: String,
}

impl Fixture {
    /// Returns a fixture whose training command is `sh -c script`.
    pub(crate) fn new(script: &str) -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            grace: Duration::from_secs(5),
            spot_interruptions_per_hour: 0.0,
            sweep_every: Duration::from_secs(2),
            slots: None,
            script: script.to_owned(),
        }
    }

    /// Runs a tuning to its end. Returns its description and its jobs.
    pub(crate) async fn run(&self, request: &Value) -> (Value, Vec<Value>) {
        let host = self.open().await;
        let id = host.submit(request.to_string().as_bytes()).await.unwrap().id();
        tokio::time::timeout(Duration::from_secs(90), host.ended(&id))
            .await
            .expect("the tuning ends in time")
            .unwrap();
        let described = host.describe(&id).await.unwrap().unwrap();
        let jobs =
            use_cases::describe::jobs(host.store(), &local::host::place(), &id).await.unwrap().unwrap();
        let replayed = use_cases::replay::replay(host.store(), &id).await.unwrap().unwrap();
        assert_eq!(replayed.difference, None, "P5: the replay gives the same decisions");
        host.shutdown().await;
        (json!(described), jobs.iter().map(|job| json!(job)).collect())
    }

    /// Returns the stored rulings of one kind of the tuning `name`, in order.
    pub(crate) async fn rulings(&self, name: &str, kind: &str) -> Vec<Value> {
        let host = self.open().await;
        let row = use_cases::lookup::find(host.store(), name).await.unwrap();
        let steps = wire::stored::tuning_partition(&row.id);
        let steps = host.store().all(&steps, "STEP#").await.unwrap();
        host.shutdown().await;
        let steps = steps.iter().map(|row| wire::stored::step(row).unwrap());
        let rulings = steps.flat_map(|step| step.rulings).map(|ruling| serde_json::to_value(ruling).unwrap());
        rulings.filter_map(|mut ruling| ruling.get_mut(kind).map(Value::take)).collect()
    }

    pub(crate) fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) async fn open(&self) -> Host {
        Host::open(self.config()).await.unwrap()
    }

    pub(crate) fn config(&self) -> HostConfig {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect();
        let shim = words(&[env!("CARGO_BIN_EXE_local-test-host"), "__host"]);
        let training = Config {
            grace: self.grace,
            spot_interruptions_per_hour: self.spot_interruptions_per_hour,
            seed: 7,
            slots: self.slots,
            ..Config::new(training_path(&self.data()), words(&["sh", "-c", &self.script]), shim)
        };
        HostConfig { data_dir: self.data(), training, sweep_every: self.sweep_every }
    }
}

/// Returns a Hyperband request over `depth` 1 to 99999, with at most 9 epochs and two jobs at a time.
pub(crate) fn request(name: &str, jobs: u32) -> Value {
    let resources = json!({"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1});
    let changes = json!({
        "HyperParameterTuningJobConfig": {"ResourceLimits": {"MaxNumberOfTrainingJobs": jobs}},
        "TrainingJobDefinition": {"ResourceConfig": null, "HyperParameterTuningResourceConfig": resources},
        "Controller": {"MaxCostUsd": 10, "Sampler": "Sobol"},
    });
    sample::with(sample::local_request(name), changes)
}
