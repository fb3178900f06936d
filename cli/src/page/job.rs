//! A training job in a response of the API.

use search::Configuration;
use wire::describe::TrainingJobSummary;

use crate::event_text::stop_words;
use crate::text::clean;

pub(super) fn last_value(job: &TrainingJobSummary) -> Option<f64> {
    job.final_objective.as_ref().map(|last| last.value)
}

/// Returns its hyperparameters.
pub(crate) fn configuration(job: &TrainingJobSummary) -> Configuration {
    Configuration(job.tuned.clone())
}

/// Returns why it was stopped or failed, in a few words.
pub(super) fn why(job: &TrainingJobSummary) -> String {
    let own = &job.controller;
    let repeated = own.repeated_from.map(u64::from);
    stop_words(own.stop_reason.as_deref(), job.failure_reason.as_deref(), repeated)
}

/// Like [`why`], but returns the whole failure reason, on one line.
pub(super) fn whole_why(job: &TrainingJobSummary) -> String {
    let own = &job.controller;
    let Some(reason) = job.failure_reason.as_deref().filter(|_| own.stop_reason.is_none()) else {
        return why(job);
    };
    let restarted = stop_words(None, None, own.repeated_from.map(u64::from));
    let lines = reason.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>();
    let parts = [restarted, clean(&lines.join(" | "))].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns whether it has ended and is settled.
pub(super) fn is_over(job: &TrainingJobSummary) -> bool {
    is_billed(job) || matches!(job.controller.state.as_str(), "Refused" | "NotStarted")
}

/// Returns whether it ran and its bill is known.
pub(super) fn is_billed(job: &TrainingJobSummary) -> bool {
    job.controller.cost_usd.is_some()
}

/// Returns whether it trained all its epochs, even if it was stopped at the last one.
pub(super) fn is_whole(job: &TrainingJobSummary) -> bool {
    job.controller.state == "Completed" || job.controller.stop_reason.as_deref() == Some("MaxResource")
}

/// Returns whether the controller stopped it.
pub(super) fn was_stopped(job: &TrainingJobSummary) -> bool {
    job.controller.stop_reason.is_some()
}
