//! Checks about the stack and the delivery of logs.

use std::collections::BTreeSet;

use tuning::log::fact::{Fact, JobKey, MetricLine};
use wire::names::log_stream;

use super::evidence::Evidence;
use super::verdict::{Verdict, missing_answer, tenths};

const DELIVERED_WITHIN_MS: i64 = 60_000;
const CLOCKS_WITHIN_MS: i64 = 60_000;
const NO_LINE: &str = "no job printed a line with a number";

pub(super) fn rights(seen: &Evidence) -> Verdict {
    let any = |wanted: fn(&Fact) -> bool| seen.facts.iter().any(|(_, recorded)| wanted(&recorded.fact));
    for (_, recorded) in &seen.facts {
        if let Fact::StartRefused { message: reason, .. } | Fact::ActionDeferred { reason, .. } =
            &recorded.fact
            && reason.contains("AccessDenied")
        {
            return Verdict::No(reason.clone());
        }
    }
    let started = any(|fact| matches!(fact, Fact::JobStarted { .. }));
    let stopped = any(|fact| matches!(fact, Fact::StopAccepted { .. }));
    match (started, stopped) {
        (true, true) => Verdict::Yes("the stack created and stopped a job".to_owned()),
        (true, false) => Verdict::not_tried("the stack created a job, but did not stop one"),
        (false, _) => Verdict::not_tried("no job was created"),
    }
}

fn streams(seen: &Evidence) -> Vec<&str> {
    let found = seen.streams.as_ref().and_then(|answer| answer.as_ref().ok());
    let list = found.and_then(|answer| answer["logStreams"].as_array()).into_iter().flatten();
    list.filter_map(|stream| stream["logStreamName"].as_str()).collect()
}

pub(super) fn log_streams(seen: &Evidence) -> Verdict {
    if let Some(verdict) = missing_answer(seen.streams.as_ref(), "no job ended") {
        return verdict;
    }
    if let Some(Err(error)) = &seen.streams {
        return Verdict::No(error.to_string());
    }
    let names = streams(seen);
    let Some(first) = names.first() else {
        return Verdict::not_tried("the job has no log stream: its program never ran");
    };
    let other = names.iter().find(|name| log_stream(name).is_none());
    Verdict::yes_if(other.is_none(), *other.unwrap_or(first))
}

/// Returns the lines that reached the stack: whether by the subscription, when the doctor read them, their job, the
/// line.
fn lines(seen: &Evidence) -> impl Iterator<Item = (bool, i64, JobKey, &MetricLine)> {
    let logged = seen.facts.iter().filter_map(|(at, recorded)| {
        let Fact::MetricsLogged { job, lines, .. } = &recorded.fact else { return None };
        Some((recorded.key.starts_with("logs#"), *at, *job, lines))
    });
    logged.flat_map(|(delivered, at, job, lines)| lines.iter().map(move |line| (delivered, at, job, line)))
}

pub(super) fn log_ids(seen: &Evidence) -> Verdict {
    if let Some(verdict) = missing_answer(seen.lines.as_ref(), "no job ended") {
        return verdict;
    }
    let (stored, cut) = match &seen.lines {
        Some(Ok(answer)) => {
            (answer["events"].as_array().into_iter().flatten(), !answer["nextToken"].is_null())
        }
        Some(Err(_)) | None => return Verdict::not_tried("the lines could not be read"),
    };
    let stored: BTreeSet<&str> = stored.filter_map(|event| event["eventId"].as_str()).collect();
    let key = seen.first_ended().map(|(key, _)| key);
    let delivered: Vec<&str> = lines(seen)
        .filter(|(delivered, _, job, _)| *delivered && Some(*job) == key)
        .map(|(_, _, _, line)| line.id.as_str())
        .collect();
    if delivered.is_empty() {
        return Verdict::not_tried(NO_LINE);
    }
    match delivered.iter().find(|id| !stored.contains(*id)) {
        Some(_) if cut => Verdict::not_tried("the log is too long to read completely"),
        Some(id) => {
            Verdict::No(format!("the subscription delivered {id}, but FilterLogEvents did not return it"))
        }
        None => Verdict::Yes(format!("{} lines have the same ids", delivered.len())),
    }
}

pub(super) fn log_delivery(seen: &Evidence) -> Verdict {
    let soonest = lines(seen)
        .filter(|(delivered, ..)| *delivered)
        .map(|(_, at, _, line)| at.saturating_sub(line.at.0))
        .min();
    match soonest {
        Some(ms) => {
            let seen = format!("the doctor read a line {} s after its time", tenths(ms));
            Verdict::yes_if(ms <= DELIVERED_WITHIN_MS, seen)
        }
        None if lines(seen).next().is_some() => {
            Verdict::No("no line arrived by the subscription; the sweeper read the log instead".to_owned())
        }
        None => Verdict::not_tried(NO_LINE),
    }
}

pub(super) fn signature(seen: &Evidence) -> Verdict {
    match (seen.signed, seen.submitted) {
        (true, Some(_)) => Verdict::Yes("the submission was accepted".to_owned()),
        (false, _) => Verdict::not_tried("no request was signed for execute-api"),
        (true, None) => Verdict::not_tried("nothing was submitted"),
    }
}

pub(super) fn tuning_ends(seen: &Evidence) -> Verdict {
    if seen.submitted.is_none() {
        return Verdict::not_tried("nothing was submitted");
    }
    let status = seen.tuning.as_ref().map_or("", |tuning| &tuning.base.status);
    match (seen.over, seen.facts.is_empty()) {
        (true, _) => Verdict::Yes(format!("the tuning is {status} after {} facts", seen.facts.len())),
        (false, true) => Verdict::No("the stack made no decision after the submission".to_owned()),
        (false, false) => {
            Verdict::No(format!("the tuning is still {status} after {} facts", seen.facts.len()))
        }
    }
}

pub(super) fn clocks(seen: &Evidence) -> Verdict {
    let created = seen.tuning.as_ref().map(|tuning| tuning.base.created_ms);
    let (Some(created), Some((before, after))) = (created, seen.submitted) else {
        return Verdict::not_tried("nothing was submitted");
    };
    // Zero if the stack's time is between the two times of this machine.
    let apart = before.saturating_sub(created).max(created.saturating_sub(after)).max(0);
    Verdict::yes_if(
        apart <= CLOCKS_WITHIN_MS,
        format!("the clocks differ by at most {} s", tenths(apart.saturating_add(100))),
    )
}
