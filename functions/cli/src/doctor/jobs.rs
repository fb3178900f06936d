//! Checks of training jobs: their events, their names, how they are listed and stopped.

use client::ServiceError;
use serde_json::Value;
use tuning::fact::{Fact, JobPhase};
use wire::algorithm::of_image;
use wire::names::{TAG_DECISION, TAG_STACK, TAG_TUNING};

use super::account::Answer;
use super::money::tenths;
use super::seen::{Job, Seen};
use super::verdict::{Verdict, unanswered, unknown};
use crate::page::milliseconds;

/// Classes of failures that are told apart.
const CLASSES: [&str; 4] = ["CapacityError", "InternalServerError", "AlgorithmError", "ClientError"];
const DESCRIBED_WITHIN_MS: i64 = 60_000;
const LISTED_WITHIN_MS: i64 = 600_000;
/// Times in events and in descriptions are of one service.
const SAME_MS: i64 = 1_000;
const NO_JOB: &str = "no job was seen";

pub(super) fn events(seen: &Seen) -> Verdict {
    let changed =
        seen.facts.iter().filter(|(_, recorded)| matches!(recorded.fact, Fact::JobStateChanged { .. }));
    let (by_event, by_look): (Vec<_>, Vec<_>) =
        changed.partition(|(_, recorded)| recorded.key.starts_with("state#"));
    match (by_event.len(), by_look.len()) {
        (0, 0) if seen.first_ended().is_none() => Verdict::not("no job changed its state"),
        (0, looks) => Verdict::No(format!("no event came, {looks} changes were looked up by the sweeper")),
        (events, looks) => Verdict::Yes(format!("{events} changes by events, {looks} looked up")),
    }
}

pub(super) fn event_times(seen: &Seen) -> Verdict {
    let mut compared = 0_u32;
    for (key, job) in &seen.jobs {
        for (_, recorded) in seen.of_job(*key).filter(|(_, recorded)| recorded.key.starts_with("state#")) {
            let Fact::JobStateChanged { phase: JobPhase::Ended(_), ended: Some(told), .. } = recorded.fact
            else {
                continue;
            };
            let Some(described) = job.time("TrainingEndTime") else { continue };
            if told.saturating_sub(described).saturating_abs() > SAME_MS {
                return Verdict::No(format!(
                    "{}: the event says {told}, DescribeTrainingJob {described}",
                    job.name
                ));
            }
            compared = compared.saturating_add(1);
        }
    }
    if compared == 0 {
        return Verdict::not("no event of an end was seen whose job could be described");
    }
    Verdict::Yes(format!("{compared} ends are the same in events and descriptions"))
}

pub(super) fn failure_class(seen: &Seen) -> Verdict {
    let failed = seen.jobs.values().find(|job| job.text("TrainingJobStatus") == "Failed");
    let Some(job) = failed else { return Verdict::not("no job failed") };
    let reason = job.text("FailureReason");
    let start: String = reason.chars().take(120).collect();
    Verdict::of(CLASSES.iter().any(|class| reason.starts_with(class)), start)
}

pub(super) fn name_taken(seen: &Seen) -> Verdict {
    let why = seen.taken_not.as_deref().unwrap_or("no job was seen to end");
    if let Some(verdict) = unknown(seen.taken.as_ref(), why) {
        return verdict;
    }
    match &seen.taken {
        Some(Err(error @ ServiceError::Refused { code, .. })) => {
            Verdict::of(code == "ResourceInUse", error.to_string())
        }
        _ => Verdict::No("the same name was taken again; that job was ordered to stop".to_owned()),
    }
}

pub(super) fn job_shows(seen: &Seen) -> Verdict {
    let (mut described, mut listed) = (None, None);
    for (key, job) in &seen.jobs {
        let Some(accepted) = seen.accepted(*key) else { continue };
        if let Some(verdict) = job.hidden.as_ref().and_then(unanswered) {
            return verdict;
        }
        let Some(first) = job.first else {
            return Verdict::No(format!("{} was accepted and never described", job.name));
        };
        described = described.max(Some(first.saturating_sub(accepted).max(0)));
        match &job.listed {
            Some(Ok(at)) => listed = listed.max(Some(at.saturating_sub(accepted).max(0))),
            Some(Err(error)) => {
                return unanswered(error)
                    .unwrap_or_else(|| Verdict::not(format!("the listing says {error}")));
            }
            None => {}
        }
    }
    let Some(described) = described else { return Verdict::not(NO_JOB) };
    let after = format!("described {} s after it was accepted", tenths(described));
    match listed {
        _ if described > DESCRIBED_WITHIN_MS => Verdict::No(after),
        // It may have ended between two looks.
        None => Verdict::not(format!("{after}; it had ended before a listing could show it")),
        Some(ms) => Verdict::of(ms <= LISTED_WITHIN_MS, format!("{after}, listed after {} s", tenths(ms))),
    }
}

/// Whether an answer of `ListTags` has all that ties a job to its decision.
pub(super) fn has_our_tags(answer: &Answer) -> bool {
    let Ok(answer) = answer else { return false };
    let tags: Vec<&Value> = answer["Tags"].as_array().into_iter().flatten().collect();
    [TAG_STACK, TAG_TUNING, TAG_DECISION].iter().all(|key| tags.iter().any(|tag| tag["Key"] == *key))
}

pub(super) fn tags_show(seen: &Seen) -> Verdict {
    let mut looked = 0_u32;
    for job in seen.jobs.values() {
        let Some(tags) = &job.tags else { continue };
        if let Some(verdict) = unknown(Some(tags), "") {
            return verdict;
        }
        if !has_our_tags(tags) {
            let first = job.first.unwrap_or_default();
            return Verdict::No(match job.tagged {
                Some(at) => format!("{} had none at first, and all {} s later", job.name, tenths(at - first)),
                None => format!("{} never showed all of them", job.name),
            });
        }
        looked = looked.saturating_add(1);
    }
    if looked == 0 {
        Verdict::not(NO_JOB)
    } else {
        Verdict::Yes(format!("at the first look at {looked} jobs"))
    }
}

pub(super) fn listing(seen: &Seen) -> Verdict {
    let (after, pages) = match &seen.listed {
        None => return Verdict::not(NO_JOB),
        Some((_, Err(error))) => {
            return unanswered(error).unwrap_or_else(|| Verdict::No(error.to_string()));
        }
        Some((after, Ok(pages))) => (*after, pages),
    };
    let of_page = |page: &Value| page["TrainingJobSummaries"].as_array().cloned().unwrap_or_default();
    let shown: Vec<Value> = pages.iter().flat_map(of_page).collect();
    let times: Vec<i64> = shown.iter().filter_map(|job| milliseconds(&job["CreationTime"])).collect();
    if times.len() < shown.len() || times.iter().any(|time| *time < after.saturating_mul(1_000)) {
        return Verdict::No("a job that was created earlier is in it".to_owned());
    }
    if !times.is_sorted() {
        return Verdict::No("it is not in order of the creation times".to_owned());
    }
    let ours = seen.jobs.values().filter(|job| job.first.is_some());
    let missing = ours.clone().find(|job| !shown.iter().any(|shown| shown["TrainingJobName"] == *job.name));
    let more = pages.last().is_some_and(|page| page["NextToken"].is_string());
    match missing {
        // Others start jobs too.
        Some(job) if more => Verdict::not(format!("{} may be on a later page", job.name)),
        Some(job) => Verdict::No(format!("{} is not in it", job.name)),
        None => Verdict::Yes(format!("{} jobs on {} pages, in order", shown.len(), pages.len())),
    }
}

pub(super) fn objective_hyperparameter(seen: &Seen) -> Verdict {
    if of_image(&seen.image).is_none_or(|algorithm| !algorithm.names.contains(&"xgboost")) {
        return Verdict::not("the image is not the built-in XGBoost");
    }
    let refused = seen.facts.iter().find_map(|(_, recorded)| match &recorded.fact {
        Fact::StartRefused { message, .. } => Some(message.clone()),
        _ => None,
    });
    match refused {
        Some(message) if message.contains("_tuning_objective_metric") => Verdict::No(message),
        Some(message) => Verdict::not(format!("the job was refused: {message}")),
        None if seen.jobs.keys().any(|key| seen.accepted(*key).is_some()) => {
            Verdict::Yes("the job was accepted".to_owned())
        }
        None => Verdict::not(NO_JOB),
    }
}

pub(super) fn stop_ended(seen: &Seen) -> Verdict {
    if let Some(verdict) = unknown(seen.ended_stop.as_ref(), "no job was seen to end") {
        return verdict;
    }
    match &seen.ended_stop {
        Some(Err(error @ ServiceError::Refused { code, message, .. })) => {
            let known = message.contains("in status ") || message.contains("already in ");
            let code = matches!(code.as_str(), "ValidationException" | "ConflictException");
            Verdict::of(code && known, error.to_string())
        }
        _ => Verdict::No("the stop was accepted".to_owned()),
    }
}

pub(super) fn job_absent(seen: &Seen) -> Verdict {
    let Some((described, stopped)) = &seen.absent else { return Verdict::not("it was not asked") };
    if let Some(verdict) = unknown(Some(described), "") {
        return verdict;
    }
    match (is_absent(described), is_absent(stopped)) {
        (Some(false), _) => Verdict::No(format!("described: {}", told(described))),
        (_, Some(false)) => Verdict::No(format!("stopped: {}", told(stopped))),
        // Whether a role that may stop only what has a tag is told so is covered.
        (_, None) => Verdict::Yes(format!("described: {}; a stop could not be tried", told(described))),
        _ => Verdict::Yes(told(described)),
    }
}

/// Whether a job is told not to be there; `None` where nothing is known.
fn is_absent(answer: &Answer) -> Option<bool> {
    match answer {
        Err(error) if unanswered(error).is_some() => None,
        Err(ServiceError::Refused { code, message, .. }) => Some(match code.as_str() {
            "ResourceNotFound" | "ResourceNotFoundException" => true,
            "ValidationException" => message.contains("Requested resource not found"),
            _ => false,
        }),
        _ => Some(false),
    }
}

fn told(answer: &Answer) -> String {
    answer.as_ref().map_or_else(ToString::to_string, |_| "it was answered as if it were there".to_owned())
}

pub(super) fn stop_starting(seen: &Seen) -> Verdict {
    let mut stopped =
        seen.jobs.values().filter_map(|job| job.before_stop.as_ref().map(|before| (job, before)));
    let Some((job, before)) = stopped.next() else { return Verdict::not("no job was ordered to stop") };
    let state = |job: &Value| job["SecondaryStatus"].as_str().unwrap_or_default().to_owned();
    if !before["TrainingStartTime"].is_null() || !matches!(state(before).as_str(), "Starting" | "Pending") {
        return Verdict::not(format!("it was {} when it was stopped", state(before)));
    }
    starting(job)
}

/// What became of a job that was stopped while it started.
fn starting(job: &Job) -> Verdict {
    let bill = job.final_bill.unwrap_or(0);
    match (job.text("TrainingJobStatus"), job.last["TrainingStartTime"].is_null()) {
        ("Stopped", true) => Verdict::of(bill == 0, format!("it never ran, {bill} s were billed")),
        ("Stopped" | "Completed" | "Failed", false) => {
            Verdict::not(format!("it had begun to run before the order reached it; {bill} s were billed"))
        }
        ("Completed" | "Failed", true) => Verdict::No(format!("it is {}", job.text("TrainingJobStatus"))),
        (status, _) => Verdict::not(format!("its end was not seen: it is {status}")),
    }
}
