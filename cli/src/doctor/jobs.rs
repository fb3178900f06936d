//! Checks about training jobs: events, names, listings and stops.

use api_client::ServiceError;
use serde_json::Value;
use tuning::log::fact::{Fact, JobPhase};
use wire::algorithm::of_image;
use wire::names::{TAG_DECISION, TAG_STACK, TAG_TUNING};

use super::account::Answer;
use super::evidence::{Evidence, Job, milliseconds};
use super::verdict::{Verdict, missing_answer, not_answered, tenths};

/// Known prefixes of `FailureReason`.
const CLASSES: [&str; 4] = ["CapacityError", "InternalServerError", "AlgorithmError", "ClientError"];
const DESCRIBED_WITHIN_MS: i64 = 60_000;
const LISTED_WITHIN_MS: i64 = 600_000;
/// Maximum difference of the times in events and descriptions.
const SAME_MS: i64 = 1_000;
const NO_JOB: &str = "there was no job";

pub(super) fn events(seen: &Evidence) -> Verdict {
    let changed =
        seen.facts.iter().filter(|(_, recorded)| matches!(recorded.fact, Fact::JobStateChanged { .. }));
    let (by_event, by_look): (Vec<_>, Vec<_>) =
        changed.partition(|(_, recorded)| recorded.key.starts_with("state#"));
    match (by_event.len(), by_look.len()) {
        (0, 0) if seen.first_ended().is_none() => Verdict::not_tried("no job changed its state"),
        (0, looks) => Verdict::No(format!("no event arrived; the sweeper found {looks} changes")),
        (events, looks) => Verdict::Yes(format!("{events} changes by events, {looks} found by the sweeper")),
    }
}

pub(super) fn event_times(seen: &Evidence) -> Verdict {
    let mut compared = 0_u32;
    for (key, job) in &seen.jobs {
        for (_, recorded) in seen.of_job(*key).filter(|(_, recorded)| recorded.key.starts_with("state#")) {
            let Fact::JobStateChanged { phase: JobPhase::Ended(_), ended: Some(published), .. } =
                recorded.fact
            else {
                continue;
            };
            let Some(described) = job.time("TrainingEndTime") else { continue };
            if published.0.saturating_sub(described).saturating_abs() > SAME_MS {
                return Verdict::No(format!(
                    "{}: the end is {published} in the event, {described} in DescribeTrainingJob",
                    job.name
                ));
            }
            compared = compared.saturating_add(1);
        }
    }
    if compared == 0 {
        return Verdict::not_tried("there was no event about the end of a job that could be described");
    }
    Verdict::Yes(format!("{compared} end times are the same in events and descriptions"))
}

pub(super) fn failure_class(seen: &Evidence) -> Verdict {
    let failed = seen.jobs.values().find(|job| job.text("TrainingJobStatus") == "Failed");
    let Some(job) = failed else { return Verdict::not_tried("no job failed") };
    let reason = job.text("FailureReason");
    let start: String = reason.chars().take(120).collect();
    Verdict::yes_if(CLASSES.iter().any(|class| reason.starts_with(class)), start)
}

pub(super) fn name_taken(seen: &Evidence) -> Verdict {
    let why = seen.taken_skipped.as_deref().unwrap_or("no job ended");
    if let Some(verdict) = missing_answer(seen.taken.as_ref(), why) {
        return verdict;
    }
    match &seen.taken {
        Some(Err(error @ ServiceError::Refused { code, .. })) => {
            Verdict::yes_if(code == "ResourceInUse", error.to_string())
        }
        Some(Ok(_) | Err(ServiceError::Failed(_))) | None => {
            Verdict::No("SageMaker accepted the same name again; that job was stopped".to_owned())
        }
    }
}

pub(super) fn job_shows(seen: &Evidence) -> Verdict {
    let (mut described, mut listed) = (None, None);
    for (key, job) in &seen.jobs {
        let Some(accepted) = seen.accepted(*key) else { continue };
        if let Some(verdict) = job.hidden.as_ref().and_then(not_answered) {
            return verdict;
        }
        let Some(first) = job.first else {
            return Verdict::No(format!(
                "{} was accepted, but DescribeTrainingJob never returned it",
                job.name
            ));
        };
        described = described.max(Some(first.saturating_sub(accepted).max(0)));
        match &job.listed {
            Some(Ok(at)) => listed = listed.max(Some(at.saturating_sub(accepted).max(0))),
            Some(Err(error)) => {
                return not_answered(error)
                    .unwrap_or_else(|| Verdict::not_tried(format!("ListTrainingJobs failed: {error}")));
            }
            None => {}
        }
    }
    let Some(described) = described else { return Verdict::not_tried(NO_JOB) };
    let after = format!("described {} s after it was accepted", tenths(described));
    match listed {
        _ if described > DESCRIBED_WITHIN_MS => Verdict::No(after),
        // The job can end between two updates.
        None => Verdict::not_tried(format!("{after}; it ended before a listing could show it")),
        Some(ms) => {
            Verdict::yes_if(ms <= LISTED_WITHIN_MS, format!("{after}, listed after {} s", tenths(ms)))
        }
    }
}

/// Returns whether a response of `ListTags` has all tags that the stack sets.
pub(super) fn has_our_tags(answer: &Answer) -> bool {
    let Ok(answer) = answer else { return false };
    let tags: Vec<&Value> = answer["Tags"].as_array().into_iter().flatten().collect();
    [TAG_STACK, TAG_TUNING, TAG_DECISION].iter().all(|key| tags.iter().any(|tag| tag["Key"] == *key))
}

pub(super) fn tags_show(seen: &Evidence) -> Verdict {
    let mut looked = 0_u32;
    for job in seen.jobs.values() {
        let Some(tags) = &job.tags else { continue };
        if let Some(verdict) = missing_answer(Some(tags), "") {
            return verdict;
        }
        if !has_our_tags(tags) {
            let first = job.first.unwrap_or_default();
            return Verdict::No(match job.tagged {
                Some(at) => format!("{} had all tags only after {} s", job.name, tenths(at - first)),
                None => format!("{} never had all tags", job.name),
            });
        }
        looked = looked.saturating_add(1);
    }
    if looked == 0 {
        Verdict::not_tried(NO_JOB)
    } else {
        Verdict::Yes(format!("{looked} jobs had all tags at the first request"))
    }
}

pub(super) fn listing(seen: &Evidence) -> Verdict {
    let (after, pages) = match &seen.listed {
        None => return Verdict::not_tried(NO_JOB),
        Some((_, Err(error))) => {
            return not_answered(error).unwrap_or_else(|| Verdict::No(error.to_string()));
        }
        Some((after, Ok(pages))) => (*after, pages),
    };
    let of_page = |page: &Value| page["TrainingJobSummaries"].as_array().cloned().unwrap_or_default();
    let shown: Vec<Value> = pages.iter().flat_map(of_page).collect();
    let times: Vec<i64> = shown.iter().filter_map(|job| milliseconds(&job["CreationTime"])).collect();
    if times.len() < shown.len() || times.iter().any(|time| *time < after.saturating_mul(1_000)) {
        return Verdict::No("the listing contains a job that was created earlier".to_owned());
    }
    if !times.is_sorted() {
        return Verdict::No("the listing is not ordered by creation time".to_owned());
    }
    let ours = seen.jobs.values().filter(|job| job.first.is_some());
    let missing = ours.clone().find(|job| !shown.iter().any(|shown| shown["TrainingJobName"] == *job.name));
    let more = pages.last().is_some_and(|page| page["NextToken"].is_string());
    match missing {
        // The account can have other jobs.
        Some(job) if more => Verdict::not_tried(format!("{} may be on a later page", job.name)),
        Some(job) => Verdict::No(format!("the listing does not contain {}", job.name)),
        None => Verdict::Yes(format!("{} jobs on {} pages, in order", shown.len(), pages.len())),
    }
}

pub(super) fn objective_hyperparameter(seen: &Evidence) -> Verdict {
    if of_image(&seen.image).is_none_or(|algorithm| !algorithm.names.contains(&"xgboost")) {
        return Verdict::not_tried("the image is not the built-in XGBoost");
    }
    let refused = seen.facts.iter().find_map(|(_, recorded)| recorded.fact.refusal().map(str::to_owned));
    match refused {
        Some(message) if message.contains("_tuning_objective_metric") => Verdict::No(message),
        Some(message) => Verdict::not_tried(format!("the job was rejected: {message}")),
        None if seen.jobs.keys().any(|key| seen.accepted(*key).is_some()) => {
            Verdict::Yes("the job was accepted".to_owned())
        }
        None => Verdict::not_tried(NO_JOB),
    }
}

pub(super) fn stop_ended(seen: &Evidence) -> Verdict {
    if let Some(verdict) = missing_answer(seen.ended_stop.as_ref(), "no job ended") {
        return verdict;
    }
    match &seen.ended_stop {
        Some(Err(error @ ServiceError::Refused { code, message, .. })) => {
            let known = message.contains("in status ") || message.contains("already in ");
            let code = matches!(code.as_str(), "ValidationException" | "ConflictException");
            Verdict::yes_if(code && known, error.to_string())
        }
        Some(Ok(_) | Err(ServiceError::Failed(_))) | None => Verdict::No("the stop was accepted".to_owned()),
    }
}

pub(super) fn job_absent(seen: &Evidence) -> Verdict {
    let Some((described, stopped)) = &seen.absent else { return Verdict::not_tried("no request was sent") };
    if let Some(verdict) = missing_answer(Some(described), "") {
        return verdict;
    }
    match (is_absent(described), is_absent(stopped)) {
        (Some(false), _) => Verdict::No(format!("DescribeTrainingJob: {}", answer_text(described))),
        (_, Some(false)) => Verdict::No(format!("StopTrainingJob: {}", answer_text(stopped))),
        // StopTrainingJob can be denied, for example by a condition on tags.
        (_, None) => Verdict::Yes(format!(
            "DescribeTrainingJob: {}; StopTrainingJob could not be tried",
            answer_text(described)
        )),
        (Some(true) | None, Some(true)) => Verdict::Yes(answer_text(described)),
    }
}

/// Returns whether the response says that the job does not exist. `None` if there is no response.
fn is_absent(answer: &Answer) -> Option<bool> {
    match answer {
        Err(error) if not_answered(error).is_some() => None,
        Err(ServiceError::Refused { code, message, .. }) => Some(match code.as_str() {
            "ResourceNotFound" | "ResourceNotFoundException" => true,
            "ValidationException" => message.contains("Requested resource not found"),
            _ => false,
        }),
        Ok(_) | Err(ServiceError::Failed(_)) => Some(false),
    }
}

fn answer_text(answer: &Answer) -> String {
    answer.as_ref().map_or_else(ToString::to_string, |_| "the call succeeded".to_owned())
}

pub(super) fn stop_starting(seen: &Evidence) -> Verdict {
    let mut stopped =
        seen.jobs.values().filter_map(|job| job.before_stop.as_ref().map(|before| (job, before)));
    let Some((job, before)) = stopped.next() else { return Verdict::not_tried("no job was ordered to stop") };
    let state = |job: &Value| job["SecondaryStatus"].as_str().unwrap_or_default().to_owned();
    if !before["TrainingStartTime"].is_null() || !matches!(state(before).as_str(), "Starting" | "Pending") {
        return Verdict::not_tried(format!("the job was {} when it was stopped", state(before)));
    }
    starting(job)
}

fn starting(job: &Job) -> Verdict {
    let bill = job.final_bill.unwrap_or(0);
    match (job.text("TrainingJobStatus"), job.last["TrainingStartTime"].is_null()) {
        ("Stopped", true) => Verdict::yes_if(bill == 0, format!("the job never ran; {bill} s were billed")),
        ("Stopped" | "Completed" | "Failed", false) => {
            Verdict::not_tried(format!("the job started before the stop took effect; {bill} s were billed"))
        }
        ("Completed" | "Failed", true) => {
            Verdict::No(format!("the job is {}", job.text("TrainingJobStatus")))
        }
        (status, _) => Verdict::not_tried(format!("the job has not ended: it is {status}")),
    }
}
