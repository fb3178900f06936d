//! The response shapes: Describe of a tuning, summaries of tunings and of training jobs, with AMT's members and one
//! object `Controller` more.
//!
//! Holds plain views to be filled by whoever knows the state, and turns them into JSON. Absent members are omitted,
//! times are epoch seconds, dollars have at most six decimals. Values that JSON has not (NaN, infinities) are omitted.
//! Never reads a clock, never decides.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tuning::definition::Objective;
use tuning::money::MicroUsd;

use crate::request::{Request, usd};

mod echo;

pub use echo::{difference, first_difference, request_of};

/// Largest detail of an event that we publish, in bytes; EventBridge takes 256 KB with all that is around it.
const EVENT_BYTES_MAX: usize = 200_000;

/// A tuning job, as Describe and List show it.
#[derive(Debug, Clone)]
pub struct TuningView<'a> {
    /// What was asked for.
    pub request: &'a Request,
    /// ARN of the tuning job.
    pub arn: &'a str,
    /// `HyperParameterTuningJobStatus`.
    pub status: &'a str,
    /// When it was submitted, ms since the epoch.
    pub created_ms: i64,
    /// When it ended.
    pub ended_ms: Option<i64>,
    /// When it last changed.
    pub modified_ms: i64,
    /// Training jobs by status.
    pub counters: JobCounters,
    /// Training jobs by what is known of their objective.
    pub objectives: ObjectiveCounters,
    /// The best training job so far.
    pub best: Option<JobView<'a>>,
    /// Why it failed.
    pub failure_reason: Option<&'a str>,
    /// Training jobs since the last that improved the objective.
    pub not_improving: Option<u32>,
    /// What AMT does not tell.
    pub controller: ControllerView<'a>,
}

/// `TrainingJobStatusCounters`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobCounters {
    /// Ended by themselves.
    pub completed: u32,
    /// Not ended.
    pub in_progress: u32,
    /// Failed, and tried again.
    pub retryable_error: u32,
    /// Failed for good.
    pub non_retryable_error: u32,
    /// Stopped by a decision, a user or a time limit.
    pub stopped: u32,
}

/// `ObjectiveStatusCounters`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObjectiveCounters {
    /// Final objective known.
    pub succeeded: u32,
    /// Running.
    pub pending: u32,
    /// Ended without a value.
    pub failed: u32,
}

/// The controller's own part of a tuning.
#[derive(Debug, Clone, Default)]
pub struct ControllerView<'a> {
    /// Spent and settled.
    pub spent: MicroUsd,
    /// Reserved for what runs.
    pub reserved: MicroUsd,
    /// The hard cap.
    pub cap: Option<MicroUsd>,
    /// Granted out of the stack's month's cap, if there is one.
    pub granted: Option<MicroUsd>,
    /// Whether nobody knows what its instances cost, so that what is spent counts as nothing.
    pub price_unknown: bool,
    /// Training jobs launched.
    pub launched: u32,
    /// The best value seen at any epoch.
    pub best_seen: Option<BestSeen>,
    /// Why the tuning ended.
    pub end_reason: Option<&'a str>,
    /// Why it is ending, before it has ended.
    pub ending_reason: Option<&'a str>,
    /// Trials started.
    pub trials_started: u32,
    /// Trials that have a training job now; `None` where a trial has only one.
    pub trials_training: Option<u32>,
    /// Most jobs at once, where its user has changed it.
    pub max_parallel: Option<u32>,
    /// Whether no further job is started for now.
    pub paused: bool,
    /// Name of the training job that trains the best configuration once more.
    pub refit: Option<&'a str>,
    /// Whether the best training job left a model, see [`Model`].
    pub best_model: Option<Model>,
    /// Brackets, most exploring first.
    pub brackets: Vec<BracketView>,
}

/// The best value of the objective seen at any epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BestSeen {
    /// The value.
    pub value: f64,
    /// Whose it is.
    pub trial: u32,
    /// At which epoch.
    pub resource: u32,
}

/// Whether a training job left a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// It ended well, or its algorithm saves one when it is stopped.
    Left,
    /// It failed, or its algorithm saves none when it is stopped.
    None,
    /// It was stopped: it left one if its program saved one by then.
    IfSaved,
}

impl Model {
    /// The word in `Controller.Model` of the best training job.
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
    /// Trials that joined it.
    pub trials_started: u32,
    /// Its rungs, lowest first.
    pub rungs: Vec<RungView>,
}

/// A rung.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RungView {
    /// Its epochs.
    pub resource: u32,
    /// Who was compared there; `None` at a bracket's last rung, which compares nobody.
    pub compared: Option<ComparedView>,
}

/// The trials that are compared at a rung.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ComparedView {
    /// Trials that arrived.
    pub arrived: u32,
    /// Trials that went on.
    pub went_on: u32,
    /// Trials that wait there to be promoted; `None` where running jobs are stopped instead.
    pub waiting: Option<u32>,
}

/// A training job's part in the promotion of its trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromotionView {
    /// The rung that it trains to.
    pub rung: u32,
    /// That rung's epochs.
    pub level: u32,
    /// The epochs with which it went on from its trial's checkpoint.
    pub resumed_from: Option<u32>,
    /// The epochs with which it began although its trial had been promoted with more.
    pub repeated_from: Option<u32>,
}

/// A training job.
#[derive(Debug, Clone)]
pub struct JobView<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its ARN.
    pub arn: &'a str,
    /// `TrainingJobStatus`.
    pub status: &'a str,
    /// The same in more words: how it ended, or what it does now.
    pub state: &'a str,
    /// When it was created, ms since the epoch.
    pub created_ms: i64,
    /// When training (and billing) began.
    pub started_ms: Option<i64>,
    /// When training (and billing) ended.
    pub ended_ms: Option<i64>,
    /// Its configuration.
    pub tuned: &'a BTreeMap<String, String>,
    /// The objective's last value.
    pub final_value: Option<f64>,
    /// Why it failed.
    pub failure_reason: Option<&'a str>,
    /// `ObjectiveStatus`.
    pub objective_status: &'a str,
    /// Its trial.
    pub trial: u32,
    /// Which attempt of the trial it is.
    pub attempt: u32,
    /// The trial's bracket.
    pub bracket: u32,
    /// Epochs the trial has used.
    pub resource: u32,
    /// Where trials are promoted: what of it this job is for.
    pub promotion: Option<PromotionView>,
    /// `BillableTimeInSeconds`, once known.
    pub billable_seconds: Option<u64>,
    /// Best value so far.
    pub best_value: Option<f64>,
    /// Why it was stopped.
    pub stop_reason: Option<&'a str>,
    /// What is reserved for it.
    pub reserved: Option<MicroUsd>,
    /// What it cost, once settled.
    pub cost: Option<MicroUsd>,
}

/// The answer of `DescribeHyperParameterTuningJob`.
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

/// The detail of the event that a tuning job's status has changed: as Describe, but times are milliseconds, what is absent is
/// null, and the user's tags are a map. A request that is too large for an event is left out.
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

/// One element of `HyperParameterTuningJobSummaries`.
pub fn tuning_job_summary(view: &TuningView<'_>) -> Value {
    let mut members = common(view);
    members.insert("Strategy".to_owned(), json!(view.request.strategy()));
    members.insert("ResourceLimits".to_owned(), echo::resource_limits(view.request));
    let mut controller = totals(&view.controller);
    set(&mut controller, "EndReason", view.controller.end_reason.map(Value::from));
    members.insert("Controller".to_owned(), Value::Object(controller));
    Value::Object(members)
}

/// A tuning job of which no more is known than what its row in the index and its head say.
#[derive(Debug, Clone, Copy)]
pub struct UnreadView<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its ARN.
    pub arn: &'a str,
    /// Its status.
    pub status: &'a str,
    /// When it was submitted.
    pub created_ms: i64,
    /// When it changed.
    pub modified_ms: i64,
    /// Why the rest cannot be read.
    pub why: &'a str,
}

/// One element of `HyperParameterTuningJobSummaries` for a tuning job that cannot be read.
pub fn unread_tuning_job(view: &UnreadView<'_>) -> Value {
    json!({
        "HyperParameterTuningJobName": view.name,
        "HyperParameterTuningJobArn": view.arn,
        "HyperParameterTuningJobStatus": view.status,
        "CreationTime": epoch_seconds(view.created_ms),
        "LastModifiedTime": epoch_seconds(view.modified_ms),
        "Controller": {"Unreadable": view.why},
    })
}

/// One element of `TrainingJobSummaries`.
pub fn training_job_summary(job: &JobView<'_>, request: &Request) -> Value {
    job_summary(job, request.objective_metric(), None)
}

/// Epoch seconds, with a fraction of milliseconds.
pub fn epoch_seconds(ms: i64) -> Value {
    let negative = ms < 0;
    let magnitude = crate::request::decimal(ms.unsigned_abs(), 1_000, 3).as_f64().unwrap_or(0.0);
    json!(if negative { -magnitude } else { magnitude })
}

/// What Describe and List have in common.
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

/// A training job's summary; AMT gives the objective's direction with the best job only.
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

/// The settings of the request's `Controller`, and what became of them.
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

/// What List shows as well.
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

/// A failure reason, cut to AMT's length.
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
