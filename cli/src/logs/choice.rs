//! Chooses the training job whose log is printed.

use wire::describe::TrainingJobSummary;

use crate::page::Page;

/// Why no job can be chosen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoJob {
    /// The tuning has no training job.
    None,
    /// The tuning has no such trial or training job.
    Unknown,
}

/// Returns the job that `wanted` names: the newest of a trial, or the job of that name. Without `wanted`, the latest failed
/// job, else the newest running one, else the best one, else the newest.
pub(super) fn choose<'a>(page: &'a Page, wanted: Option<&str>) -> Result<&'a TrainingJobSummary, NoJob> {
    let best = page.described.best_training_job.as_ref().map(|best| best.name.as_str());
    chosen(&page.jobs, best, wanted)
}

fn chosen<'a>(
    jobs: &'a [TrainingJobSummary],
    best: Option<&str>,
    wanted: Option<&str>,
) -> Result<&'a TrainingJobSummary, NoJob> {
    let newest = |is: &dyn Fn(&TrainingJobSummary) -> bool| {
        jobs.iter().filter(|job| is(job)).max_by_key(|job| (job.created_ms, job.controller.attempt))
    };
    if let Some(wanted) = wanted {
        let named = |job: &TrainingJobSummary| job.name.eq_ignore_ascii_case(wanted);
        let found = match wanted.parse::<u32>() {
            Ok(trial) => newest(&|job| job.controller.trial == trial && has_run(job))
                .or_else(|| newest(&|job| job.controller.trial == trial)),
            Err(_) => newest(&named),
        };
        return found.ok_or(NoJob::Unknown);
    }
    let failed = jobs.iter().filter(|job| job.status == "Failed" && has_run(job));
    failed
        .max_by_key(|job| (job.ended_ms, job.created_ms))
        .or_else(|| newest(&|job| !has_ended(job) && job.started_ms.is_some()))
        .or_else(|| jobs.iter().find(|job| Some(job.name.as_str()) == best))
        .or_else(|| newest(&has_run))
        .or_else(|| newest(&|_| true))
        .ok_or(NoJob::None)
}

/// Returns whether a job can have a log: it was not refused or cancelled before its start.
pub(super) fn has_run(job: &TrainingJobSummary) -> bool {
    !matches!(job.controller.state.as_str(), "Refused" | "NotStarted")
}

pub(super) fn has_ended(job: &TrainingJobSummary) -> bool {
    !matches!(job.status.as_str(), "InProgress" | "Stopping")
}

#[cfg(test)]
mod tests {
    use wire::describe::JobController;

    use super::*;

    /// Returns a job that was created at a time, with a status and a state, and that ran unless it was refused.
    fn job(trial: u32, attempt: u32, created_ms: i64, state: &str) -> TrainingJobSummary {
        let status = match state {
            "Failed" | "ServiceError" | "Refused" => "Failed",
            "Training" | "Starting" => "InProgress",
            state => state,
        };
        let ran = !matches!(state, "Refused" | "Starting");
        TrainingJobSummary {
            name: format!("t-{trial}-0-{attempt}"),
            created_ms,
            started_ms: ran.then_some(created_ms),
            ended_ms: (ran && status != "InProgress").then_some(created_ms + 10),
            status: status.to_owned(),
            controller: JobController { trial, attempt, state: state.to_owned(), ..JobController::default() },
            ..TrainingJobSummary::default()
        }
    }

    #[test]
    fn a_trial_names_its_newest_job_that_ran_and_a_name_its_job() {
        let jobs = [job(0, 1, 1, "ServiceError"), job(0, 2, 5, "Completed"), job(0, 3, 9, "Refused")];
        let of = |wanted| chosen(&jobs, None, Some(wanted)).map(|job| job.name.as_str());
        assert_eq!(of("0"), Ok("t-0-0-2"));
        assert_eq!(of("T-0-0-1"), Ok("t-0-0-1"));
        assert_eq!(of("t-0-0-3"), Ok("t-0-0-3"));
        assert_eq!(
            (of("1"), of("t-0-0-4"), of("")),
            (Err(NoJob::Unknown), Err(NoJob::Unknown), Err(NoJob::Unknown))
        );
    }

    #[test]
    fn without_a_trial_the_latest_failed_then_the_newest_running_then_the_best_job_is_chosen() {
        let mut jobs = vec![job(1, 1, 1, "Refused")];
        let of = |jobs: &[TrainingJobSummary]| {
            chosen(jobs, Some("t-2-0-1"), None).map(|job| job.name.clone()).unwrap()
        };
        assert_eq!(chosen(&[], None, None).unwrap_err(), NoJob::None);
        assert_eq!(of(&jobs), "t-1-0-1");
        jobs.extend([job(3, 1, 8, "Completed"), job(2, 1, 2, "Completed")]);
        assert_eq!(of(&jobs), "t-2-0-1");
        jobs.extend([job(4, 1, 3, "Training"), job(5, 1, 4, "Training"), job(6, 1, 9, "Starting")]);
        assert_eq!(of(&jobs), "t-5-0-1");
        jobs.extend([job(7, 1, 6, "Failed"), job(8, 1, 5, "Failed")]);
        assert_eq!(of(&jobs), "t-7-0-1");
    }
}
