//! The responses of Describe and List: tuning jobs and training jobs, with AMT's members and one more object,
//! `Controller`.
//!
//! The API writes these types and the client reads them, so both sides have one definition. The use cases fill them. A
//! reader ignores unknown members, which a newer server may send. Times are epoch seconds, and dollars have at most six
//! decimals. Absent members are omitted, and so are values that JSON lacks (NaN and infinities).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tuning::unit::money::MicroUsd;

use crate::notice::Notice;
use crate::request::Request;
use crate::shape::{dollars, optional_dollars, optional_seconds, seconds};

mod costs;
mod echo;
mod failures;
mod job;

pub use crate::shape::seconds_of;
pub use costs::{ClusterSize, Costs, FrontTrial};
pub use echo::{
    RequestEcho, difference, first_difference, request_from_description, resource_limits, settings,
};
pub use failures::FailureCause;
pub use job::{
    CurvePoint, FinalObjective, JobController, Model, TrainingJobDetail, TrainingJobPage, TrainingJobSummary,
};

/// Maximum size of the detail of a published event, in bytes. EventBridge accepts 256 KB including the envelope.
const EVENT_BYTES_MAX: usize = 200_000;

/// A created tuning job: the response of `CreateHyperParameterTuningJob`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedTuning {
    /// ARN of the tuning job.
    #[serde(rename = "HyperParameterTuningJobArn")]
    pub arn: String,
    /// Whether an earlier, equal request has created it.
    #[serde(rename = "Existed", default, skip_serializing_if = "std::ops::Not::not")]
    pub existed: bool,
}

/// A tuning job: the response of `DescribeHyperParameterTuningJob`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct TuningJob {
    /// The members that List shows too.
    #[serde(flatten)]
    pub base: TuningBase,
    /// The request that created it.
    #[serde(flatten)]
    pub request: RequestEcho,
    /// Reason of a failure, see [`failure_reason`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// The best training job so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_training_job: Option<TrainingJobSummary>,
    /// The best training job of this tuning job and of its parents, if they have the same data and algorithm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overall_best_training_job: Option<Box<TrainingJobSummary>>,
    /// `ConsumedResources`.
    pub consumed_resources: ConsumedResources,
    /// `TuningJobCompletionDetails`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tuning_job_completion_details: Option<CompletionDetails>,
    /// The data that AMT's response lacks.
    pub controller: TuningController,
}

/// The members of a tuning job that Describe and List share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuningBase {
    /// Name of the tuning job.
    #[serde(rename = "HyperParameterTuningJobName")]
    pub name: String,
    /// ARN of the tuning job.
    #[serde(rename = "HyperParameterTuningJobArn")]
    pub arn: String,
    /// `HyperParameterTuningJobStatus`.
    #[serde(rename = "HyperParameterTuningJobStatus")]
    pub status: String,
    /// Time of submission; in JSON, seconds since the epoch.
    #[serde(rename = "CreationTime", with = "seconds")]
    #[schemars(with = "f64")]
    pub created_ms: i64,
    /// Time of its last change; in JSON, seconds since the epoch.
    #[serde(rename = "LastModifiedTime", with = "seconds")]
    #[schemars(with = "f64")]
    pub modified_ms: i64,
    /// Time of its end; in JSON, seconds since the epoch. `None` while it runs.
    #[serde(rename = "HyperParameterTuningEndTime")]
    #[serde(with = "optional_seconds", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub ended_ms: Option<i64>,
    /// Training jobs by status; `None` if the tuning job is unreadable.
    #[serde(rename = "TrainingJobStatusCounters", skip_serializing_if = "Option::is_none")]
    pub counters: Option<JobCounters>,
    /// Training jobs by status of their objective; `None` if the tuning job is unreadable.
    #[serde(rename = "ObjectiveStatusCounters", skip_serializing_if = "Option::is_none")]
    pub objectives: Option<ObjectiveCounters>,
}

impl TuningBase {
    /// Returns whether no training job of it runs any more.
    pub fn is_ended(&self) -> bool {
        !matches!(self.status.as_str(), "InProgress" | "Stopping")
    }

    /// Returns whether a stop was requested that is not finished.
    pub fn is_stopping(&self) -> bool {
        self.status == "Stopping"
    }
}

/// `TrainingJobStatusCounters`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct JobCounters {
    /// Completed.
    pub completed: u32,
    /// Not ended yet.
    pub in_progress: u32,
    /// Failed, with a further attempt.
    pub retryable_error: u32,
    /// Failed, without a further attempt.
    pub non_retryable_error: u32,
    /// Stopped by a decision, a user or a time limit.
    pub stopped: u32,
}

/// `ObjectiveStatusCounters`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct ObjectiveCounters {
    /// Ended with a final objective value.
    pub succeeded: u32,
    /// Not ended yet.
    pub pending: u32,
    /// Ended without an objective value.
    pub failed: u32,
}

/// `ConsumedResources`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct ConsumedResources {
    /// Seconds from the submission to the end, or to the last change.
    pub runtime_in_seconds: i64,
}

impl ConsumedResources {
    /// Returns the resources of a tuning job.
    pub fn of(base: &TuningBase) -> Self {
        let end_ms = base.ended_ms.unwrap_or(base.modified_ms);
        Self { runtime_in_seconds: end_ms.saturating_sub(base.created_ms).max(0) / 1_000 }
    }
}

/// `TuningJobCompletionDetails`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompletionDetails {
    /// Number of training jobs since the last that improved the objective.
    #[serde(rename = "NumberOfTrainingJobsObjectiveNotImproving")]
    pub not_improving: u32,
    /// Time of the end of a tuning job that has converged; in JSON, seconds since the epoch.
    #[serde(rename = "ConvergenceDetectedTime")]
    #[serde(with = "optional_seconds", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub converged_ms: Option<i64>,
}

/// `Controller` of the request with the state of the tuning job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct TuningController {
    /// The members that List shows too.
    #[serde(flatten)]
    pub totals: Totals,
    /// Reason of the coming end, while running training jobs stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending_reason: Option<String>,
    /// `MaxParallelTrainingJobs` if the user changed it while the tuning job runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_parallel_training_jobs: Option<u32>,
    /// What the next training job or the end waits for; `None` if they wait for nothing outside the tuning job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// Name of the training job that trains the best configuration again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refit_training_job_name: Option<String>,
    /// The best model; `None` until a training job counts, and in events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_model: Option<BestModel>,
    /// Number of trials started.
    pub trials_started: u32,
    /// Number of trials that have a running training job; `None` without promotion, where a trial has only one job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trials_training: Option<u32>,
    /// Problems that the logs of training jobs show; empty without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// Causes of failed training jobs, most frequent first; empty without failures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureCause>,
    /// Brackets, most exploring first.
    pub brackets: Vec<Bracket>,
    /// What a training costs.
    #[serde(flatten)]
    pub costs: Costs,
    /// `Controller` of the request. It comes last: a reader puts every member here that no field above has.
    #[serde(flatten)]
    pub settings: Map<String, Value>,
}

/// The model of the completed refit, else of the best training job. It is the model of the job's last epoch, unless the
/// program saved another, so its value can be worse than [`BestSeen`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct BestModel {
    /// The training job.
    pub training_job_name: String,
    /// Its trial.
    pub trial: u32,
    /// Its last epoch.
    pub resource: u32,
    /// Its last value of the objective.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// A URI of S3 or of a folder, which exists if the job left a model.
    pub location: String,
}

/// What the next training job or the end of the tuning job waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct WaitingFor {
    /// `Capacity` (training jobs get no instances), `Quota` (of the account), `MonthlyCap` (of the stack),
    /// `RunningTrials` (too many trials failed, and no new one starts before a running one logs a value), `Bills` (the
    /// last bills are read once more before the tuning job ends) or `Starts` (ordered starts wait for the account's rate
    /// of `CreateTrainingJob`, which all tunings share, or for the service to accept them).
    pub reason: String,
    /// Since when; in JSON, seconds since the epoch.
    #[serde(rename = "Since", with = "seconds")]
    #[schemars(with = "f64")]
    pub since_ms: i64,
    /// Earliest time of the next attempt, if it is known; in JSON, seconds since the epoch.
    #[serde(rename = "NextAttempt")]
    #[serde(with = "optional_seconds", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub next_attempt_ms: Option<i64>,
    /// The latest answer of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The members of a tuning job's `Controller` that Describe and List share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Totals {
    /// ARN of the principal that submitted the tuning job; `None` = unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitter: Option<String>,
    /// Sum of the booked bills.
    #[serde(with = "dollars")]
    #[schemars(with = "f64")]
    pub spent_usd: MicroUsd,
    /// Sum of the reservations.
    #[serde(with = "dollars")]
    #[schemars(with = "f64")]
    pub reserved_usd: MicroUsd,
    /// Amount granted from the monthly cap of the stack; `None` = no monthly cap.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub granted_usd: Option<MicroUsd>,
    /// The hard cap; `None` = no cap.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub cap_usd: Option<MicroUsd>,
    /// Whether the price of the instances is unknown, so that every bill is booked as 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub price_unknown: bool,
    /// Number of training jobs launched.
    pub training_jobs_launched: u32,
    /// The best value of the objective at any epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_seen: Option<BestSeen>,
    /// Whether the user paused the start of further training jobs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Since when it is paused; in JSON, seconds since the epoch.
    #[serde(rename = "PausedSince")]
    #[serde(with = "optional_seconds", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub paused_since_ms: Option<i64>,
    /// Reason of the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<String>,
}

/// The best value of the objective at any epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct BestSeen {
    /// The value.
    pub value: f64,
    /// The trial that emitted the value.
    pub trial: u32,
    /// The epoch of the value.
    pub resource: u32,
}

/// A bracket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Bracket {
    /// Number of trials that joined the bracket.
    pub trials_started: u32,
    /// The rungs, lowest first.
    pub rungs: Vec<Rung>,
}

/// A rung.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Rung {
    /// The level of the rung, in epochs.
    pub resource: u32,
    /// The compared trials; `None` at the last rung of a bracket, which compares no trials.
    #[serde(flatten)]
    pub compared: Option<Compared>,
}

/// Numbers of trials that a rung compares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Compared {
    /// Number of trials that arrived.
    pub arrived: u32,
    /// Number of trials that continued.
    pub went_on: u32,
    /// Number of trials that wait for their promotion; `None` without promotion, where rungs stop running jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u32>,
}

/// A page of `ListHyperParameterTuningJobs`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct TuningPage {
    /// The tuning jobs.
    #[serde(rename = "HyperParameterTuningJobSummaries")]
    pub tunings: Vec<TuningSummary>,
    /// Token of the next page; `None` on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_token: Option<String>,
}

/// A page of the decisions of a tuning job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct DecisionPage<S> {
    /// Id of the tuning job. Another tuning job of the same name has another.
    pub tuning_job_id: String,
    /// The steps, as they are stored. The API writes `Step`; a reader may keep the JSON of steps of a newer server.
    #[serde(rename = "Decisions")]
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub steps: Vec<S>,
    /// Token of the next page; `None` on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_token: Option<String>,
}

/// A page of the stored rows of a tuning job, for a copy of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct RowPage {
    /// The rows, see [`row_json`](crate::row_json).
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub rows: Vec<Value>,
    /// Token of the next page; `None` on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_token: Option<String>,
}

/// An entry of `HyperParameterTuningJobSummaries`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct TuningSummary {
    /// The members that Describe shows too.
    #[serde(flatten)]
    pub base: TuningBase,
    /// `Strategy`; `None` if the tuning job is unreadable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// `ResourceLimits`; `None` if the tuning job is unreadable.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub resource_limits: Option<Value>,
    /// The data that AMT's response lacks.
    pub controller: SummaryController,
}

impl TuningSummary {
    /// Returns the totals; `None` if the tuning job is unreadable.
    pub fn totals(&self) -> Option<&Totals> {
        match &self.controller {
            SummaryController::Readable(totals) => Some(totals),
            SummaryController::Unreadable { .. } => None,
        }
    }
}

/// `Controller` of an entry of `HyperParameterTuningJobSummaries`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SummaryController {
    /// The totals of the tuning job.
    Readable(Totals),
    /// Only the index row and the head of the tuning job are readable.
    Unreadable {
        /// Reason why the other rows are unreadable.
        #[serde(rename = "Unreadable")]
        why: String,
    },
}

/// Returns the detail of the event for a changed status. Like Describe without the front, but times are in milliseconds,
/// absent members are null, and the user's tags are a map. A request that is too large for an event is omitted.
pub fn tuning_job_event(job: &TuningJob, request: &Request) -> Value {
    let mut detail = json!(job);
    let times = [
        ("CreationTime", Some(job.base.created_ms)),
        ("LastModifiedTime", Some(job.base.modified_ms)),
        ("HyperParameterTuningEndTime", job.base.ended_ms),
    ];
    for (name, time) in times {
        detail[name] = json!(time);
    }
    if let Some(best) = &job.best_training_job {
        detail["BestTrainingJob"]["CreationTime"] = json!(best.created_ms);
        detail["BestTrainingJob"]["TrainingStartTime"] = json!(best.started_ms);
        detail["BestTrainingJob"]["TrainingEndTime"] = json!(best.ended_ms);
    }
    detail["Tags"] = json!(request.tags());
    detail["Controller"].as_object_mut().map(|own| own.remove("Front"));
    if detail.to_string().len() > EVENT_BYTES_MAX
        && let Some(members) = detail.as_object_mut()
    {
        for large in
            ["HyperParameterTuningJobConfig", "TrainingJobDefinition", "TrainingJobDefinitions", "Tags"]
        {
            members.remove(large);
        }
    }
    for name in ["BestTrainingJob", "FailureReason", "TuningJobCompletionDetails", "WarmStartConfig"] {
        if detail.get(name).is_none() {
            detail[name] = Value::Null;
        }
    }
    detail
}

/// Returns a failure reason, cut to AMT's maximum length.
pub fn failure_reason(reason: &str) -> String {
    const CHARACTERS_MAX: usize = 1_024;
    reason.chars().take(CHARACTERS_MAX).collect()
}

/// Returns the number, unless JSON lacks it (NaN and infinities).
pub fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests;
