//! "SageMaker Training Job State Change", as EventBridge delivers it, and what its statuses mean.
//!
//! Times come as epoch milliseconds, in numbers or in texts of digits; absent values as `null`. A status this code does
//! not know must not break anything: the job goes on.

use std::collections::BTreeMap;

use serde_json::Value;
use tuning::fact::{Fact, JobEnd, JobKey, JobPhase, Recorded};
use tuning::limits::MAX_MESSAGE_CHARS;

use super::EventError;

/// Detail type of these events.
pub const DETAIL_TYPE: &str = "SageMaker Training Job State Change";

/// A state change of a training job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobStateChange {
    /// `TrainingJobName`.
    pub training_job_name: String,
    /// `Tags`.
    pub tags: BTreeMap<String, String>,
    /// What the statuses mean.
    pub phase: JobPhase,
    /// `TrainingJobStatus`.
    pub status: String,
    /// `SecondaryStatus`.
    pub secondary: String,
    /// `TrainingStartTime`, ms.
    pub started: Option<i64>,
    /// `TrainingEndTime`, ms.
    pub ended: Option<i64>,
    /// Time of the state: the start of the last transition, else `LastModifiedTime`, ms.
    pub at: i64,
    /// `FailureReason`, cut.
    pub failure_reason: Option<String>,
}

impl JobStateChange {
    /// Reads an EventBridge event.
    pub fn parse(event: &Value) -> Result<Self, EventError> {
        let kind = event["detail-type"].as_str().unwrap_or_default();
        if kind != DETAIL_TYPE || event["source"] != "aws.sagemaker" {
            return Err(EventError::NotOurs(format!("detail-type {kind:?}")));
        }
        let detail = &event["detail"];
        let text = |name: &str| {
            let value = detail[name].as_str();
            value.map(str::to_owned).ok_or_else(|| EventError::Unreadable(format!("no detail.{name}")))
        };
        let (status, secondary) = (text("TrainingJobStatus")?, text("SecondaryStatus")?);
        let failure_reason = detail["FailureReason"].as_str().map(cut);
        let phase = classify(&status, &secondary, failure_reason.as_deref());
        let transitions = detail["SecondaryStatusTransitions"].as_array();
        let entered = transitions.and_then(|list| list.last()).and_then(|last| time(&last["StartTime"]));
        let at = entered
            .max(time(&detail["LastModifiedTime"]))
            .ok_or_else(|| EventError::Unreadable("no time in detail".to_owned()))?;
        Ok(Self {
            training_job_name: text("TrainingJobName")?,
            tags: tags(&detail["Tags"]),
            phase,
            status,
            secondary,
            started: time(&detail["TrainingStartTime"]),
            ended: time(&detail["TrainingEndTime"]),
            at,
            failure_reason,
        })
    }

    /// The fact of this change for `job`; the same change gives the same key.
    pub fn to_recorded(&self, job: JobKey) -> Recorded {
        let fact = Fact::JobStateChanged {
            job,
            phase: self.phase,
            started: self.started,
            ended: self.ended,
            message: self.failure_reason.clone(),
        };
        Recorded { key: format!("state#{}#{}#{}", self.status, self.secondary, self.at), at: self.at, fact }
    }
}

/// Epoch milliseconds in a number or in a text of digits.
fn time(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

fn tags(value: &Value) -> BTreeMap<String, String> {
    let members = value.as_object().into_iter().flatten();
    members.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_MESSAGE_CHARS).collect()
}

/// What a job's statuses mean (`TrainingJobStatus`, `SecondaryStatus`, `FailureReason`).
pub fn classify(status: &str, secondary: &str, failure_reason: Option<&str>) -> JobPhase {
    match (status, secondary) {
        ("Completed", _) => JobPhase::Ended(JobEnd::Completed),
        ("Stopped", "MaxRuntimeExceeded") => JobPhase::Ended(JobEnd::MaxRuntime),
        ("Stopped", "MaxWaitTimeExceeded") => JobPhase::Ended(JobEnd::MaxWait),
        ("Stopped", _) => JobPhase::Ended(JobEnd::Stopped),
        ("Failed", _) => JobPhase::Ended(failure(failure_reason.unwrap_or_default())),
        ("Stopping", _) | (_, "Stopping") => JobPhase::Stopping,
        (_, "Starting" | "LaunchingMLInstances" | "PreparingTrainingStack" | "Pending" | "Restarting") => {
            JobPhase::Starting
        }
        (_, "Downloading" | "DownloadingTrainingImage") => JobPhase::Downloading,
        (_, "Training") => JobPhase::Training,
        (_, "Interrupted") => JobPhase::Interrupted,
        (_, "Uploading") => JobPhase::Uploading,
        _ => JobPhase::Other,
    }
}

/// Whose fault a failure was, by the prefix of its reason; without a known one the program's.
fn failure(reason: &str) -> JobEnd {
    if reason.starts_with("CapacityError") {
        JobEnd::CapacityError
    } else if reason.starts_with("InternalServerError") {
        JobEnd::ServiceError
    } else {
        JobEnd::AlgorithmError
    }
}
