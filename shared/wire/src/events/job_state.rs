//! The EventBridge event "SageMaker Training Job State Change".
//!
//! This module reads the event and classifies SageMaker's statuses, also for `DescribeTrainingJob`. As observed, times
//! are epoch milliseconds as numbers or text, absent values are null, and statuses may be unknown. Events may arrive
//! late, in any order, twice or never.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, Recorded};
use tuning::unit::limits::MAX_MESSAGE_CHARS;
use tuning::unit::time::Time;

use super::timestamp::{format_utc, parse_utc};
use super::{EventError, Unreadable, expect_kind, field};
use crate::names;

/// The source of encoded events. The parser accepts any source, because the EventBridge rule selects the sources.
const SOURCE: &str = "aws.sagemaker";

const DETAIL_TYPE: &str = "SageMaker Training Job State Change";

/// Maximum length of a name or status, in characters; SageMaker's are shorter. The key of a fact contains two statuses.
/// Even at four bytes per character it must fit the 1,024 bytes of a sort key.
const MAX_WORD_CHARS: usize = 64;
const TIME: &str = "a time in epoch milliseconds";

/// Maximum number of tags that are kept. AWS allows 50.
const MAX_TAGS: usize = 100;

/// A state change of a training job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobStateChange {
    /// Name of the training job.
    pub training_job_name: String,
    /// Tags of the training job, by key.
    pub tags: BTreeMap<String, String>,
    /// The new state.
    pub phase: JobPhase,
    /// `TrainingJobStatus`, as sent.
    pub status: String,
    /// `SecondaryStatus`, as sent; empty when absent.
    pub secondary: String,
    /// Time of creation, in ms since the epoch.
    pub created: Option<Time>,
    /// Time when the instances began to run, in ms since the epoch; `None` = not yet.
    pub started: Option<Time>,
    /// Time when the instances stopped, in ms since the epoch; `None` = not yet.
    pub ended: Option<Time>,
    /// Time of the last change of the job's description, in ms since the epoch.
    pub modified: Option<Time>,
    /// Billed seconds. Often absent even at the end; `DescribeTrainingJob` then has them.
    pub billable_seconds: Option<u64>,
    /// Number of spot interruptions so far.
    pub interruptions: u32,
    /// Reason of a failure, cut to [`MAX_MESSAGE_CHARS`].
    pub failure_reason: Option<String>,
    /// Time when the event was sent, in ms since the epoch.
    pub event_time: Option<Time>,
    /// Time of the state, in ms since the epoch: the latest time of the job in the event, because the modification time
    /// may precede the end time. Without any, the time of the event.
    pub at: Time,
}

impl JobStateChange {
    /// Reads an EventBridge event.
    pub fn parse(event: &Value) -> Result<Self, EventError> {
        expect_kind(event, &[], DETAIL_TYPE)?;
        let event_time = field::optional_text(event, "time")?.and_then(parse_utc);
        let detail = field::object(event, "detail")?;
        let name = field::text(detail, "detail.TrainingJobName")?;
        let status = field::text(detail, "detail.TrainingJobStatus")?;
        let secondary = field::optional_text(detail, "detail.SecondaryStatus")?.unwrap_or_default();
        let reason =
            field::optional_text(detail, "detail.FailureReason")?.filter(|reason| !reason.is_empty());
        let started = field::optional_time(detail, "detail.TrainingStartTime")?;
        let ended = field::optional_time(detail, "detail.TrainingEndTime")?;
        let modified = field::optional_time(detail, "detail.LastModifiedTime")?;
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
            created: field::optional_time(detail, "detail.CreationTime")?,
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

    /// Returns the natural key of the fact: job, status, secondary status and time of the change.
    pub fn fact_key(&self) -> String {
        let job = names::parse_training_job_name(&self.training_job_name)
            .map_or_else(|| self.training_job_name.clone(), |(_, key)| key.to_string());
        let time = self.modified.unwrap_or(self.at);
        format!("state#{job}#{}#{}#{time}", self.status, self.secondary)
    }

    /// Returns the fact of this change for `job`.
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

    /// Returns the event as EventBridge delivers it, for the local host and the simulator.
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

/// Returns the phase for the statuses of an event or of `DescribeTrainingJob`.
///
/// Only `status` shows that a job has ended; `secondary` shows why a job was stopped. Unknown statuses yield
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
        // A stopping job may still upload its model, but it counts as stopping.
        "Stopping" => JobPhase::Stopping,
        "InProgress" => match secondary {
            "Starting" | "LaunchingMLInstances" | "PreparingTrainingStack" | "Pending" | "Restarting" => {
                JobPhase::Starting
            }
            "Downloading" | "DownloadingTrainingImage" => JobPhase::Downloading,
            "Training" => JobPhase::Training,
            "Interrupted" => JobPhase::Interrupted,
            "Uploading" => JobPhase::Uploading,
            // A job that reached a time limit is stopping, but has not ended yet.
            "Stopping" | "MaxRuntimeExceeded" | "MaxWaitTimeExceeded" => JobPhase::Stopping,
            _ => JobPhase::Other,
        },
        // Only an ended job can be deleted. The secondary status shows how it ended.
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

/// Returns a failure message, cut to [`MAX_MESSAGE_CHARS`].
pub fn cut_message(message: &str) -> String {
    field::cut(message, MAX_MESSAGE_CHARS)
}

/// Prefixes of failure reasons for a lack of capacity.
const CAPACITY_CLASSES: [&str; 3] =
    ["CapacityError", "InsufficientCapacity", "Unable to provision requested ML compute capacity"];
/// Prefixes of failure reasons for a fault of the service.
const SERVICE_CLASSES: [&str; 5] =
    ["InternalServer", "InternalError", "InternalFailure", "ServiceError", "ServiceUnavailable"];

/// Returns the kind of a failure. SageMaker's reason begins with an error class. A reason without a class, or with
/// `ClientError` (invalid data, an image that cannot be pulled), counts against the trial, because a retry would fail
/// again.
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
    field::optional_number(detail, path)?
        .map(|seconds| {
            u64::try_from(seconds)
                .map_err(|_| Unreadable::Field { path, expected: "a number of seconds of at least 0" })
        })
        .transpose()
}

/// Returns the start time of the last transition. It only helps to date the fact, so an invalid transition is ignored.
fn last_transition(detail: &Value) -> Option<Time> {
    let transitions = field::present(detail, "SecondaryStatusTransitions")?.as_array()?;
    field::optional_time(transitions.last()?, "detail.SecondaryStatusTransitions[].StartTime").ok()?
}

/// Counts the transitions with status `Interrupted`, the only record of interruptions.
fn interruptions(detail: &Value) -> u32 {
    let transitions = field::present(detail, "SecondaryStatusTransitions").and_then(Value::as_array);
    let count = transitions
        .into_iter()
        .flatten()
        .filter(|transition| transition.get("Status").and_then(Value::as_str) == Some("Interrupted"))
        .count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Reads tags in the form of events (a map) or of requests (a list of `Key` and `Value`), and ignores other forms.
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
