//! The world in which every method plays, and the record of one tuning in it.

use clap::ValueEnum;
use curves::{Checkpoint, Setting};
use tuning::unit::limits::MAX_TRAINING_JOBS;

/// Virtual times at which tunings are measured, in seconds.
pub const CHECKPOINTS: [f64; 4] = [600.0, 1_800.0, 3_600.0, 7_200.0];

/// Billed training of all jobs, without start-ups, at which tunings are measured instead, in seconds.
pub const BILLED_CHECKPOINTS: [f64; 4] = [900.0, 1_800.0, 3_600.0, 7_200.0];
/// The times between which [`BILLED_CHECKPOINTS`] are found, in seconds.
const STEP_SECONDS: u32 = 30;
/// A tuning that is measured by its bill ends after so many steps. Methods with many short jobs bill little in an hour.
const STEPS: u32 = 480;

/// What the regrets of tunings are measured against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Axis {
    /// The time since the start of the tuning
    Time,
    /// The billed training time of all jobs, without start-ups
    Billed,
    /// The end of the tuning
    #[value(skip)]
    End,
}

/// The world of all tunings.
#[derive(Debug, Clone, PartialEq)]
pub struct World {
    /// Training jobs of a tuning.
    pub max_jobs: u32,
    /// What regrets are measured against.
    pub axis: Axis,
    /// Everything else.
    pub setting: Setting,
}

impl World {
    /// Returns a world whose tunings end after `max_jobs` training jobs. With the most that a tuning may have, they are
    /// measured along `axis` instead, and end after 7,200 s ([`Axis::Time`]) or 14,400 s ([`Axis::Billed`]).
    pub fn new(max_jobs: u32, axis: Axis, noise: f64, unique_rows: bool) -> Self {
        let setting = Setting { noise, unique_rows, ..Setting::default() };
        let axis = if max_jobs >= MAX_TRAINING_JOBS { axis } else { Axis::End };
        let checkpoints = match axis {
            Axis::Time => CHECKPOINTS.to_vec(),
            Axis::Billed => (1..=STEPS).map(|step| f64::from(step.saturating_mul(STEP_SECONDS))).collect(),
            Axis::End => Vec::new(),
        };
        let until_seconds = checkpoints.last().copied();
        Self { max_jobs, axis, setting: Setting { checkpoints, until_seconds, ..setting } }
    }

    /// Returns whether tunings end after a time.
    pub fn is_timed(&self) -> bool {
        self.axis != Axis::End
    }

    /// Returns the points of the axis, in seconds; one of an unknown time where tunings are measured at their end.
    pub fn points(&self) -> &'static [f64] {
        match self.axis {
            Axis::Time => &CHECKPOINTS,
            Axis::Billed => &BILLED_CHECKPOINTS,
            Axis::End => &[f64::INFINITY],
        }
    }

    /// Returns the states of a tuning at the points of the axis. Where it billed less, the state at its end counts.
    pub fn measured(&self, states: Vec<Checkpoint>) -> Vec<Checkpoint> {
        if self.axis != Axis::Billed {
            return states;
        }
        let at = |billed: &f64| {
            let reached = states.iter().find(|state| state.billed_training_seconds >= *billed);
            reached.or(states.last()).cloned()
        };
        self.points().iter().filter_map(at).collect()
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
    /// The state at each of [`World::points`].
    pub checkpoints: Vec<Checkpoint>,
}
