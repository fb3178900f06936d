//! EventBridge's "SageMaker Training Job State Change".
//!
//! Holds the event and the classification of SageMaker's statuses, which `DescribeTrainingJob` shares. Assumes what
//! was observed: times are epoch milliseconds as numbers or text, absent values are null, statuses may be unknown.
//! Never takes the event's order or completeness for granted: the facts made here may come late, twice or never.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tuning::fact::{Fact, JobEnd, JobKey, JobPhase, Recorded};
use tuning::limits::MAX_MESSAGE_CHARS;

use super::timestamp::{format_utc, parse_utc};
use super::{EventError, Unreadable, expect_kind, field};
use crate::names;

/// As SageMaker sends it. Whom else to believe is said by the rule that delivers the event.
const SOURCE: &str = "aws.sagemaker";

const DETAIL_TYPE: &str = "SageMaker Training Job State Change";

/// Longest name or status kept of an event; SageMaker's are shorter. Two statuses are part of a fact's key, which even at
/// four bytes a character must stay below the 1,024 bytes of a sort key.
const MAX_WORD_CHARS: usize = 64;
const TIME: &str = "a time in epoch milliseconds";

/// Most tags kept; AWS allows 50.
const MAX_TAGS: usize = 100;

/// A change of a training job's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobStateChange {
    /// Training job name.
    pub training_job_name: String,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// The state it entered.
    pub phase: JobPhase,
    /// `TrainingJobStatus`, as sent.
    pub status: String,
    /// `SecondaryStatus`, as sent; empty when absent.
    pub secondary: String,
    /// When it was created, ms since the epoch as all times here.
    pub created: Option<i64>,
    /// When its instances began to run, if they have.
    pub started: Option<i64>,
    /// When they ceased to run, if they have.
    pub ended: Option<i64>,
    /// When its description was last changed.
    pub modified: Option<i64>,
    /// Seconds billed; often absent even at the end: describe the job.
    pub billable_seconds: Option<u64>,
    /// How often it was interrupted until now.
    pub interruptions: u32,
    /// Why it failed, cut to [`MAX_MESSAGE_CHARS`].
    pub failure_reason: Option<String>,
    /// When the event was sent.
    pub event_time: Option<i64>,
    /// When the state was true: the latest time of the job that the event shows, since a modification may be dated
    /// before the end; without any, the time of the event.
    pub at: i64,
}

impl JobStateChange {
    /// Reads an EventBridge event.
    pub fn parse(event: &Value) -> Result<Self, EventError> {
        expect_kind(event, &[], DETAIL_TYPE)?;
        let event_time = field::optional_text(event, "time", "time")?.and_then(parse_utc);
        let detail = field::present(event, "detail")
            .filter(|detail| detail.is_object())
            .ok_or(Unreadable::Field { path: "detail", expected: "an object" })?;
        let name = field::text(detail, "TrainingJobName", "detail.TrainingJobName")?;
        let status = field::text(detail, "TrainingJobStatus", "detail.TrainingJobStatus")?;
        let secondary =
            field::optional_text(detail, "SecondaryStatus", "detail.SecondaryStatus")?.unwrap_or_default();
        let reason = field::optional_text(detail, "FailureReason", "detail.FailureReason")?
            .filter(|reason| !reason.is_empty());
        let started = field::optional_time(detail, "TrainingStartTime", "detail.TrainingStartTime")?;
        let ended = field::optional_time(detail, "TrainingEndTime", "detail.TrainingEndTime")?;
        let modified = field::optional_time(detail, "LastModifiedTime", "detail.LastModifiedTime")?;
        let at = [started, ended, modified, last_transition(detail)]
            .into_iter()
            .flatten()
            .max()
            .or(event_time)
            .ok_or(Unreadable::Field { path: "detail.LastModifiedTime", expected: TIME })?;
        Ok(Self {
            training_job_name: field::cut(name, MAX_WORD_CHARS),
            tags: tags(field::present(detail, "Tags")),
            phase: classify(status, secondary, reason),
            status: field::cut(status, MAX_WORD_CHARS),
            secondary: field::cut(secondary, MAX_WORD_CHARS),
            created: field::optional_time(detail, "CreationTime", "detail.CreationTime")?,
            started,
            ended,
            modified,
            billable_seconds: billable_seconds(detail)?,
            interruptions: interruptions(detail),
            failure_reason: reason.map(cut_message),
            event_time,
            at,
        })
    }

    /// Natural key of the fact: job, status, secondary status and the time of the change.
    pub fn fact_key(&self) -> String {
        let job = names::parse_training_job_name(&self.training_job_name)
            .map_or_else(|| self.training_job_name.clone(), |(_, key)| key.to_string());
        let time = self.modified.unwrap_or(self.at);
        format!("state#{job}#{}#{}#{time}", self.status, self.secondary)
    }

    /// The fact of this change for `job`.
    pub fn to_recorded(&self, job: JobKey) -> Recorded {
        let fact = Fact::JobStateChanged {
            job,
            phase: self.phase,
            started: self.started,
            ended: self.ended,
            message: self.failure_reason.clone(),
        };
        Recorded { key: self.fact_key(), at: self.at, fact }
    }

    /// The event as EventBridge delivers it, for a local host or a simulator.
    pub fn encode(&self) -> Value {
        let interrupted = json!({"Status": "Interrupted", "StartTime": null, "EndTime": null});
        let transitions: Vec<Value> = (0..self.interruptions).map(|_| interrupted.clone()).collect();
        let tags: Map<String, Value> = self.tags.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
        json!({
            "version": "0",
            "id": format!("{}-{}", self.training_job_name, self.at),
            "detail-type": DETAIL_TYPE,
            "source": SOURCE,
            "time": format_utc(self.event_time.unwrap_or(self.at)),
            "resources": [],
            "detail": {
                "TrainingJobName": self.training_job_name,
                "TrainingJobStatus": self.status,
                "SecondaryStatus": self.secondary,
                "FailureReason": self.failure_reason,
                "CreationTime": self.created,
                "TrainingStartTime": self.started,
                "TrainingEndTime": self.ended,
                "LastModifiedTime": self.modified,
                "BillableTimeInSeconds": self.billable_seconds,
                "SecondaryStatusTransitions": transitions,
                "Tags": tags,
            },
        })
    }
}

/// What SageMaker's statuses mean; for events and for `DescribeTrainingJob` alike.
///
/// Only `status` says that a job has ended; `secondary` says how a stopped one was. What is unknown is
/// [`JobPhase::Other`].
pub fn classify(status: &str, secondary: &str, failure_reason: Option<&str>) -> JobPhase {
    match status {
        "Completed" => JobPhase::Ended(JobEnd::Completed),
        "Failed" => JobPhase::Ended(failure(failure_reason.unwrap_or_default())),
        "Stopped" => JobPhase::Ended(match secondary {
            "MaxRuntimeExceeded" => JobEnd::MaxRuntime,
            "MaxWaitTimeExceeded" => JobEnd::MaxWait,
            _ => JobEnd::Stopped,
        }),
        // Uploading too, but that it was told to stop is what counts.
        "Stopping" => JobPhase::Stopping,
        "InProgress" => match secondary {
            "Starting" | "LaunchingMLInstances" | "PreparingTrainingStack" | "Pending" | "Restarting" => {
                JobPhase::Starting
            }
            "Downloading" | "DownloadingTrainingImage" => JobPhase::Downloading,
            "Training" => JobPhase::Training,
            "Interrupted" => JobPhase::Interrupted,
            "Uploading" => JobPhase::Uploading,
            // The limits stop a job as a user does; its end has not come yet.
            "Stopping" | "MaxRuntimeExceeded" | "MaxWaitTimeExceeded" => JobPhase::Stopping,
            _ => JobPhase::Other,
        },
        // Only an ended job can be deleted; how it ended is left in the secondary status.
        "Deleting" => match secondary {
            "Completed" | "Failed" | "Stopped" | "MaxRuntimeExceeded" | "MaxWaitTimeExceeded" => {
                let status = if secondary.starts_with("Max") { "Stopped" } else { secondary };
                classify(status, secondary, failure_reason)
            }
            _ => JobPhase::Other,
        },
        _ => JobPhase::Other,
    }
}

/// A failure message, cut to [`MAX_MESSAGE_CHARS`].
pub fn cut_message(message: &str) -> String {
    field::cut(message, MAX_MESSAGE_CHARS)
}

/// Beginnings of reasons for want of capacity.
const CAPACITY_CLASSES: [&str; 3] =
    ["CapacityError", "InsufficientCapacity", "Unable to provision requested ML compute capacity"];
/// Beginnings of reasons for which the service is to blame.
const SERVICE_CLASSES: [&str; 5] =
    ["InternalServer", "InternalError", "InternalFailure", "ServiceError", "ServiceUnavailable"];

/// Whose fault a failure was. SageMaker begins the reason with a class; what has none, and `ClientError` (bad data,
/// an image that cannot be pulled), would fail again, so it counts against the trial.
fn failure(reason: &str) -> JobEnd {
    let reason = reason.trim_start();
    let begins = |classes: &[&str]| classes.iter().any(|class| reason.starts_with(class));
    if begins(&CAPACITY_CLASSES) {
        JobEnd::CapacityError
    } else if begins(&SERVICE_CLASSES) {
        JobEnd::ServiceError
    } else {
        JobEnd::AlgorithmError
    }
}

fn billable_seconds(detail: &Value) -> Result<Option<u64>, Unreadable> {
    let path = "detail.BillableTimeInSeconds";
    field::optional_number(detail, "BillableTimeInSeconds", path)?
        .map(|seconds| {
            u64::try_from(seconds).map_err(|_| Unreadable::Field { path, expected: "seconds, at least 0" })
        })
        .transpose()
}

/// When the last of the transitions began. Only a help in dating the fact, so a broken one is passed over.
fn last_transition(detail: &Value) -> Option<i64> {
    let transitions = field::present(detail, "SecondaryStatusTransitions")?.as_array()?;
    field::optional_time(transitions.last()?, "StartTime", "detail.SecondaryStatusTransitions").ok()?
}

/// Entries `Interrupted` of the transitions: the only trace that interruptions leave.
fn interruptions(detail: &Value) -> u32 {
    let transitions = field::present(detail, "SecondaryStatusTransitions").and_then(Value::as_array);
    let count = transitions
        .into_iter()
        .flatten()
        .filter(|transition| transition.get("Status").and_then(Value::as_str) == Some("Interrupted"))
        .count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Tags as events have them (a map) or as requests do (a list of `Key` and `Value`); what is neither is left out.
fn tags(value: Option<&Value>) -> BTreeMap<String, String> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    match value {
        Some(Value::Object(map)) => {
            map.iter().filter_map(|(k, v)| Some((k.clone(), text(Some(v))?))).take(MAX_TAGS).collect()
        }
        Some(Value::Array(list)) => list
            .iter()
            .filter_map(|tag| Some((text(tag.get("Key"))?, text(tag.get("Value"))?)))
            .take(MAX_TAGS)
            .collect(),
        _ => BTreeMap::new(),
    }
}
