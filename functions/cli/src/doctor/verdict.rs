//! What a check comes to, and the checks themselves: each has an id, which is that of its row in `docs/UNVERIFIED.md`.
//!
//! Must never say yes of what was not seen.

use client::ServiceError;

use super::account::Answer;
use super::seen::Seen;
use super::{jobs, money, stack};

/// What was found of an assumption, with what was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It holds.
    Yes(String),
    /// It does not.
    No(String),
    /// Nobody knows, and why.
    NotTried(String),
}

use Verdict::{No, NotTried, Yes};

impl Verdict {
    /// Yes or no.
    pub(super) fn of(holds: bool, seen: impl Into<String>) -> Self {
        if holds { Yes(seen.into()) } else { No(seen.into()) }
    }

    pub(super) fn not(why: impl Into<String>) -> Self {
        NotTried(why.into())
    }

    /// In one or two words.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Yes(_) => "yes",
            No(_) => "no",
            NotTried(_) => "not tried",
        }
    }

    /// What was seen, or why nothing was.
    pub(super) fn seen(&self) -> &str {
        match self {
            Yes(text) | No(text) | NotTried(text) => text,
        }
    }
}

/// Why nothing is known of what was asked: it was not, it may not be, or nobody answered.
pub(super) fn unknown(answer: Option<&Answer>, why: &str) -> Option<Verdict> {
    match answer {
        None => Some(Verdict::not(why)),
        Some(Err(error)) => unanswered(error),
        Some(Ok(_)) => None,
    }
}

/// The same of an error: a refusal for another reason than the caller's rights is an answer.
pub(super) fn unanswered(error: &ServiceError) -> Option<Verdict> {
    match error {
        ServiceError::Refused { .. } if error.is_denied() => {
            Some(Verdict::not(format!("whoever calls may not ask it: {error}")))
        }
        ServiceError::Refused { .. } => None,
        ServiceError::Failed(error) => Some(Verdict::not(format!("it could not be asked: {error}"))),
    }
}

/// One assumption.
#[derive(Debug)]
pub(super) struct Check {
    /// The name of its row.
    pub(super) id: &'static str,
    /// What is assumed.
    pub(super) assumes: &'static str,
    /// What follows if it is wrong.
    pub(super) otherwise: &'static str,
    /// Whether it holds, by what was seen.
    pub(super) judge: fn(&Seen) -> Verdict,
}

const fn check(
    id: &'static str,
    judge: fn(&Seen) -> Verdict,
    assumes: &'static str,
    otherwise: &'static str,
) -> Check {
    Check { id, assumes, otherwise, judge }
}

/// All of them, in the order of the document.
pub(super) const CHECKS: &[Check] = &[
    check(
        "spot-bill",
        money::spot_bill,
        "a spot job that is interrupted or reaches its limit is billed for no more than MaxWaitTimeInSeconds",
        "a cap can be exceeded by the difference; OverrunAlarm tells",
    ),
    check(
        "bill-past-limit",
        money::past_limit,
        "stopping and uploading are billed for 300 s at most beyond MaxRuntimeInSeconds",
        "a cap can be exceeded by the difference; OverrunAlarm tells",
    ),
    check(
        "bill-interval",
        money::interval,
        "billing goes from TrainingStartTime to TrainingEndTime",
        "bills differ from what is expected; booked is what SageMaker says",
    ),
    check(
        "bill-shows",
        money::shows,
        "BillableTimeInSeconds shows within an hour of the end and is final then",
        "late: the whole reservation is booked; changed later: the ledger lacks the difference",
    ),
    check(
        "prices",
        money::prices,
        "the price list has the prices of the instance and of its volume",
        "requests must tell InstancePricesUsdPerHour",
    ),
    check(
        "events",
        jobs::events,
        "state changes arrive as events with the job's tags",
        "starts, ends and stops are noticed by the sweeper, minutes late",
    ),
    check(
        "event-times",
        jobs::event_times,
        "times in events are read as what SageMaker describes",
        "events are refused (UnreadableAlarm); the sweeper notices ends, minutes late",
    ),
    check(
        "failure-class",
        jobs::failure_class,
        "FailureReason begins with a class that is known",
        "every failure counts against its trial: no further attempt",
    ),
    check(
        "name-taken",
        jobs::name_taken,
        "a job's name that is taken is refused with ResourceInUse",
        "a foreign job of the same name is told as another refusal",
    ),
    check(
        "job-shows",
        jobs::job_shows,
        "a created job is described within 60 s and listed within 10 minutes",
        "a start whose answer was lost may be called off though it runs; the hourly listing stops it",
    ),
    check(
        "tags-show",
        jobs::tags_show,
        "a job's tags show as soon as the job does",
        "a start whose answer was lost takes its own job for another's; the hourly listing stops it",
    ),
    check(
        "listing",
        jobs::listing,
        "ListTrainingJobs filters and sorts by CreationTime, page by page",
        "unknown jobs may not be found by the hourly listing",
    ),
    check(
        "objective-hyperparameter",
        jobs::objective_hyperparameter,
        "CreateTrainingJob takes _tuning_objective_metric as a hyperparameter of the built-in XGBoost",
        "its jobs are refused, and tunings fail after five",
    ),
    check(
        "stop-ended",
        jobs::stop_ended,
        "a stop of a job that has ended is refused with \"in status ...\"",
        "such stops are tried again until the job's end is known",
    ),
    check(
        "job-absent",
        jobs::job_absent,
        "a job that is not there is told as not found",
        "a start that never happened is not called off; its money stays reserved for hours",
    ),
    check(
        "stop-starting",
        jobs::stop_starting,
        "stopping a job that is still starting works and costs nothing",
        "booked is what is billed",
    ),
    check(
        "rights",
        stack::rights,
        "IAM lets the stack create jobs with its tags, and stop them by these",
        "no tuning starts, or jobs run to their time limits",
    ),
    check(
        "log-streams",
        stack::log_streams,
        "log streams are <training job>/algo-<n>-<digits>",
        "no value is seen: jobs are ended for their silence",
    ),
    check(
        "log-ids",
        stack::log_ids,
        "a line has the same id in a subscription and in FilterLogEvents",
        "epochs counted from lines that are read again count twice",
    ),
    check(
        "log-delivery",
        stack::log_delivery,
        "lines come within seconds by the subscription",
        "jobs are stopped as much later",
    ),
    check(
        "signature",
        stack::signature,
        "the API takes requests that are signed for execute-api",
        "nobody can submit",
    ),
    check(
        "tuning-ends",
        stack::tuning_ends,
        "the functions may read and write their rows and streams: a tuning goes from its submission to its end",
        "tunings stand still (TableRefused in the logs)",
    ),
    check(
        "clocks",
        stack::clocks,
        "the clocks of the stack and of whoever submits agree within a minute",
        "a submission whose answer was lost may be taken for another's",
    ),
];
