//! A training job in a response of the API.

use search::Configuration;
use wire::describe::TrainingJobSummary;

use crate::event_text::stop_words;
use crate::text::clean;

pub(super) fn last_value(job: &TrainingJobSummary) -> Option<f64> {
    job.final_objective.as_ref().map(|last| last.value)
}

pub(crate) fn configuration(job: &TrainingJobSummary) -> Configuration {
    Configuration(job.tuned.clone())
}

/// Returns why it was stopped or failed, in a few words.
pub(super) fn why(job: &TrainingJobSummary) -> String {
    let own = &job.controller;
    let repeated = own.repeated_from.map(u64::from);
    let stop = own.stop_reason.as_deref().filter(|why| *why != "MaxResource" || !is_whole(job));
    stop_words(stop, job.failure_reason.as_deref(), repeated)
}

/// Like [`why`], but returns the whole failure reason, on one line.
pub(super) fn uncut_why(job: &TrainingJobSummary) -> String {
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
    job.controller.cost_usd.is_some() || matches!(job.controller.state.as_str(), "Refused" | "NotStarted")
}

/// Returns whether it ran and its bill is known. The bill of a job that ended while it waited for its instances is zero.
pub(super) fn is_billed(job: &TrainingJobSummary) -> bool {
    let never_ran = job.started_ms.is_none() && job.controller.billable_seconds == Some(0);
    job.controller.cost_usd.is_some() && !never_ran
}

/// Returns whether its program ended by itself, with success.
pub(super) fn is_whole(job: &TrainingJobSummary) -> bool {
    job.controller.state == "Completed"
}

/// Returns whether it trained all its epochs and was stopped because it did not end. Its model may be missing.
pub(super) fn was_stopped_after_last_epoch(job: &TrainingJobSummary) -> bool {
    !is_whole(job) && job.controller.stop_reason.as_deref() == Some("MaxResource")
}

/// Returns whether the controller stopped it before its last epoch.
pub(super) fn was_stopped_early(job: &TrainingJobSummary) -> bool {
    !is_whole(job) && job.controller.stop_reason.as_deref().is_some_and(|why| why != "MaxResource")
}

#[cfg(test)]
mod tests {
    use wire::describe::JobController;

    use super::*;

    fn ended(state: &str, stop: Option<&str>) -> TrainingJobSummary {
        let own = JobController {
            state: state.to_owned(),
            stop_reason: stop.map(str::to_owned),
            ..JobController::default()
        };
        TrainingJobSummary { controller: own, ..TrainingJobSummary::default() }
    }

    #[test]
    fn regression_a_job_that_ended_while_it_waited_has_not_been_stopped_early() {
        let mut waited = ended("Stopped", Some("TuningEnding"));
        waited.controller.cost_usd = Some(tuning::unit::money::MicroUsd(0));
        waited.controller.billable_seconds = Some(0);
        assert!(is_over(&waited) && !is_billed(&waited), "it never started");
        waited.started_ms = Some(1);
        assert!(is_billed(&waited));
    }

    /// Such a job counted as one that had run to its end, although it may have left no model.
    #[test]
    fn regression_a_job_stopped_after_its_last_epoch_has_not_run_to_its_end() {
        let stopped = ended("Stopped", Some("MaxResource"));
        assert!(
            was_stopped_after_last_epoch(&stopped) && !is_whole(&stopped) && !was_stopped_early(&stopped)
        );
        assert_eq!(why(&stopped), "stopped after its last epoch: the model may be missing");
        let completed = ended("Completed", Some("MaxResource"));
        assert!(is_whole(&completed) && !was_stopped_after_last_epoch(&completed));
        assert_eq!(why(&completed), "", "it completed before the stop took effect");
        let at_rung = ended("Stopped", Some("Rung0"));
        assert!(was_stopped_early(&at_rung) && !was_stopped_after_last_epoch(&at_rung));
    }
}
