//! The world in which every method plays, and the record of one tuning in it.

use curves::{Checkpoint, Setting};
use tuning::unit::limits::MAX_TRAINING_JOBS;

/// Virtual times at which tunings are measured, in seconds. At the last one they end.
pub const CHECKPOINTS: [f64; 4] = [600.0, 1_800.0, 3_600.0, 7_200.0];

/// The world of all tunings.
#[derive(Debug, Clone, PartialEq)]
pub struct World {
    /// Training jobs of a tuning.
    pub max_jobs: u32,
    /// Everything else.
    pub setting: Setting,
}

impl World {
    /// Returns a world whose tunings end after `max_jobs` training jobs. With the most that a tuning may have, they end
    /// after the last of [`CHECKPOINTS`] instead.
    pub fn new(max_jobs: u32, noise: f64, unique_rows: bool) -> Self {
        let setting = Setting { noise, unique_rows, ..Setting::default() };
        let is_timed = max_jobs >= MAX_TRAINING_JOBS;
        let checkpoints = if is_timed { CHECKPOINTS.to_vec() } else { Vec::new() };
        let until_seconds = CHECKPOINTS.last().copied().filter(|_| is_timed);
        Self { max_jobs, setting: Setting { checkpoints, until_seconds, ..setting } }
    }

    /// Returns whether tunings end after a time.
    pub fn is_timed(&self) -> bool {
        self.setting.until_seconds.is_some()
    }

    /// Returns the share of billed training in that of [`Self::max_jobs`] jobs with all epochs; `None` if tunings end
    /// after a time.
    pub fn billed_share(&self, minutes: f64) -> Option<f64> {
        let whole = f64::from(self.max_jobs) * self.setting.mean_job_seconds / 60.0;
        (!self.is_timed()).then(|| minutes / whole)
    }

    /// Returns whether tables answer as those of the recorded peers did: without noise, each row any number of times.
    pub fn is_plain(&self) -> bool {
        self.setting.noise <= 0.0 && !self.setting.unique_rows
    }
}

/// One tuning.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Configurations that were started.
    pub trials: u32,
    /// The state at each of [`CHECKPOINTS`], or at the end.
    pub checkpoints: Vec<Checkpoint>,
}
