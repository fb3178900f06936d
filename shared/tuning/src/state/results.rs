//! Results of concluded jobs: their numbers, their best values and their failures.

use hyperband::ranking::improves;
use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::log::fact::{JobEnd, JobKey};
use crate::log::problem::LogProblem;
use crate::state::failures::Failures;
use crate::state::front::Front;
use crate::trial::summary::JobSummary;
use crate::trial::timing::Timings;
use crate::unit::ids::SizeId;
use crate::unit::time::Time;

/// Sums and best values of concluded jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Jobs launched: ordered jobs without those that never started.
    pub launched: u32,
    /// Running times of concluded jobs.
    pub timings: Timings,
    /// Trials started with each cluster size, where the search chooses it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials_by_size: Vec<u32>,
    /// The trials with the best values for their costs.
    pub front: Front,
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

    /// Counts a trial that starts with a cluster size.
    pub(crate) fn count_trial(&mut self, definition: &Definition, size: SizeId) {
        if !definition.job.has_sizes() {
            return;
        }
        self.trials_by_size.resize(definition.job.all_sizes().count(), 0);
        if let Some(trials) = self.trials_by_size.get_mut(size.index()) {
            *trials = trials.saturating_add(1);
        }
    }
}

impl Counters {
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
