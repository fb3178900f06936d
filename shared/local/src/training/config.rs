//! What a training service is opened with, and why it may not open.
//!
//! Assumes nothing; [`Config::check`] is called by `open`. Must never read the environment or the disk.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// Everything a [`super::TrainingService`] needs to know.
#[derive(Debug, Clone)]
pub struct Config {
    /// Folder that holds jobs, logs and checkpoints. One service at a time.
    pub root: PathBuf,
    /// Program and arguments that every host of every job runs.
    pub command: Vec<OsString>,
    /// Program and arguments that end in [`super::shim::shim_main`], such as `[current_exe, "__host"]`.
    pub shim: Vec<OsString>,
    /// Time between SIGTERM and SIGKILL when a job is stopped or interrupted.
    pub grace: Duration,
    /// Rate of made-up spot interruptions of a running spot job, per job-hour; 0 for none.
    pub spot_interruptions_per_hour: f64,
    /// Seed of those interruptions.
    pub seed: u64,
    /// How many instances may run.
    pub quota: Quota,
    /// Time that SageMaker would take and this machine does not.
    pub delays: Delays,
    /// Account id of ARNs and events, 12 digits.
    pub account: String,
    /// Region of ARNs and events.
    pub region: String,
}

impl Config {
    /// A configuration with the defaults: 120 s grace, no interruptions, no quota, restart after 2 s.
    pub fn new(root: PathBuf, command: Vec<OsString>, shim: Vec<OsString>) -> Self {
        Self {
            root,
            command,
            shim,
            grace: Duration::from_mins(2),
            spot_interruptions_per_hour: 0.0,
            seed: 0,
            quota: Quota::default(),
            delays: Delays::default(),
            account: "000000000000".to_owned(),
            region: "local".to_owned(),
        }
    }

    /// Refuses what could never work.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        if self.command.is_empty() {
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

/// Service limits on instances in use by jobs that have not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quota {
    /// Instances of a type; spot and on-demand count together.
    pub instances: BTreeMap<String, u32>,
    /// Limit of each type that is not named above; `None` for no limit.
    pub default_instances: Option<u32>,
}

impl Quota {
    /// The limit of `instance_type`.
    pub fn limit(&self, instance_type: &str) -> Option<u32> {
        self.instances.get(instance_type).copied().or(self.default_instances)
    }
}

/// Artificial waiting times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delays {
    /// In `Starting`, before anything runs.
    pub start: Duration,
    /// In `Uploading`.
    pub upload: Duration,
    /// In `Interrupted`, before the job starts again.
    pub restart: Duration,
}

impl Default for Delays {
    fn default() -> Self {
        Self { start: Duration::ZERO, upload: Duration::ZERO, restart: Duration::from_secs(2) }
    }
}

/// Why the service did not open. Nothing was started; what is on disk is as before, but for clean-up.
#[derive(Debug, Error)]
pub enum OpenError {
    /// [`Config::command`] is empty: ask for a command.
    #[error("no training command was given")]
    NoCommand,
    /// [`Config::shim`] is empty: a programming error.
    #[error("no host shim was given")]
    NoShim,
    /// The interruption rate is negative or not a number: refuse it.
    #[error("spot interruptions per hour must be a number of at least 0, not {0}")]
    BadRate(f64),
    /// The folder cannot be used: tell the person the path.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried, such as "read".
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// Another controller uses the folder: end it first or take another folder.
    #[error("{} is in use by process {pid}", root.display())]
    InUse {
        /// The folder.
        root: PathBuf,
        /// Process id of the other controller, as it wrote it.
        pid: String,
    },
    /// A host process of an earlier controller does not end: it must be ended by hand.
    #[error(
        "process {pid} (host {host} of training job {job}) of an earlier controller is still alive; it holds {}",
        lock.display()
    )]
    HostAlive {
        /// The training job.
        job: String,
        /// The host, such as `algo-1`.
        host: String,
        /// Process id of the host's shim, as it wrote it.
        pid: String,
        /// The lock file that it holds.
        lock: PathBuf,
    },
}

/// A job whose record cannot be read. Its name stays taken and it is shown as failed; other jobs are not affected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the record {} is damaged: {reason}", path.display())]
pub struct DamagedRecord {
    /// Training job name (its folder).
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
    /// When the file was last written, milliseconds since the epoch.
    pub modified: i64,
}
