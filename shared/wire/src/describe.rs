//! The responses of Describe and List: tuning jobs and training jobs, with AMT's members and one more object,
//! `Controller`.
//!
//! The use cases fill the views of this module, which converts them to JSON. Times are epoch seconds, and dollars have
//! at most six decimals. Absent members are omitted, and so are values that JSON lacks (NaN and infinities). This
//! module reads no clock and makes no decisions.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tuning::definition::Objective;
use tuning::money::MicroUsd;

use crate::request::{Request, usd};

mod echo;

pub use echo::{difference, first_difference, request_from_description};

/// Maximum size of the detail of a published event, in bytes. EventBridge accepts 256 KB including the envelope.
const EVENT_BYTES_MAX: usize = 200_000;

/// A tuning job in the responses of Describe and List.
#[derive(Debug, Clone)]
pub struct TuningView<'a> {
    /// The request that created it.
    pub request: &'a Request,
    /// ARN of the tuning job.
    pub arn: &'a str,
    /// `HyperParameterTuningJobStatus`.
    pub status: &'a str,
    /// Time of submission, in ms since the epoch.
    pub created_ms: i64,
    /// Time of its end, in ms since the epoch; `None` while it runs.
    pub ended_ms: Option<i64>,
    /// Time of its last change, in ms since the epoch.
    pub modified_ms: i64,
    /// Training jobs by status.
    pub counters: JobCounters,
    /// Training jobs by status of their objective.
    pub objectives: ObjectiveCounters,
    /// The best training job so far.
    pub best: Option<JobView<'a>>,
    /// Reason of a failure.
    pub failure_reason: Option<&'a str>,
    /// Number of training jobs since the last that improved the objective.
    pub not_improving: Option<u32>,
    /// The data that AMT's response lacks.
    pub controller: ControllerView<'a>,
}

/// `TrainingJobStatusCounters`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObjectiveCounters {
    /// Ended with a final objective value.
    pub succeeded: u32,
    /// Not ended yet.
    pub pending: u32,
    /// Ended without an objective value.
    pub failed: u32,
}

/// The data of a tuning job that the controller adds to AMT's response.
#[derive(Debug, Clone, Default)]
pub struct ControllerView<'a> {
    /// Sum of the booked bills.
    pub spent: MicroUsd,
    /// Sum of the reservations.
    pub reserved: MicroUsd,
    /// The hard cap; `None` = no cap.
    pub cap: Option<MicroUsd>,
    /// Amount granted from the monthly cap of the stack; `None` = no monthly cap.
    pub granted: Option<MicroUsd>,
    /// Whether the price of the instances is unknown, so that every bill is booked as 0.
    pub price_unknown: bool,
    /// Number of training jobs launched.
    pub launched: u32,
    /// The best value of the objective at any epoch.
    pub best_seen: Option<BestSeen>,
    /// Reason of the end.
    pub end_reason: Option<&'a str>,
    /// Reason of the coming end, while running training jobs stop.
    pub ending_reason: Option<&'a str>,
    /// Number of trials started.
    pub trials_started: u32,
    /// Number of trials that have a running training job; `None` without promotion, where a trial has only one job.
    pub trials_training: Option<u32>,
    /// `MaxParallelTrainingJobs` if the user changed it while the tuning job runs.
    pub max_parallel: Option<u32>,
    /// Whether the user paused the start of further training jobs.
    pub paused: bool,
    /// Name of the training job that trains the best configuration again.
    pub refit: Option<&'a str>,
    /// Whether the best training job left a model; `None` without a best job.
    pub best_model: Option<Model>,
    /// Brackets, most exploring first.
    pub brackets: Vec<BracketView>,
}

/// The best value of the objective at any epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BestSeen {
    /// The value.
    pub value: f64,
    /// The trial that emitted the value.
    pub trial: u32,
    /// The epoch of the value.
    pub resource: u32,
}

/// Whether a training job left a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// It completed, or its algorithm saves a model when it is stopped.
    Left,
    /// It failed, or its algorithm saves no model when it is stopped.
    None,
    /// It was stopped and left a model only if its program had saved one.
    IfSaved,
}

impl Model {
    /// Returns the value of `Controller.Model` of the best training job.
    pub fn word(self) -> &'static str {
        match self {
            Self::Left => "Left",
            Self::None => "None",
            Self::IfSaved => "IfSaved",
        }
    }
}

/// A bracket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BracketView {
    /// Number of trials that joined the bracket.
    pub trials_started: u32,
    /// The rungs, lowest first.
    pub rungs: Vec<RungView>,
}

/// A rung.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RungView {
    /// The level of the rung, in epochs.
    pub resource: u32,
    /// The compared trials; `None` at the last rung of a bracket, which compares no trials.
    pub compared: Option<ComparedView>,
}

/// Numbers of trials that a rung compares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ComparedView {
    /// Number of trials that arrived.
    pub arrived: u32,
    /// Number of trials that continued.
    pub went_on: u32,
    /// Number of trials that wait for their promotion; `None` without promotion, where rungs stop running jobs.
    pub waiting: Option<u32>,
}

/// The rung of a training job of a promoted trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromotionView {
    /// The rung at which the training job ends.
    pub rung: u32,
    /// The level of that rung, in epochs.
    pub level: u32,
    /// The epochs of the checkpoint from which it resumed.
    pub resumed_from: Option<u32>,
    /// The epochs at which it began, if that is fewer than its trial had reached when it was promoted.
    pub repeated_from: Option<u32>,
}

/// A training job in the responses of Describe and List.
#[derive(Debug, Clone)]
pub struct JobView<'a> {
    /// `TrainingJobName`.
    pub name: &'a str,
    /// `TrainingJobArn`.
    pub arn: &'a str,
    /// `TrainingJobStatus`.
    pub status: &'a str,
    /// The detailed status: how it ended, or its current phase.
    pub state: &'a str,
    /// Time of creation, in ms since the epoch.
    pub created_ms: i64,
    /// Time when training and billing began, in ms since the epoch.
    pub started_ms: Option<i64>,
    /// Time when training and billing ended, in ms since the epoch.
    pub ended_ms: Option<i64>,
    /// The tuned hyperparameters, by name.
    pub tuned: &'a BTreeMap<String, String>,
    /// The last value of the objective.
    pub final_value: Option<f64>,
    /// Reason of a failure.
    pub failure_reason: Option<&'a str>,
    /// `ObjectiveStatus`.
    pub objective_status: &'a str,
    /// The trial.
    pub trial: u32,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The bracket of the trial.
    pub bracket: u32,
    /// The epochs that the trial has trained.
    pub resource: u32,
    /// The rung of the training job; `None` without promotion.
    pub promotion: Option<PromotionView>,
    /// `BillableTimeInSeconds`, once known.
    pub billable_seconds: Option<u64>,
    /// The best value of the objective so far.
    pub best_value: Option<f64>,
    /// Reason of a stop.
    pub stop_reason: Option<&'a str>,
    /// The reservation for its bill.
    pub reserved: Option<MicroUsd>,
    /// The booked cost; `None` until the bill is booked.
    pub cost: Option<MicroUsd>,
}

/// Returns the response of `DescribeHyperParameterTuningJob`.
pub fn tuning_job(view: &TuningView<'_>) -> Value {
    let mut members = common(view);
    let request = view.request;
    members.insert("HyperParameterTuningJobConfig".to_owned(), echo::config(request));
    members.insert("TrainingJobDefinition".to_owned(), echo::definition(request, view.arn));
    for member in ["TrainingJobDefinitions", "WarmStartConfig", "Autotune"] {
        set(&mut members, member, request.at(member).cloned());
    }
    set(&mut members, "FailureReason", view.failure_reason.map(failure));
    let metric = request.objective_metric();
    let best = view.best.as_ref().map(|job| job_summary(job, metric, Some(request.objective())));
    let model = view.controller.best_model.map(|model| json!(model.word()));
    let best = best.map(|mut best| {
        if let Some(model) = model {
            best["Controller"]["Model"] = model;
        }
        best
    });
    set(&mut members, "BestTrainingJob", best);
    let end_ms = view.ended_ms.unwrap_or(view.modified_ms);
    let runtime = end_ms.saturating_sub(view.created_ms).max(0) / 1_000;
    members.insert("ConsumedResources".to_owned(), json!({"RuntimeInSeconds": runtime}));
    let details = view.not_improving.map(|jobs| json!({"NumberOfTrainingJobsObjectiveNotImproving": jobs}));
    set(&mut members, "TuningJobCompletionDetails", details);
    members.insert("Controller".to_owned(), controller(view));
    Value::Object(members)
}

/// Returns the detail of the event for a changed status. Like the response of Describe, but times are in milliseconds,
/// absent members are null, and the user's tags are a map. A request that is too large for an event is omitted.
pub fn tuning_job_event(view: &TuningView<'_>) -> Value {
    let mut detail = tuning_job(view);
    let times = [
        ("CreationTime", Some(view.created_ms)),
        ("LastModifiedTime", Some(view.modified_ms)),
        ("HyperParameterTuningEndTime", view.ended_ms),
    ];
    for (name, time) in times {
        detail[name] = json!(time);
    }
    if let Some(best) = &view.best {
        detail["BestTrainingJob"]["CreationTime"] = json!(best.created_ms);
        detail["BestTrainingJob"]["TrainingStartTime"] = json!(best.started_ms);
        detail["BestTrainingJob"]["TrainingEndTime"] = json!(best.ended_ms);
    }
    detail["Tags"] = json!(view.request.tags());
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

/// Returns one element of `HyperParameterTuningJobSummaries`.
pub fn tuning_job_summary(view: &TuningView<'_>) -> Value {
    let mut members = common(view);
    members.insert("Strategy".to_owned(), json!(view.request.strategy()));
    members.insert("ResourceLimits".to_owned(), echo::resource_limits(view.request));
    let mut controller = totals(&view.controller);
    set(&mut controller, "EndReason", view.controller.end_reason.map(Value::from));
    members.insert("Controller".to_owned(), Value::Object(controller));
    Value::Object(members)
}

/// A tuning job of which only the index row and the head are readable.
#[derive(Debug, Clone, Copy)]
pub struct UnreadableTuningView<'a> {
    /// `HyperParameterTuningJobName`.
    pub name: &'a str,
    /// `HyperParameterTuningJobArn`.
    pub arn: &'a str,
    /// `HyperParameterTuningJobStatus`.
    pub status: &'a str,
    /// Time of submission, in ms since the epoch.
    pub created_ms: i64,
    /// Time of its last change, in ms since the epoch.
    pub modified_ms: i64,
    /// Reason why the other rows are unreadable.
    pub why: &'a str,
}

/// Returns one element of `HyperParameterTuningJobSummaries` for an unreadable tuning job.
pub fn unreadable_tuning_summary(view: &UnreadableTuningView<'_>) -> Value {
    json!({
        "HyperParameterTuningJobName": view.name,
        "HyperParameterTuningJobArn": view.arn,
        "HyperParameterTuningJobStatus": view.status,
        "CreationTime": epoch_seconds(view.created_ms),
        "LastModifiedTime": epoch_seconds(view.modified_ms),
        "Controller": {"Unreadable": view.why},
    })
}

/// Returns one element of `TrainingJobSummaries`.
pub fn training_job_summary(job: &JobView<'_>, request: &Request) -> Value {
    job_summary(job, request.objective_metric(), None)
}

/// Converts ms since the epoch to seconds with up to three decimals.
pub fn epoch_seconds(ms: i64) -> Value {
    let negative = ms < 0;
    let magnitude = crate::request::decimal(ms.unsigned_abs(), 1_000, 3).as_f64().unwrap_or(0.0);
    json!(if negative { -magnitude } else { magnitude })
}

/// Returns the members that Describe and List share.
fn common(view: &TuningView<'_>) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("HyperParameterTuningJobName".to_owned(), json!(view.request.name()));
    members.insert("HyperParameterTuningJobArn".to_owned(), json!(view.arn));
    members.insert("HyperParameterTuningJobStatus".to_owned(), json!(view.status));
    members.insert("CreationTime".to_owned(), epoch_seconds(view.created_ms));
    members.insert("LastModifiedTime".to_owned(), epoch_seconds(view.modified_ms));
    set(&mut members, "HyperParameterTuningEndTime", view.ended_ms.map(epoch_seconds));
    let jobs = view.counters;
    let counters = json!({
        "Completed": jobs.completed,
        "InProgress": jobs.in_progress,
        "RetryableError": jobs.retryable_error,
        "NonRetryableError": jobs.non_retryable_error,
        "Stopped": jobs.stopped,
    });
    members.insert("TrainingJobStatusCounters".to_owned(), counters);
    let objectives = view.objectives;
    let counters = json!({
        "Succeeded": objectives.succeeded,
        "Pending": objectives.pending,
        "Failed": objectives.failed,
    });
    members.insert("ObjectiveStatusCounters".to_owned(), counters);
    members
}

/// Returns the summary of a training job. AMT shows the direction of the objective only for the best job.
fn job_summary(job: &JobView<'_>, metric: &str, direction: Option<Objective>) -> Value {
    let mut members = Map::new();
    members.insert("TrainingJobName".to_owned(), json!(job.name));
    members.insert("TrainingJobArn".to_owned(), json!(job.arn));
    members.insert("CreationTime".to_owned(), epoch_seconds(job.created_ms));
    set(&mut members, "TrainingStartTime", job.started_ms.map(epoch_seconds));
    set(&mut members, "TrainingEndTime", job.ended_ms.map(epoch_seconds));
    members.insert("TrainingJobStatus".to_owned(), json!(job.status));
    members.insert("TunedHyperParameters".to_owned(), json!(job.tuned));
    members.insert("ObjectiveStatus".to_owned(), json!(job.objective_status));
    set(&mut members, "FailureReason", job.failure_reason.map(failure));
    if let Some(value) = job.final_value.and_then(finite) {
        let mut objective = json!({"MetricName": metric, "Value": value});
        if let Some(direction) = direction {
            let maximize = direction == Objective::Maximize;
            objective["Type"] = json!(if maximize { "Maximize" } else { "Minimize" });
        }
        members.insert("FinalHyperParameterTuningJobObjectiveMetric".to_owned(), objective);
    }
    let mut own = Map::new();
    own.insert("Trial".to_owned(), json!(job.trial));
    own.insert("Attempt".to_owned(), json!(job.attempt));
    own.insert("Bracket".to_owned(), json!(job.bracket));
    own.insert("Resource".to_owned(), json!(job.resource));
    own.insert("State".to_owned(), json!(job.state));
    if let Some(promotion) = job.promotion {
        own.insert("Rung".to_owned(), json!(promotion.rung));
        own.insert("Level".to_owned(), json!(promotion.level));
        set(&mut own, "ResumedFrom", promotion.resumed_from.map(Value::from));
        set(&mut own, "RepeatedFrom", promotion.repeated_from.map(Value::from));
    }
    set(&mut own, "BillableSeconds", job.billable_seconds.map(Value::from));
    set(&mut own, "BestValue", job.best_value.and_then(finite));
    set(&mut own, "StopReason", job.stop_reason.map(Value::from));
    set(&mut own, "ReservedUsd", job.reserved.map(usd));
    set(&mut own, "CostUsd", job.cost.map(usd));
    members.insert("Controller".to_owned(), Value::Object(own));
    Value::Object(members)
}

/// Returns `Controller` of the request with the state of the tuning job.
fn controller(view: &TuningView<'_>) -> Value {
    let own = &view.controller;
    let mut members = view.request.object("Controller").cloned().unwrap_or_default();
    members.append(&mut totals(own));
    set(&mut members, "EndReason", own.end_reason.map(Value::from));
    set(&mut members, "EndingReason", own.ending_reason.map(Value::from));
    set(&mut members, "MaxParallelTrainingJobs", own.max_parallel.map(Value::from));
    set(&mut members, "Paused", own.paused.then_some(Value::Bool(true)));
    set(&mut members, "RefitTrainingJobName", own.refit.map(Value::from));
    members.insert("TrialsStarted".to_owned(), json!(own.trials_started));
    set(&mut members, "TrialsTraining", own.trials_training.map(Value::from));
    let brackets = own.brackets.iter().map(|bracket| {
        let rung = |rung: &RungView| {
            let mut shown = json!({"Resource": rung.resource});
            if let Some(compared) = rung.compared {
                shown["Arrived"] = json!(compared.arrived);
                shown["WentOn"] = json!(compared.went_on);
                if let Some(waiting) = compared.waiting {
                    shown["Waiting"] = json!(waiting);
                }
            }
            shown
        };
        let rungs: Vec<Value> = bracket.rungs.iter().map(rung).collect();
        json!({"TrialsStarted": bracket.trials_started, "Rungs": rungs})
    });
    members.insert("Brackets".to_owned(), brackets.collect());
    Value::Object(members)
}

/// Returns the members of `Controller` that List shows too.
fn totals(own: &ControllerView<'_>) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("SpentUsd".to_owned(), usd(own.spent));
    members.insert("ReservedUsd".to_owned(), usd(own.reserved));
    set(&mut members, "GrantedUsd", own.granted.map(usd));
    set(&mut members, "CapUsd", own.cap.map(usd));
    set(&mut members, "PriceUnknown", own.price_unknown.then_some(Value::Bool(true)));
    members.insert("TrainingJobsLaunched".to_owned(), json!(own.launched));
    let seen = own.best_seen.and_then(|best| {
        Some(json!({"Value": finite(best.value)?, "Trial": best.trial, "Resource": best.resource}))
    });
    set(&mut members, "BestSeen", seen);
    members
}

/// Returns a failure reason, cut to AMT's maximum length.
fn failure(reason: &str) -> Value {
    const CHARACTERS_MAX: usize = 1_024;
    Value::String(reason.chars().take(CHARACTERS_MAX).collect())
}

fn finite(value: f64) -> Option<Value> {
    serde_json::Number::from_f64(value).map(Value::Number)
}

fn set(members: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        members.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests;
