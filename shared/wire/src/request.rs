//! The request: the JSON of `CreateHyperParameterTuningJob` and one more object, `Controller`.
//!
//! A [`Request`] holds the JSON as the client sent it, for storage and for Describe. Only fields that tags or variables
//! set are copied into `Controller`. A request from [`Request::parse`] satisfies every row and rule of
//! [`crate::constraint`]; one from [`Request::from_stored`] satisfied those of the release that accepted it. The
//! accessors never fail: a field that is missing or has the wrong type counts as absent or takes its default.

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
pub(crate) use lift::{Source, append_sources, is_controller_tag, violations as lift_violations};
pub use metric::{PatternError, compile_pattern};
pub(crate) use metric::{SMALL_BYTES, compile_measured, shortened};
pub(crate) use ranges::parameters;
pub(crate) use usd::decimal;
pub use usd::{micro_usd_down, micro_usd_up, usd};

/// Maximum size of a request body, in bytes.
pub const MAX_BODY_BYTES: usize = 1 << 20;
/// Maximum nesting of a request body, in levels. The deepest field of the constraint table is at level 8.
pub const MAX_DEPTH: usize = 32;
/// Number of tags that the controller adds to each training job.
pub const OWN_TAGS: usize = 3;
/// The hyperparameter that the service sets to the name of the objective metric.
pub const OBJECTIVE_HYPERPARAMETER: &str = "_tuning_objective_metric";
/// Static hyperparameters from which `MaxResource` is inferred, in this order: the five of AMT, then more common names.
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

/// A validated request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    body: Value,
}

/// One choice of instances for a training job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceChoice<'a> {
    /// `InstanceType`.
    pub instance_type: &'a str,
    /// `InstanceCount`.
    pub count: u32,
    /// `VolumeSizeInGB`: the volume of each instance, in GiB.
    pub volume_gib: u32,
}

/// One violation in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path of the field, as in the request; empty for the request as a whole.
    pub path: String,
    /// The message, with the path, the invalid value, the expectation and a fix.
    pub message: String,
}

/// The code of an error, as AWS names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// The request violates a constraint.
    ValidationException,
    /// The body is not a JSON object.
    SerializationException,
}

impl ErrorCode {
    /// Returns the name in the API.
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

/// Why a request is rejected. Return it with HTTP status 400, `code` and `message`, and store nothing. A retry of the
/// same request fails in the same way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RequestError {
    /// Error code of the response.
    pub code: ErrorCode,
    /// Message of the response.
    pub message: String,
    /// The listed violations, for programs. Empty for [`ErrorCode::SerializationException`].
    pub violations: Vec<Violation>,
}

/// Reads a body as JSON within the bounds of a request.
pub(crate) fn read_body(body: &[u8]) -> Result<Value, RequestError> {
    json::read(body).map_err(RequestError::serialization)
}

impl RequestError {
    /// Returns the error for one or more violations.
    pub fn validation(violations: Vec<Violation>) -> Self {
        constraint::report(violations, 0)
    }

    /// Returns the error for one field. `message` names the invalid value, the expectation and a fix; the path is
    /// appended.
    pub fn field(path: &str, message: &str) -> Self {
        let message = format!("{message} (at '{path}')");
        Self::validation(vec![Violation { path: path.to_owned(), message }])
    }

    fn serialization(message: String) -> Self {
        Self { code: ErrorCode::SerializationException, message, violations: Vec::new() }
    }
}

impl Request {
    /// Reads and validates a request.
    pub fn parse(body: &[u8]) -> Result<Self, RequestError> {
        let body = json::read(body).map_err(RequestError::serialization)?;
        Self::check(body)
    }

    /// Validates a request that is already JSON.
    pub fn check(mut body: Value) -> Result<Self, RequestError> {
        lift::lift(&mut body);
        let mut request = Self { body };
        constraint::check(&request)?;
        json::drop_nulls(&mut request.body);
        Ok(request)
    }

    /// Restores a request from the stored [`Request::body`]. It is not validated again, since a tuning job keeps the
    /// rules of the release that accepted it.
    pub fn from_stored(body: Value) -> Self {
        Self { body }
    }

    /// Returns the JSON for storage.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// Returns the value at a path of member names, unless it is missing or null.
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

    /// Returns `KeepAlivePeriodInSeconds`, the seconds for which instances are kept for the next job; 0 = not kept.
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

    /// Returns `HyperParameterTuningJobName`.
    pub fn name(&self) -> &str {
        self.text("HyperParameterTuningJobName").unwrap_or_default()
    }

    /// Returns `Strategy`.
    pub fn strategy(&self) -> &str {
        self.text("HyperParameterTuningJobConfig.Strategy").unwrap_or_default()
    }

    /// Returns whether the strategy is Hyperband.
    pub fn is_hyperband(&self) -> bool {
        self.strategy() == "Hyperband"
    }

    /// Returns the name of the objective metric.
    pub fn objective_metric(&self) -> &str {
        self.text("HyperParameterTuningJobConfig.HyperParameterTuningJobObjective.MetricName")
            .unwrap_or_default()
    }

    /// Returns the direction of the objective metric.
    pub fn objective(&self) -> Objective {
        match self.text("HyperParameterTuningJobConfig.HyperParameterTuningJobObjective.Type") {
            Some("Minimize") => Objective::Minimize,
            _ => Objective::Maximize,
        }
    }

    /// Returns `MinResource`; the default is 1.
    pub fn min_resource(&self) -> u32 {
        self.count(&config("StrategyConfig.HyperbandStrategyConfig.MinResource")).unwrap_or(1)
    }

    /// Returns `MaxResource`, else the number from the static hyperparameters, else the built-in algorithm's default.
    /// `None` if none of them has a number, or if the strategy is not Hyperband.
    pub fn max_resource(&self) -> Option<u32> {
        if !self.is_hyperband() {
            return None;
        }
        let given = self.count(&config("StrategyConfig.HyperbandStrategyConfig.MaxResource"));
        given
            .or_else(|| self.inferred_max_resource().map(|(_, number)| number))
            .or_else(|| self.default_max_resource().map(|(_, number)| number))
    }

    /// Returns the static hyperparameter from which `MaxResource` is inferred, and its number.
    pub(crate) fn inferred_max_resource(&self) -> Option<(&str, u32)> {
        let own = self.built_in().and_then(|algorithm| algorithm.resource).map(|resource| resource.name);
        let names = self.resource_hyperparameter().into_iter().chain(RESOURCE_NAMES.iter().copied());
        names.chain(own).find_map(|name| Some((name, self.static_epochs(name)?)))
    }

    /// Returns the number of epochs in a static hyperparameter.
    pub fn static_epochs(&self, name: &str) -> Option<u32> {
        // Framework estimators send each value as JSON, so a string arrives in quotes.
        let value = self.static_hyperparameter(name)?.trim().trim_matches('"');
        value.parse().ok().filter(|number| *number > 0)
    }

    /// Returns the hyperparameter that sets the epochs of the built-in algorithm, with its default value, if the
    /// request does not set it.
    pub(crate) fn default_max_resource(&self) -> Option<(&'static str, u32)> {
        let algorithm = self.built_in().filter(|algorithm| algorithm.emits_while_running())?;
        let resource = algorithm.resource?;
        let given = self.is_tuned(resource.name) || self.static_hyperparameter(resource.name).is_some();
        resource.default.filter(|_| !given).map(|default| (resource.name, default))
    }

    /// Returns `ReductionFactor`; the default is 3.
    pub fn reduction_factor(&self) -> u32 {
        self.count("Controller.ReductionFactor").unwrap_or(3)
    }

    /// Returns the plan of brackets and rungs, or `None` if the resources or the reduction factor are invalid.
    pub fn plan(&self) -> Option<Plan> {
        if self.is_hyperband() {
            Plan::hyperband(self.min_resource(), self.max_resource()?, self.reduction_factor()).ok()
        } else {
            Some(Plan::without_stopping(None))
        }
    }

    /// Returns `MaxNumberOfTrainingJobs`. The default is the number of jobs of one full set of brackets, in which each
    /// promotion is one job, plus one for the refit.
    pub fn max_jobs(&self) -> u32 {
        let given = self.count(&config("ResourceLimits.MaxNumberOfTrainingJobs"));
        let set = |plan: Plan| if self.promotes() { plan.jobs() } else { plan.trials() };
        let set = || self.plan().map(set).map(|jobs| jobs.saturating_add(u32::from(self.refits())));
        given.or_else(set).unwrap_or(1).min(MAX_TRAINING_JOBS)
    }

    /// Returns whether the best configuration is trained again at the end.
    pub fn refits(&self) -> bool {
        self.text("Controller.Refit") == Some("Best")
    }

    /// Returns whether each promotion of a trial to the next rung starts a new job, instead of jobs being stopped at a
    /// rung.
    pub fn promotes(&self) -> bool {
        self.is_hyperband() && self.text("Controller.RungExecution") == Some("Promote")
    }

    /// Returns `MaxParallelTrainingJobs`.
    pub fn max_parallel(&self) -> u32 {
        self.count(&config("ResourceLimits.MaxParallelTrainingJobs")).unwrap_or(1)
    }

    /// Returns the value of a static hyperparameter.
    pub fn static_hyperparameter(&self, name: &str) -> Option<&str> {
        self.static_hyperparameters()?.get(name).and_then(Value::as_str)
    }

    pub(crate) fn static_hyperparameters(&self) -> Option<&Map<String, Value>> {
        self.object("TrainingJobDefinition.StaticHyperParameters")
    }

    /// Returns the hyperparameter in which each training job gets its number of epochs:
    /// `Controller.ResourceHyperParameter`, else that of the built-in algorithm. The latter is `None` if the request
    /// tunes it, or sets it and does not use `RungExecution` `Promote`, whose jobs must end at their rungs.
    pub fn resource_hyperparameter(&self) -> Option<&str> {
        self.text("Controller.ResourceHyperParameter").or_else(|| {
            let algorithm = self.built_in().filter(|algorithm| algorithm.emits_while_running())?;
            let name = algorithm.resource?.name;
            let promotes = self.text("Controller.RungExecution") == Some("Promote");
            let set = self.static_hyperparameter(name).is_some() && !promotes;
            (!set && !self.is_tuned(name)).then_some(name)
        })
    }

    /// Returns whether a range of the request has this name.
    pub fn is_tuned(&self, name: &str) -> bool {
        let lists = ["IntegerParameterRanges", "ContinuousParameterRanges", "CategoricalParameterRanges"];
        let mut ranges = lists.iter().flat_map(|list| self.list(&config(&format!("ParameterRanges.{list}"))));
        ranges.any(|range| range.get("Name").and_then(Value::as_str) == Some(name))
    }

    /// Returns the choices of instances in order of preference: the entries of `InstanceConfigs`, else the flat fields
    /// of either resource configuration. Never empty.
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

    /// Returns the path of the field with the instance type of choice `index`.
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

    /// Returns a field of entry `index` of `InstanceConfigs`, else of the flat fields of either resource configuration.
    fn resources(&self, index: usize, member: &str) -> Option<&Value> {
        let tuning = self.at("TrainingJobDefinition.HyperParameterTuningResourceConfig");
        let configured = tuning.and_then(|tuning| tuning.get("InstanceConfigs")?.get(index)?.get(member));
        configured
            .or_else(|| tuning.and_then(|tuning| tuning.get(member)))
            .or_else(|| self.at("TrainingJobDefinition.ResourceConfig")?.get(member))
            .filter(|value| !value.is_null())
    }

    /// Returns the instance type of the first choice.
    pub fn instance_type(&self) -> &str {
        self.resources(0, "InstanceType").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the number of instances of the first choice.
    pub fn instance_count(&self) -> u32 {
        let count = self.resources(0, "InstanceCount").and_then(Value::as_u64);
        count.and_then(|count| u32::try_from(count).ok()).unwrap_or(1)
    }

    /// Returns the volume of each instance of the first choice, in GiB.
    pub fn volume_gib(&self) -> u32 {
        let size = self.resources(0, "VolumeSizeInGB").and_then(Value::as_u64);
        size.and_then(|size| u32::try_from(size).ok()).unwrap_or(0)
    }

    /// Returns whether jobs run on managed spot instances.
    pub fn is_spot(&self) -> bool {
        self.flag("TrainingJobDefinition.EnableManagedSpotTraining")
    }

    /// Returns `StoppingCondition.MaxRuntimeInSeconds`; the default is one day.
    pub fn max_runtime_seconds(&self) -> u64 {
        self.seconds("TrainingJobDefinition.StoppingCondition.MaxRuntimeInSeconds")
            .unwrap_or(DEFAULT_RUNTIME_SECONDS)
    }

    /// Returns `StoppingCondition.MaxWaitTimeInSeconds`.
    pub fn max_wait_seconds(&self) -> Option<u64> {
        self.seconds("TrainingJobDefinition.StoppingCondition.MaxWaitTimeInSeconds")
    }

    /// Returns `CheckpointConfig.S3Uri` of the request. Each trial has its own prefix below it.
    pub fn checkpoint_uri(&self) -> Option<&str> {
        self.text("TrainingJobDefinition.CheckpointConfig.S3Uri")
    }

    /// Returns `MetricHost`, the host whose log contains the objective; the default is `algo-1`.
    pub fn metric_host(&self) -> &str {
        self.text("Controller.MetricHost").unwrap_or("algo-1")
    }

    /// Returns the user's tags that training jobs get.
    pub(crate) fn job_tags(&self) -> impl Iterator<Item = &Value> {
        let is_controller =
            |tag: &Value| tag.get("Key").and_then(Value::as_str).is_some_and(is_controller_tag);
        self.list("Tags").iter().filter(move |tag| !is_controller(tag))
    }

    /// Returns the user's tags by key.
    pub fn tags(&self) -> BTreeMap<String, String> {
        let text = |tag: &Value, member: &str| tag.get(member).and_then(Value::as_str).map(str::to_owned);
        self.job_tags().filter_map(|tag| Some((text(tag, "Key")?, text(tag, "Value")?))).collect()
    }
}

/// Returns the path of a member of `HyperParameterTuningJobConfig`.
fn config(member: &str) -> String {
    format!("HyperParameterTuningJobConfig.{member}")
}

#[cfg(test)]
mod tests;
