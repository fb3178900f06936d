//! The request: the JSON of `CreateHyperParameterTuningJob` and one more object, `Controller`.
//!
//! A [`Request`] holds the JSON as the client sent it, for storage and for Describe. Only fields that tags or variables
//! set are copied into `Controller`. A request from [`Request::parse`] satisfies every row and rule of
//! [`crate::constraint`]; one from [`Request::from_stored`] satisfied those of the release that accepted it. The
//! accessors never fail: a field that is missing or has the wrong type counts as absent or takes its default.

use std::collections::BTreeMap;

use hyperband::plan::{Plan, PlanError, strictness};
use search::Space;
use serde_json::{Map, Value};
use tuning::definition::Objective;
use tuning::unit::limits::MAX_TRAINING_JOBS;

use crate::names::TAG_PREFIX;

mod defaults;
mod define;
mod definitions;
mod error;
mod fields;
mod initial;
mod instances;
mod job;
mod json;
mod local;
mod metric;
mod parse;
mod ranges;
mod rungs;
mod usd;
mod warm_start;

use fields::{Field, Fields};

pub use defaults::DefaultTags;
pub(crate) use defaults::TAGS_MAX;
pub use define::{PriceAnswer, excess_lines};
pub use definitions::job_definitions_mut;
pub(crate) use definitions::{LIST, MOVED};
pub use error::{ErrorBody, ErrorCode, MAX_VIOLATIONS, RequestError, Violation, name_taken};
pub use fields::Strategy;
pub(crate) use fields::{
    Channel, CompleteOnConvergence, Distribution, EarlyStopping, EpochNumbering, Prefer, Refit, SpotFallback,
    Tag,
};
pub use instances::InstanceChoice;
pub(crate) use job::times;
pub use job::{DEFINITION_VARIABLE, TrainingJob};
pub(crate) use json::value as json_value;
pub use json::{JsonError, parse as parse_json};
pub use local::{LOCAL_INSTANCE_TYPE, default_regex, required_by_stack};
pub use metric::shortened;
pub use metric::{NUMBER_PATTERN, PatternError, compile_pattern};
pub(crate) use metric::{SMALL_BYTES, compile_measured};
pub(crate) use ranges::parameters;
pub use rungs::{Configurations, RungExecution, RungsWhy};
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

pub(crate) const DEFINITION: &str = "TrainingJobDefinition";
const DEFAULT_RUNTIME_SECONDS: u64 = 86_400;

/// The reduction factor of [`Request::compares_late`].
const LATE_FACTOR: u32 = 2;

/// A validated request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    body: Value,
    /// With a list of training job definitions, the request of the first; else `None`.
    first: Option<Value>,
    fields: Fields,
    /// The requests of the further definitions.
    others: Vec<Self>,
}

/// The settings of Hyperband.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hyperband {
    /// `MinResource`; the default is 1.
    pub min_resource: u32,
    /// `MaxResource`, else the number from the static hyperparameters, else the built-in algorithm's default. `None` if
    /// none of them has a number.
    pub max_resource: Option<u32>,
    /// `ReductionFactor`; the default is 3.
    pub reduction_factor: u32,
}

impl Hyperband {
    /// Returns the plan of brackets and rungs, or why the numbers make none; `None` without `MaxResource`.
    pub fn plan(self) -> Option<Result<Plan, PlanError>> {
        Some(Plan::hyperband(self.min_resource, self.max_resource?, self.reduction_factor))
    }
}

/// Reads a body as JSON within the bounds of a request.
pub fn read_body(body: &[u8]) -> Result<Value, RequestError> {
    json::parse(body).map_err(|error| RequestError::serialization(error.to_string()))
}

impl Request {
    /// Restores a request from the stored [`Request::body`]. It is not validated again, since a tuning job keeps the
    /// rules of the release that accepted it.
    pub fn from_stored(body: Value) -> Self {
        let mut definitions = definitions::split(&body).into_iter();
        let first = definitions.next();
        let fields = Fields::from_member(Some(first.as_ref().unwrap_or(&body)));
        Self { fields, first, others: definitions.map(Self::from_stored).collect(), body }
    }

    /// Returns the JSON for storage.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// Returns the fields, for validation.
    pub(crate) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Returns the value at a path of member names, unless it is missing or null. With a list of training job definitions,
    /// `TrainingJobDefinition` is the first of them.
    pub fn at(&self, path: &str) -> Option<&Value> {
        json::at(self.first.as_ref().unwrap_or(&self.body), path)
    }

    /// Like [`Request::at`], in the request as it was sent.
    pub(crate) fn at_whole(&self, path: &str) -> Option<&Value> {
        json::at(&self.body, path)
    }

    pub(crate) fn list(&self, path: &str) -> &[Value] {
        self.at(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn object(&self, path: &str) -> Option<&Map<String, Value>> {
        self.at(path).and_then(Value::as_object)
    }

    /// Returns `HyperParameterTuningJobName`.
    pub fn name(&self) -> &str {
        self.fields.name.as_deref().unwrap_or_default()
    }

    /// Returns `Strategy`.
    pub fn strategy(&self) -> Strategy {
        self.fields.config.strategy.unwrap_or_default()
    }

    /// Returns the settings of Hyperband; `None` for another strategy.
    pub fn hyperband(&self) -> Option<Hyperband> {
        self.strategy().compares_trials().then(|| self.hyperband_settings())
    }

    fn hyperband_settings(&self) -> Hyperband {
        Hyperband {
            min_resource: self.fields.config.settings.hyperband.min_resource.unwrap_or(1),
            max_resource: self.max_resource(),
            reduction_factor: self.fields.controller.reduction_factor.unwrap_or(3),
        }
    }

    /// Returns whether the controller chooses one bracket with a high first rung ([`Plan::highest`]). That is where the
    /// sampler learns and the request sets no `ReductionFactor`.
    pub fn compares_late(&self) -> bool {
        self.strategy().compares_trials()
            && self.sampler().learns()
            && self.fields.controller.reduction_factor.is_none()
    }

    /// Returns the name of the objective metric.
    pub fn objective_metric(&self) -> &str {
        self.fields.config.objective.metric_name.as_deref().unwrap_or_default()
    }

    /// Returns the direction of the objective metric.
    pub fn objective(&self) -> Objective {
        self.fields.config.objective.direction.unwrap_or(Objective::Maximize)
    }

    fn max_resource(&self) -> Option<u32> {
        let given = self.fields.config.settings.hyperband.max_resource;
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

    /// Returns the plan of brackets and rungs, as far as the number of training jobs fills it, or `None` if the
    /// resources or the reduction factor are invalid.
    pub fn plan(&self) -> Option<Plan> {
        self.whole_plan().map(|plan| self.fitting(&plan))
    }

    /// Returns the plan with all brackets.
    pub fn whole_plan(&self) -> Option<Plan> {
        match self.hyperband() {
            Some(hyperband) => hyperband.plan()?.ok(),
            None => Some(Plan::without_stopping()),
        }
    }

    /// Returns whether the request sets `Prefer`.
    pub fn is_preference_given(&self) -> bool {
        self.fields.controller.prefer.is_some()
    }

    /// Returns the part of `plan` that the training jobs fill. The refit is not one of them.
    pub(crate) fn fitting(&self, plan: &Plan) -> Plan {
        let search = self.max_jobs().saturating_sub(u32::from(self.refits()));
        let late = || Plan::hyperband(plan.min_resource(), plan.max_resource(), LATE_FACTOR).ok();
        match late().filter(|_| self.compares_late()) {
            Some(late) => {
                let strictness = match self.fields.controller.prefer {
                    Some(Prefer::Value) => 0,
                    Some(Prefer::Cost) => 100,
                    None => strictness(search),
                };
                late.highest(search, strictness)
            }
            None => plan.fitting(search, self.may_promote()),
        }
    }

    /// Returns `MaxNumberOfTrainingJobs` as the request sets it.
    pub fn given_max_jobs(&self) -> Option<u32> {
        self.fields.config.limits.jobs
    }

    /// Returns `MaxNumberOfTrainingJobs`. The default is the number of jobs of one full set of brackets, in which each
    /// promotion is one job if trials may be promoted, or of combinations of a grid, plus one for the refit.
    pub fn max_jobs(&self) -> u32 {
        let set = |plan: Plan| if self.may_promote() { plan.jobs() } else { plan.trials() };
        let set = || {
            if self.strategy() == Strategy::Grid {
                return self.combinations().map(|all| u32::try_from(all).unwrap_or(u32::MAX));
            }
            self.whole_plan().map(set)
        };
        let set = || set().map(|jobs| jobs.saturating_add(u32::from(self.refits())));
        self.given_max_jobs().or_else(set).unwrap_or(1).min(MAX_TRAINING_JOBS)
    }

    /// Returns the search space; `None` if the ranges are invalid.
    pub fn space(&self) -> Option<Space> {
        let (parameters, wrong) = parameters(self);
        Space::new(parameters).ok().filter(|_| wrong.is_empty())
    }

    /// Returns the number of configurations of the ranges; `None` if it is unlimited or the ranges are invalid.
    pub(crate) fn combinations(&self) -> Option<u64> {
        self.space()?.cardinality()
    }

    /// Returns `RandomSeed`.
    pub fn random_seed(&self) -> Option<u64> {
        self.fields.config.random_seed
    }

    /// Returns whether a configuration is trained again at the end.
    pub fn refits(&self) -> bool {
        self.refit() != Refit::None
    }

    /// Returns which configuration is trained again at the end.
    pub(crate) fn refit(&self) -> Refit {
        self.fields.controller.refit.unwrap_or(Refit::None)
    }

    /// Returns `MaxParallelTrainingJobs`.
    pub fn max_parallel(&self) -> u32 {
        self.fields.config.limits.parallel.unwrap_or(1)
    }

    /// Returns `MaxInstances`.
    pub fn max_instances(&self) -> Option<u32> {
        self.fields.controller.max_instances
    }

    /// Returns the value of a static hyperparameter.
    pub fn static_hyperparameter(&self, name: &str) -> Option<&str> {
        self.static_hyperparameters()?.get(name).and_then(Value::as_str)
    }

    pub(crate) fn static_hyperparameters(&self) -> Option<&Map<String, Value>> {
        self.fields.job.static_hyperparameters.as_ref()
    }

    /// Returns the hyperparameter in which each training job gets its number of epochs:
    /// `Controller.ResourceHyperParameter`, else that of the built-in algorithm. The latter is `None` if the request
    /// tunes it, or sets it and does not ask for `RungExecution` `Promote`, whose jobs must end at their rungs.
    pub fn resource_hyperparameter(&self) -> Option<&str> {
        self.fields.controller.resource_hyperparameter.as_deref().or_else(|| {
            let algorithm = self.built_in().filter(|algorithm| algorithm.emits_while_running())?;
            let name = algorithm.resource?.name;
            let set = !self.is_promotion_given() && self.static_hyperparameter(name).is_some();
            (!set && !self.is_tuned(name)).then_some(name)
        })
    }

    /// Returns whether a range of the request has this name.
    pub fn is_tuned(&self, name: &str) -> bool {
        let ranges = &self.fields.config.ranges;
        let mut all = ranges.integer.iter().chain(&ranges.continuous).chain(&ranges.categorical);
        all.any(|range| range.name.as_deref() == Some(name))
    }

    /// Returns `TrainingImage`, else `AlgorithmName`, with its path.
    pub fn image(&self) -> (&'static str, &str) {
        let algorithm = &self.fields.job.algorithm;
        match algorithm.training_image.as_deref() {
            Some(image) if !image.is_empty() => {
                ("TrainingJobDefinition.AlgorithmSpecification.TrainingImage", image)
            }
            Some(_) | None => (
                "TrainingJobDefinition.AlgorithmSpecification.AlgorithmName",
                algorithm.algorithm_name.as_deref().unwrap_or_default(),
            ),
        }
    }

    /// Returns `RoleArn`.
    pub fn role_arn(&self) -> &str {
        self.fields.job.role_arn.as_deref().unwrap_or_default()
    }

    /// Returns whether jobs run in a VPC of the user.
    pub fn is_in_vpc(&self) -> bool {
        !self.fields.job.vpc.subnets.is_empty()
    }

    /// Returns `VpcConfig.Subnets`.
    pub fn subnets(&self) -> impl Iterator<Item = &str> {
        self.fields.job.vpc.subnets.iter().flatten().map(String::as_str)
    }

    /// Returns `VpcConfig.SecurityGroupIds`.
    pub fn security_groups(&self) -> impl Iterator<Item = &str> {
        self.fields.job.vpc.security_groups.iter().flatten().map(String::as_str)
    }

    /// Returns the names of the channels that SageMaker splits among several hosts.
    pub fn sharded_channels(&self) -> Vec<&str> {
        if self.instance_count() <= 1 {
            return Vec::new();
        }
        let channels = self.fields.job.channels.iter();
        let sharded =
            channels.filter(|channel| channel.source.s3.distribution == Some(Distribution::ShardedByS3Key));
        sharded.filter_map(|channel| channel.name.as_deref()).collect()
    }

    /// Returns whether jobs run on managed spot instances.
    pub fn is_spot(&self) -> bool {
        self.fields.job.spot.unwrap_or(false)
    }

    /// Returns `KeepAlivePeriodInSeconds`, the seconds for which instances are kept for the next job; 0 = not kept.
    pub fn keep_alive_seconds(&self) -> u64 {
        self.fields.job.warm_pool.keep_alive_seconds.filter(|_| !self.is_spot()).unwrap_or(0)
    }

    /// Returns `StoppingCondition.MaxRuntimeInSeconds`; the default is one day.
    pub fn max_runtime_seconds(&self) -> u64 {
        self.fields.job.stopping_condition.runtime.unwrap_or(DEFAULT_RUNTIME_SECONDS)
    }

    /// Returns `StoppingCondition.MaxWaitTimeInSeconds`.
    pub fn max_wait_seconds(&self) -> Option<u64> {
        self.fields.job.stopping_condition.wait
    }

    /// Returns `CheckpointConfig.S3Uri` of the request. Each trial has its own prefix below it.
    pub fn checkpoint_uri(&self) -> Option<&str> {
        self.fields.job.checkpoints.s3_uri.as_deref()
    }

    /// Returns `MetricHost`, the host whose log contains the objective; the default is `algo-1`.
    pub fn metric_host(&self) -> &str {
        self.fields.controller.metric_host.as_deref().unwrap_or("algo-1")
    }

    /// Returns the keys and values of the user's tags that training jobs get.
    pub fn job_tags(&self) -> impl Iterator<Item = (&str, &str)> {
        let all =
            self.fields.tags.iter().filter_map(|tag| Some((tag.key.as_deref()?, tag.value.as_deref()?)));
        all.filter(|(key, _)| !key.starts_with(TAG_PREFIX))
    }

    /// Returns the user's tags by key.
    pub fn tags(&self) -> BTreeMap<String, String> {
        self.job_tags().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }
}

#[cfg(test)]
mod tests;
