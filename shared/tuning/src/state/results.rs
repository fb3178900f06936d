//! Results of concluded jobs: their numbers, their best values and their failures.

use hyperband::ranking::improves;
use search::Configuration;
use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::log::fact::{JobEnd, JobKey};
use crate::log::problem::LogProblem;
use crate::state::failures::Failures;
use crate::trial::Trial;
use crate::trial::summary::JobSummary;
use crate::trial::timing::Timings;
use crate::unit::epochs::Epochs;
use crate::unit::time::Time;

/// Sums and best values of concluded jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Jobs launched: ordered jobs without those that never started.
    pub launched: u32,
    /// Running times of concluded jobs.
    pub timings: Timings,
    /// Results by cluster size, where the search chooses it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizeResult>,
    /// What the refit trains; `None` without one, or while no job counts.
    pub refittable: Option<Box<Refittable>>,
    /// The job with the best final value among concluded jobs that count (the best training job in AMT).
    pub best: Option<Box<JobSummary>>,
    /// Concluded jobs by kind.
    pub counters: Counters,
    /// Trials that ended in a row without a finite value, since the last trial that logged its first one.
    pub fruitless: Fruitless,
    /// Whether any trial has logged the objective, also as NaN.
    pub has_logged: bool,
    /// The problems that logs of jobs show, one of each kind.
    pub log_problems: Vec<(JobKey, LogProblem)>,
    /// The message of the last failure.
    pub last_failure: Option<String>,
    /// Failed jobs by cause.
    pub failures: Failures,
}

/// Results of the trials of one cluster size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeResult {
    /// Trials started.
    pub trials: u32,
    /// The best value at any epoch of a trial whose job counts.
    pub best: Option<f64>,
}

/// What the refit trains: the configuration with the best value among trials whose jobs count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refittable {
    /// The value.
    pub value: f64,
    /// Its epoch.
    pub resource: Epochs,
    /// The hyperparameters of its trial.
    pub configuration: Configuration,
}

/// Trials that ended in a row without a finite value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fruitless {
    /// How many.
    pub trials: u32,
    /// When the last of them ended.
    pub at: Time,
}

/// Concluded jobs by kind (the counters of AMT).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Completed.
    pub completed: u32,
    /// Stopped by a request or a limit.
    pub stopped: u32,
    /// Ended for lack of capacity or by a failure of the service.
    pub retryable_error: u32,
    /// Failed by a fault of the program, or refused.
    pub non_retryable_error: u32,
    /// With a final objective value.
    pub objective_succeeded: u32,
    /// Without a final objective value.
    pub objective_failed: u32,
}

impl Results {
    pub(crate) fn update_best(&mut self, definition: &Definition, mut summary: JobSummary, counts: bool) {
        let counters = &mut self.counters;
        let Some(value) = summary.last_value.filter(|_| counts) else {
            counters.objective_failed = counters.objective_failed.saturating_add(1);
            return;
        };
        counters.objective_succeeded = counters.objective_succeeded.saturating_add(1);
        let best = self.best.as_ref().and_then(|best| best.last_value);
        if best.is_none_or(|best| improves(definition.direction(), value, best)) {
            summary.curve = Vec::new();
            self.best = Some(Box::new(summary));
        }
    }

    /// Returns the results of the cluster size of a trial; `None` where all jobs have one size.
    pub(crate) fn of_size(&mut self, definition: &Definition, trial: &Trial) -> Option<&mut SizeResult> {
        let sizes = definition.job.sizes.len();
        self.sizes.resize(sizes, SizeResult::default());
        self.sizes.get_mut(definition.size_of(&trial.configuration).index())
    }

    /// Records the best value of a trial whose job counts.
    pub(crate) fn update_size(&mut self, definition: &Definition, trial: &Trial) {
        let Some(result) = self.of_size(definition, trial) else { return };
        for value in trial.curve.values().copied().flatten() {
            if result.best.is_none_or(|best| improves(definition.direction(), value, best)) {
                result.best = Some(value);
            }
        }
    }

    /// Updates what the refit trains by the curve of a trial whose job counts.
    pub(crate) fn update_refittable(&mut self, definition: &Definition, trial: &Trial) {
        if !definition.refit || trial.refit().is_some() {
            return;
        }
        let direction = definition.direction();
        let values = trial.curve.iter().filter_map(|(epoch, value)| Some((*epoch, (*value)?)));
        let best = values.reduce(|best, new| if improves(direction, new.1, best.1) { new } else { best });
        let known = self.refittable.as_ref().map(|known| known.value);
        if let Some((resource, value)) = best
            && known.is_none_or(|known| improves(direction, value, known))
        {
            let configuration = trial.configuration.clone();
            self.refittable = Some(Box::new(Refittable { value, resource, configuration }));
        }
    }
}

impl Counters {
    /// Counts the end of a job.
    pub(crate) fn count(&mut self, end: Option<JobEnd>) {
        let counter = match end {
            Some(JobEnd::Completed) => &mut self.completed,
            Some(JobEnd::Stopped | JobEnd::MaxRuntime | JobEnd::MaxWait) => &mut self.stopped,
            Some(JobEnd::CapacityError | JobEnd::ServiceError) => &mut self.retryable_error,
            Some(JobEnd::AlgorithmError) | None => &mut self.non_retryable_error,
        };
        *counter = counter.saturating_add(1);
    }
}
