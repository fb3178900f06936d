//! Rules between fields. Where the service's wording is known, it is used.
//!
//! A rule is asked only when every field that names it in the table is well formed. What it reads besides may be
//! missing or malformed: reading is total, and a rule stays silent about what a row says already.

use crate::request::{Request, Violation};

mod job;
mod parameters;
mod strategy;

/// A rule between fields.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its name, as rows of the table give it.
    pub name: &'static str,
    /// What it demands.
    pub about: &'static str,
    /// What breaks it in a request.
    pub(super) check: fn(&Request) -> Vec<Violation>,
}

const fn rule(name: &'static str, about: &'static str, check: fn(&Request) -> Vec<Violation>) -> Rule {
    Rule { name, about, check }
}

/// All rules.
#[rustfmt::skip]
pub static RULES: &[Rule] = &[
    rule("one_definition", "TrainingJobDefinition is given", job::one_definition),
    rule("objective", "one TrainingJobDefinition has its objective in HyperParameterTuningJobConfig", strategy::objective),
    rule("objective_metric", "the objective is one of the metric definitions, or a built-in algorithm's", strategy::objective_metric),
    rule("strategy_config", "StrategyConfig only with Hyperband", strategy::strategy_config),
    rule("max_resource", "Hyperband needs MaxResource, given or told by a static hyperparameter", strategy::max_resource),
    rule("resource_order", "MinResource <= MaxResource <= 20000", strategy::resource_order),
    rule("promotion", "RungExecution Promote needs Hyperband and ResourceHyperParameter", strategy::promotion),
    rule("scheduling", "Scheduling Synchronous needs RungExecution Promote", strategy::scheduling),
    rule("refit", "Refit Best needs a job besides the search's", strategy::refit),
    rule("early_stopping", "TrainingJobEarlyStoppingType is Off", strategy::early_stopping),
    rule("random_needs_jobs", "Random needs MaxNumberOfTrainingJobs", strategy::random_needs_jobs),
    rule("parameter_count", "1 to 30 parameters", parameters::parameter_count),
    rule("ranges", "bounds are numbers, in order, and suit the scaling", parameters::ranges),
    rule("unique_names", "no parameter is given twice, tuned or static", parameters::unique_names),
    rule("reserved_names", "_tuning_objective_metric is the service's", parameters::reserved_names),
    rule("combinations", "at least as many combinations as training jobs", parameters::combinations),
    rule("hyperparameter_count", "at most 100 hyperparameters, the service's own included", parameters::hyperparameter_count),
    rule("resource_hyperparameter", "ResourceHyperParameter is not tuned", parameters::resource_hyperparameter),
    rule("metric_patterns", "each Regex compiles and has a group", strategy::metric_patterns),
    rule("epoch_pattern", "EpochPattern compiles and has one group", strategy::epoch_pattern),
    rule("image_or_algorithm", "either TrainingImage or AlgorithmName", job::image_or_algorithm),
    rule("channel_names", "channel names differ", job::channel_names),
    rule("data_source", "each channel has one data source", job::data_source),
    rule("spot_wait", "spot needs MaxWaitTimeInSeconds >= MaxRuntimeInSeconds", job::spot_wait),
    rule("wait_without_spot", "MaxWaitTimeInSeconds only with spot", job::wait_without_spot),
    rule("checkpoint_length", "S3Uri leaves room for each trial's own prefix", job::checkpoint_length),
    rule("environment", "HYPERBAND_<Field> is a field of Controller, and said nowhere else differently", job::environment),
    rule("resource_config", "either ResourceConfig or HyperParameterTuningResourceConfig", job::resource_config),
    rule("instance_fields", "InstanceType, InstanceCount and VolumeSizeInGB are given", job::instance_fields),
    rule("instance_configs", "either InstanceConfigs or the flat fields", job::instance_configs),
    rule("spot_fallback", "SpotFallback OnDemand needs spot", job::spot_fallback),
    rule("keep_alive", "no warm pool with spot", job::keep_alive),
    rule("max_instances", "MaxInstances holds at least one job", job::max_instances),
    rule("metric_host", "MetricHost is a host of the job", job::metric_host),
    rule("tag_count", "room for our own tags", job::tag_count),
    rule("tag_keys", "tag keys differ and are not reserved; hyperband:<Field> is a field of Controller", job::tag_keys),
];

/// The violation at `path`; `message` says what is wrong and what is allowed.
fn violation(path: &str, message: &str) -> Violation {
    Violation { path: path.to_owned(), message: format!("{message} (at '{path}')") }
}

/// The violation at `path`, or none.
fn when(broken: bool, path: &str, message: &str) -> Vec<Violation> {
    if broken { vec![violation(path, message)] } else { Vec::new() }
}
