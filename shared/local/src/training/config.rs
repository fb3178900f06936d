//! The settings of a training service, and the errors of opening it.
//!
//! `open` validates the settings with [`Config::check`]. This module reads neither the environment nor the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;
use tuning::unit::time::Time;

use thiserror::Error;

/// The settings of a [`super::TrainingService`].
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder of jobs, logs and checkpoints. Only one service at a time can use it.
    pub root: PathBuf,
    /// The program and arguments that every host of every job runs.
    pub command: Vec<OsString>,
    /// The program and arguments of the jobs of a training job definition, by its name. Jobs of others run `command`.
    pub commands: BTreeMap<String, Vec<OsString>>,
    /// The program and arguments that call [`super::shim::shim_main`], for example `[current_exe, "__host"]`.
    pub shim: Vec<OsString>,
    /// The time between SIGTERM and SIGKILL when a job is stopped or interrupted.
    pub grace: Duration,
    /// The rate of simulated interruptions of a running spot job, per job-hour; 0 means none.
    pub spot_interruptions_per_hour: f64,
    /// The seed of the simulated interruptions.
    pub seed: u64,
    /// The limits on running instances.
    pub quota: Quota,
    /// The maximum number of hosts that run at once, over all jobs; `None` means no limit. Further jobs wait in `Starting`
    /// and are not billed. A job with more hosts runs alone.
    pub slots: Option<NonZeroU32>,
    /// The devices, such as GPUs, that the slots share equally; they limit the slots. Each host sees its own in
    /// `CUDA_VISIBLE_DEVICES`.
    pub devices: Vec<String>,
    /// Whether every host gets the hyperparameters as arguments too, as the training toolkit of SageMaker passes them.
    pub pass_args: bool,
    /// The tunings, by tag `hyperband:tuning`, that a user has stopped. Their unfinished jobs stop when the service opens.
    pub stopping: BTreeSet<String>,
    /// Artificial delays, for steps that take time on SageMaker.
    pub delays: Delays,
    /// The account ID in ARNs and events, 12 digits.
    pub account: String,
    /// The Region in ARNs and events.
    pub region: String,
}

impl Config {
    /// Returns the default settings: 120 s grace, no interruptions, no quota, no slots, restart after 2 s.
    pub fn new(root: PathBuf, command: Vec<OsString>, shim: Vec<OsString>) -> Self {
        Self {
            root,
            command,
            commands: BTreeMap::new(),
            shim,
            grace: Duration::from_mins(2),
            spot_interruptions_per_hour: 0.0,
            seed: 0,
            quota: Quota::default(),
            slots: None,
            devices: Vec::new(),
            pass_args: false,
            stopping: BTreeSet::new(),
            delays: Delays::default(),
            account: "000000000000".to_owned(),
            region: "local".to_owned(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), OpenError> {
        if self.command.is_empty() || self.commands.values().any(Vec::is_empty) {
            return Err(OpenError::NoCommand);
        }
        if self.shim.is_empty() {
            return Err(OpenError::NoShim);
        }
        let rate = self.spot_interruptions_per_hour;
        if !rate.is_finite() || rate < 0.0 {
            return Err(OpenError::BadRate(rate));
        }
        Ok(())
    }
}

/// Limits on the instances of jobs that have not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quota {
    /// The limit of each named instance type, for spot and on-demand jobs together.
    pub instances: BTreeMap<String, u32>,
    /// The limit of every other instance type; `None` means no limit.
    pub default_instances: Option<u32>,
}

impl Quota {
    /// Returns the limit of `instance_type`; `None` means no limit.
    pub fn limit(&self, instance_type: &str) -> Option<u32> {
        self.instances.get(instance_type).copied().or(self.default_instances)
    }
}

/// Artificial delays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delays {
    /// The time in `Starting`, before any process runs.
    pub start: Duration,
    /// The time in `Uploading`.
    pub upload: Duration,
    /// The time in `Interrupted`, before the job restarts.
    pub restart: Duration,
}

impl Default for Delays {
    fn default() -> Self {
        Self { start: Duration::ZERO, upload: Duration::ZERO, restart: Duration::from_secs(2) }
    }
}

/// Why the service did not open. No job was started, and the folder is unchanged except for removed leftovers.
#[derive(Debug, Error)]
pub enum OpenError {
    /// [`Config::command`] is empty.
    #[error("missing training command: expected a program and its arguments")]
    NoCommand,
    /// [`Config::shim`] is empty, which is a programming error.
    #[error("missing host shim: expected a program and its arguments")]
    NoShim,
    /// The interruption rate is negative or not a number.
    #[error("invalid rate of spot interruptions per hour {0}: expected a number of at least 0")]
    BadRate(f64),
    /// The folder cannot be used.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// The failed operation, such as "read".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Another controller uses the folder.
    #[error("{} is in use by process {pid}: stop that process or use another folder", root.display())]
    InUse {
        /// The folder.
        root: PathBuf,
        /// The process ID in the lock file.
        pid: String,
    },
    /// A host process of an earlier controller does not end. The user must kill it.
    #[error(
        "process {pid} (host {host} of training job {job}) of an earlier controller is still running and holds {}: kill \
         the process",
        lock.display()
    )]
    HostAlive {
        /// The training job.
        job: String,
        /// The host, such as `algo-1`.
        host: String,
        /// The process ID of the host's shim, from the lock file.
        pid: String,
        /// The lock file that the process holds.
        lock: PathBuf,
    },
}

/// A job with an unreadable record. Its name stays taken, and the job is shown as failed. Other jobs are not affected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the record {} is damaged: {reason}", path.display())]
pub struct DamagedRecord {
    /// The training job name, which is the name of its folder.
    pub name: String,
    /// The record's file.
    pub path: PathBuf,
    /// Why the record is unreadable.
    pub reason: String,
    /// The time when the file was last written, in milliseconds since the epoch.
    pub modified: Time,
}
