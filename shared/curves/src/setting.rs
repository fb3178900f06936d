//! The setting of a simulation, in seconds, and their conversion from and to the milliseconds of virtual time.

use std::ops::Range;

/// The world around a simulated tuning.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Jobs that run at once.
    pub workers: u32,
    /// Seconds from the start of a job to the beginning of its first epoch.
    pub startup_seconds: f64,
    /// Seconds of the mean whole job, without its start-up.
    pub mean_job_seconds: f64,
    /// The time in seconds after which the simulation ends, if the tuning has not ended.
    pub until_seconds: Option<f64>,
    /// The times, in seconds, at which the state is measured; empty = at the end only.
    pub checkpoints: Vec<f64>,
    /// Spot interruptions per hour of a running job.
    pub interruptions_per_hour: f64,
    /// Seconds of virtual time between which no job gets instances.
    pub capacity_outage: Option<Range<f64>>,
    /// Standard deviation of the noise of each value, as a share of (best - median) of the recorded configurations.
    pub noise: f64,
    /// How much worse each value of the trials of a training job definition is, by its number, as a share of (best - median)
    /// of the recorded configurations; 0 for those that are not listed.
    pub handicaps: Vec<f64>,
    /// Whether each recorded configuration answers one trial only.
    pub unique_rows: bool,
    /// Every epoch and start-up takes exp(jitter x standard normal) as long.
    pub time_jitter: f64,
    /// Seconds from the end of a job to its bill.
    pub settle_seconds: f64,
    /// Whether a promoted job continues from the checkpoint of its trial.
    pub resumes: bool,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            workers: 4,
            startup_seconds: 60.0,
            mean_job_seconds: 180.0,
            until_seconds: None,
            checkpoints: Vec::new(),
            interruptions_per_hour: 0.0,
            capacity_outage: None,
            noise: 0.0,
            handicaps: Vec::new(),
            unique_rows: false,
            time_jitter: 0.0,
            settle_seconds: 5.0,
            resumes: true,
        }
    }
}

/// Returns a duration in whole milliseconds.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
pub fn milliseconds(seconds: f64) -> i64 {
    libm::round(seconds * 1_000.0) as i64
}

/// Returns a time of the simulation in seconds.
#[expect(clippy::cast_precision_loss, reason = "a simulation lasts less than 2^53 ms")]
pub fn seconds(milliseconds: i64) -> f64 {
    milliseconds as f64 / 1_000.0
}
