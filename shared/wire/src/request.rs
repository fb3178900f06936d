//! The request: JSON of `CreateHyperParameterTuningJob` with one more object, `Controller`.
//!
//! Holds the checked JSON as it came (it is stored and echoed), with what belongs in `Controller` there, and reads it. A [`Request`] from [`Request::parse`]
//! keeps every row and rule of [`crate::constraint`]; one from [`Request::from_stored`] kept those of its day.
//! Reading is total: what is not there, or has another type, is absent or takes its default. Never panics, never does
//! I/O.

use std::collections::BTreeMap;
use std::fmt;

use hyperband::plan::Plan;
use serde_json::{Map, Value};
use tuning::definition::Objective;
use tuning::limits::MAX_TRAINING_JOBS;

use crate::constraint;

mod define;
mod job;
mod json;
mod lift;
mod metric;
mod ranges;
mod usd;

pub use define::PriceAnswer;
pub use job::TrainingJob;
pub(crate) use lift::{Source, is_tag, name_sources, violations as lift_violations};
pub use metric::{PatternError, compile_pattern};
pub(crate) use metric::{SMALL_BYTES, compile_measured, shortened};
pub(crate) use ranges::parameters;
pub(crate) use usd::decimal;
pub use usd::{micro_usd_down, micro_usd_up, usd};

/// Largest request body in bytes.
pub const MAX_BODY_BYTES: usize = 1 << 20;
/// Deepest nesting of a request body; the deepest field of the table is at 8.
pub const MAX_DEPTH: usize = 32;
/// Tags that we add to each training job.
pub const OWN_TAGS: usize = 3;
/// The hyperparameter that the service adds, with the name of the objective metric.
pub const OBJECTIVE_HYPERPARAMETER: &str = "_tuning_objective_metric";
/// Static hyperparameters that tell `MaxResource` when the request does not: AMT's five, then ours.
pub const RESOURCE_NAMES: &[&str] = &[
    "epochs",
    "numepochs",
    "n-epochs",
    "n_epochs",
    "num_epochs",
    "num_round",
    "max_num_epochs",
    "num_boost_round",
    "num_train_epochs",
    "max_epochs",
];

const DEFINITION: &str = "TrainingJobDefinition";
const DEFAULT_RUNTIME_SECONDS: u64 = 86_400;

/// A request that was checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    body: Value,
}

/// One choice of what a job runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceChoice<'a> {
    /// `InstanceType`.
    pub instance_type: &'a str,
    /// `InstanceCount`.
    pub count: u32,
    /// `VolumeSizeInGB` of each.
    pub volume_gib: u32,
}

/// One thing wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path of the field, as in the request; empty for the request as a whole.
    pub path: String,
    /// What is wrong and what is allowed, the path included.
    pub message: String,
}

/// The code of an error, as AWS names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// The request says something that is not allowed.
    ValidationException,
    /// The body is not the JSON of a request.
    SerializationException,
}

impl ErrorCode {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ValidationException => "ValidationException",
            Self::SerializationException => "SerializationException",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a request is refused. Answer it with HTTP status 400, `code` and `message`; nothing is to be stored. The same
/// request will always be refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RequestError {
    /// Code of the answer.
    pub code: ErrorCode,
    /// Message of the answer.
    pub message: String,
    /// What the message is made of, for programs; empty for a [`ErrorCode::SerializationException`].
    pub violations: Vec<Violation>,
}

/// A body as JSON, with the bounds of a request.
pub(crate) fn read_body(body: &[u8]) -> Result<Value, RequestError> {
    json::read(body).map_err(RequestError::serialization)
}

impl RequestError {
    /// The error for one wrong field, or for several.
    pub fn validation(violations: Vec<Violation>) -> Self {
        constraint::report(violations, 0)
    }

    /// The error for one wrong field: `message` says what is wrong and what is allowed.
    pub fn field(path: &str, message: &str) -> Self {
        let message = format!("{message} (at '{path}')");
        Self::validation(vec![Violation { path: path.to_owned(), message }])
    }

    fn serialization(message: String) -> Self {
        Self { code: ErrorCode::SerializationException, message, violations: Vec::new() }
    }
}

impl Request {
    /// Reads and checks a request.
    pub fn parse(body: &[u8]) -> Result<Self, RequestError> {
        let body = json::read(body).map_err(RequestError::serialization)?;
        Self::check(body)
    }

    /// Checks a request that is JSON already.
    pub fn check(mut body: Value) -> Result<Self, RequestError> {
        lift::lift(&mut body);
        let mut request = Self { body };
        constraint::check(&request)?;
        json::drop_nulls(&mut request.body);
        Ok(request)
    }

    /// Takes back what [`Request::body`] gave and was stored, without checking it again: a tuning keeps the rules
    /// that it was submitted under.
    pub fn from_stored(body: Value) -> Self {
        Self { body }
    }

    /// The JSON, to be stored.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// The value at a path of member names, if it is there and not null.
    pub fn at(&self, path: &str) -> Option<&Value> {
        path.split('.')
            .try_fold(&self.body, |value, member| value.get(member))
            .filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.at(path).and_then(Value::as_str)
    }

    pub(crate) fn integer(&self, path: &str) -> Option<i64> {
        self.at(path).and_then(Value::as_i64)
    }

    /// `KeepAlivePeriodInSeconds`: how long the instances of a job are kept for the next one; 0 = not at all.
    pub fn keep_alive_seconds(&self) -> u64 {
        let seconds = self.integer("TrainingJobDefinition.ResourceConfig.KeepAlivePeriodInSeconds");
        seconds.and_then(|seconds| u64::try_from(seconds).ok()).filter(|_| !self.is_spot()).unwrap_or(0)
    }

    pub(crate) fn count(&self, path: &str) -> Option<u32> {
        self.integer(path).and_then(|number| u32::try_from(number).ok())
    }

    pub(crate) fn seconds(&self, path: &str) -> Option<u64> {
        self.at(path).and_then(Value::as_u64)
    }

    pub(crate) fn flag(&self, path: &str) -> bool {
        self.at(path).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(crate) fn list(&self, path: &str) -> &[Value] {
        self.at(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn object(&self, path: &str) -> Option<&Map<String, Value>> {
        self.at(path).and_then(Value::as_object)
    }

    /// `HyperParameterTuningJobName`.
    pub fn name(&self) -> &str {
        self.text("HyperParameterTuningJobName").unwrap_or_default()
    }

    /// `Strategy`.
    pub fn strategy(&self) -> &str {
        self.text("HyperParameterTuningJobConfig.Strategy").unwrap_or_default()
    }

    /// Whether the strategy is Hyperband.
    pub fn is_hyperband(&self) -> bool {
        self.strategy() == "Hyperband"
    }

    /// Name of the objective metric.
    pub fn objective_metric(&self) -> &str {
        self.text("HyperParameterTuningJobConfig.HyperParameterTuningJobObjective.MetricName")
            .unwrap_or_default()
    }

    /// Direction of the objective metric.
    pub fn objective(&self) -> Objective {
        match self.text("HyperParameterTuningJobConfig.HyperParameterTuningJobObjective.Type") {
            Some("Minimize") => Objective::Minimize,
            _ => Objective::Maximize,
        }
    }

    /// `MinResource`, 1 if absent.
    pub fn min_resource(&self) -> u32 {
        self.count(&config("StrategyConfig.HyperbandStrategyConfig.MinResource")).unwrap_or(1)
    }

    /// `MaxResource`, or what the static hyperparameters or the built-in algorithm tell of it; `None` if they do not, or
    /// for another strategy than Hyperband.
    pub fn max_resource(&self) -> Option<u32> {
        if !self.is_hyperband() {
            return None;
        }
        let given = self.count(&config("StrategyConfig.HyperbandStrategyConfig.MaxResource"));
        given
            .or_else(|| self.inferred_max_resource().map(|(_, number)| number))
            .or_else(|| self.default_max_resource().map(|(_, number)| number))
    }

    /// The static hyperparameter that tells the largest resource, and the number it tells.
    pub(crate) fn inferred_max_resource(&self) -> Option<(&str, u32)> {
        let own = self.built_in().and_then(|algorithm| algorithm.resource).map(|resource| resource.name);
        let names = self.resource_hyperparameter().into_iter().chain(RESOURCE_NAMES.iter().copied());
        names.chain(own).find_map(|name| Some((name, self.static_epochs(name)?)))
    }

    /// The number in a static hyperparameter that sets epochs.
    pub fn static_epochs(&self, name: &str) -> Option<u32> {
        // A framework estimator sends each value as JSON, so a text arrives in quotes.
        let value = self.static_hyperparameter(name)?.trim().trim_matches('"');
        value.parse().ok().filter(|number| *number > 0)
    }

    /// The hyperparameter of a built-in algorithm that sets the epochs and that the request leaves at its default, and
    /// that default.
    pub(crate) fn default_max_resource(&self) -> Option<(&'static str, u32)> {
        let algorithm = self.built_in().filter(|algorithm| algorithm.tells_while_running())?;
        let resource = algorithm.resource?;
        let said = self.is_tuned(resource.name) || self.static_hyperparameter(resource.name).is_some();
        resource.default.filter(|_| !said).map(|default| (resource.name, default))
    }

    /// `ReductionFactor`, 3 if absent.
    pub fn reduction_factor(&self) -> u32 {
        self.count("Controller.ReductionFactor").unwrap_or(3)
    }

    /// The plan of brackets and rungs; `None` when its numbers allow none.
    pub fn plan(&self) -> Option<Plan> {
        if self.is_hyperband() {
            Plan::hyperband(self.min_resource(), self.max_resource()?, self.reduction_factor()).ok()
        } else {
            Some(Plan::without_stopping(None))
        }
    }

    /// `MaxNumberOfTrainingJobs`, or one full set of brackets; where trials are promoted, each promotion is a job.
    pub fn max_jobs(&self) -> u32 {
        let given = self.count(&config("ResourceLimits.MaxNumberOfTrainingJobs"));
        let set = |plan: Plan| if self.promotes() { plan.jobs() } else { plan.trials() };
        let set = || self.plan().map(set).map(|jobs| jobs.saturating_add(u32::from(self.refits())));
        given.or_else(set).unwrap_or(1).min(MAX_TRAINING_JOBS)
    }

    /// Whether the best configuration is trained once more at the end.
    pub fn refits(&self) -> bool {
        self.text("Controller.Refit") == Some("Best")
    }

    /// Whether trials are promoted from rung to rung in jobs of their own, instead of being stopped.
    pub fn promotes(&self) -> bool {
        self.is_hyperband() && self.text("Controller.RungExecution") == Some("Promote")
    }

    /// `MaxParallelTrainingJobs`.
    pub fn max_parallel(&self) -> u32 {
        self.count(&config("ResourceLimits.MaxParallelTrainingJobs")).unwrap_or(1)
    }

    /// A static hyperparameter's value.
    pub fn static_hyperparameter(&self, name: &str) -> Option<&str> {
        self.static_hyperparameters()?.get(name).and_then(Value::as_str)
    }

    pub(crate) fn static_hyperparameters(&self) -> Option<&Map<String, Value>> {
        self.object("TrainingJobDefinition.StaticHyperParameters")
    }

    /// The hyperparameter that each training job gets with its number of epochs: `Controller.ResourceHyperParameter`,
    /// else that of a built-in algorithm. What the request tunes, or sets itself for jobs that run to their end, is left
    /// as it is; a promoted trial's jobs end at their rungs, so there it is set.
    pub fn resource_hyperparameter(&self) -> Option<&str> {
        self.text("Controller.ResourceHyperParameter").or_else(|| {
            let algorithm = self.built_in().filter(|algorithm| algorithm.tells_while_running())?;
            let name = algorithm.resource?.name;
            let promotes = self.text("Controller.RungExecution") == Some("Promote");
            let set = self.static_hyperparameter(name).is_some() && !promotes;
            (!set && !self.is_tuned(name)).then_some(name)
        })
    }

    /// Whether a range of the request has this name.
    pub fn is_tuned(&self, name: &str) -> bool {
        let lists = ["IntegerParameterRanges", "ContinuousParameterRanges", "CategoricalParameterRanges"];
        let mut ranges = lists.iter().flat_map(|list| self.list(&config(&format!("ParameterRanges.{list}"))));
        ranges.any(|range| range.get("Name").and_then(Value::as_str) == Some(name))
    }

    /// What a job may run on, in the order of preference: the entries of `InstanceConfigs`, else the flat fields of either
    /// resource configuration. Never empty.
    pub fn instance_choices(&self) -> Vec<InstanceChoice<'_>> {
        let configs = self.list("TrainingJobDefinition.HyperParameterTuningResourceConfig.InstanceConfigs");
        let count = |index: usize, member: &str| {
            let number = self.resources(index, member).and_then(Value::as_u64);
            number.and_then(|number| u32::try_from(number).ok())
        };
        let choice = |index: usize| InstanceChoice {
            instance_type: self.resources(index, "InstanceType").and_then(Value::as_str).unwrap_or_default(),
            count: count(index, "InstanceCount").unwrap_or(1),
            volume_gib: count(index, "VolumeSizeInGB").unwrap_or(0),
        };
        (0..configs.len().max(1)).map(choice).collect()
    }

    /// Path of the field that names the instance type of choice `index`.
    pub fn instance_type_path(&self, index: usize) -> String {
        let tuning = "TrainingJobDefinition.HyperParameterTuningResourceConfig";
        if !self.list(&format!("{tuning}.InstanceConfigs")).is_empty() {
            format!("{tuning}.InstanceConfigs[{index}].InstanceType")
        } else if self.at(tuning).is_some() {
            format!("{tuning}.InstanceType")
        } else {
            "TrainingJobDefinition.ResourceConfig.InstanceType".to_owned()
        }
    }

    /// What a job runs on: an entry of `InstanceConfigs`, else the flat fields of either resource configuration.
    fn resources(&self, index: usize, member: &str) -> Option<&Value> {
        let tuning = self.at("TrainingJobDefinition.HyperParameterTuningResourceConfig");
        let configured = tuning.and_then(|tuning| tuning.get("InstanceConfigs")?.get(index)?.get(member));
        configured
            .or_else(|| tuning.and_then(|tuning| tuning.get(member)))
            .or_else(|| self.at("TrainingJobDefinition.ResourceConfig")?.get(member))
            .filter(|value| !value.is_null())
    }

    /// Instance type of a job: the first choice.
    pub fn instance_type(&self) -> &str {
        self.resources(0, "InstanceType").and_then(Value::as_str).unwrap_or_default()
    }

    /// Instances of a job.
    pub fn instance_count(&self) -> u32 {
        let count = self.resources(0, "InstanceCount").and_then(Value::as_u64);
        count.and_then(|count| u32::try_from(count).ok()).unwrap_or(1)
    }

    /// Volume of each instance.
    pub fn volume_gib(&self) -> u32 {
        let size = self.resources(0, "VolumeSizeInGB").and_then(Value::as_u64);
        size.and_then(|size| u32::try_from(size).ok()).unwrap_or(0)
    }

    /// Whether jobs run on managed spot instances.
    pub fn is_spot(&self) -> bool {
        self.flag("TrainingJobDefinition.EnableManagedSpotTraining")
    }

    /// `StoppingCondition.MaxRuntimeInSeconds` of a job, a day if absent.
    pub fn max_runtime_seconds(&self) -> u64 {
        self.seconds("TrainingJobDefinition.StoppingCondition.MaxRuntimeInSeconds")
            .unwrap_or(DEFAULT_RUNTIME_SECONDS)
    }

    /// `StoppingCondition.MaxWaitTimeInSeconds` of a job.
    pub fn max_wait_seconds(&self) -> Option<u64> {
        self.seconds("TrainingJobDefinition.StoppingCondition.MaxWaitTimeInSeconds")
    }

    /// `CheckpointConfig.S3Uri` as the user gave it: the prefix below which each trial has its own.
    pub fn checkpoint_uri(&self) -> Option<&str> {
        self.text("TrainingJobDefinition.CheckpointConfig.S3Uri")
    }

    /// The host whose log counts.
    pub fn metric_host(&self) -> &str {
        self.text("Controller.MetricHost").unwrap_or("algo-1")
    }

    /// The user's tags that training jobs get.
    pub(crate) fn job_tags(&self) -> impl Iterator<Item = &Value> {
        let is_ours = |tag: &Value| tag.get("Key").and_then(Value::as_str).is_some_and(is_tag);
        self.list("Tags").iter().filter(move |tag| !is_ours(tag))
    }

    /// The user's tags by key.
    pub fn tags(&self) -> BTreeMap<String, String> {
        let text = |tag: &Value, member: &str| tag.get(member).and_then(Value::as_str).map(str::to_owned);
        self.job_tags().filter_map(|tag| Some((text(tag, "Key")?, text(tag, "Value")?))).collect()
    }
}

/// Path of a member of `HyperParameterTuningJobConfig`.
fn config(member: &str) -> String {
    format!("HyperParameterTuningJobConfig.{member}")
}

#[cfg(test)]
mod tests;
