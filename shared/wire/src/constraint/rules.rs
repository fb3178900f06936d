//! Rules that relate several fields. Messages use SageMaker's wording where it is known.
//!
//! A rule runs only if every field whose row names it is well formed. Other fields that the rule reads may be missing
//! or malformed: the rule treats them as absent and does not repeat a violation of a row.

use crate::request::{Request, Violation};

mod job;
mod parameters;
mod strategy;

/// A rule that relates several fields.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The name by which rows of the table refer to it.
    pub name: &'static str,
    /// The requirement in one phrase.
    pub about: &'static str,
    pub(super) check: fn(&Request) -> Vec<Violation>,
}

const fn rule(name: &'static str, about: &'static str, check: fn(&Request) -> Vec<Violation>) -> Rule {
    Rule { name, about, check }
}

/// All rules.
#[rustfmt::skip]
pub static RULES: &[Rule] = &[
    rule("one_definition", "TrainingJobDefinition is required", job::one_definition),
    rule("objective", "HyperParameterTuningJobObjective is required with TrainingJobDefinition", strategy::objective),
    rule("objective_metric", "the objective metric has a definition, or is built in", strategy::objective_metric),
    rule("strategy_config", "StrategyConfig only with Hyperband", strategy::strategy_config),
    rule("max_resource", "Hyperband requires MaxResource or static epochs", strategy::max_resource),
    rule("resource_order", "MinResource <= MaxResource <= 20000", strategy::resource_order),
    rule("promotion", "RungExecution Promote requires Hyperband and ResourceHyperParameter", strategy::promotion),
    rule("scheduling", "Scheduling Synchronous requires RungExecution Promote", strategy::scheduling),
    rule("refit", "Refit requires MaxNumberOfTrainingJobs >= 2", strategy::refit),
    rule("prefer", "Prefer requires the sampler Model and excludes ReductionFactor and Promote", strategy::prefer),
    rule("best_buy", "Refit BestBuy requires ValueTolerance", strategy::best_buy),
    rule("early_stopping", "TrainingJobEarlyStoppingType is Off with Hyperband", strategy::early_stopping),
    rule("needs_jobs", "Bayesian and Random require MaxNumberOfTrainingJobs", strategy::needs_jobs),
    rule("sampler", "Bayesian and Grid have samplers of their own", strategy::sampler),
    rule("warm_start", "WarmStartConfig names distinct parents, not with Grid", strategy::warm_start),
    rule("parameter_count", "1 to 30 parameters", parameters::parameter_count),
    rule("ranges", "bounds are numbers, MinValue <= MaxValue, and the scaling allows them", parameters::ranges),
    rule("unique_names", "each hyperparameter has one range or one static value", parameters::unique_names),
    rule("reserved_names", "only the service sets _tuning_objective_metric", parameters::reserved_names),
    rule("combinations", "at least as many combinations as training jobs", parameters::combinations),
    rule("grid", "Grid requires categorical ranges and one training job for each combination", parameters::grid),
    rule("known_results", "KnownResults have a value and all hyperparameters, not with Grid", strategy::known_results),
    rule("initial_configurations", "each value of InitialConfigurations is in its range", parameters::initial),
    rule("hyperparameter_count", "at most 100 hyperparameters with those of the service", parameters::hyperparameter_count),
    rule("resource_hyperparameter", "ResourceHyperParameter has no range", parameters::resource_hyperparameter),
    rule("metric_patterns", "each Regex compiles and has a group", strategy::metric_patterns),
    rule("epoch_pattern", "EpochPattern compiles and has one group", strategy::epoch_pattern),
    rule("image_or_algorithm", "exactly one of TrainingImage and AlgorithmName", job::image_or_algorithm),
    rule("channel_names", "channel names are unique", job::channel_names),
    rule("data_source", "each channel has one data source", job::data_source),
    rule("spot_wait", "managed spot training requires MaxWaitTimeInSeconds >= MaxRuntimeInSeconds", job::spot_wait),
    rule("wait_without_spot", "MaxWaitTimeInSeconds only with managed spot training", job::wait_without_spot),
    rule("checkpoint_length", "S3Uri leaves room for the prefix of each trial", job::checkpoint_length),
    rule("environment", "HYPERBAND_<Field> is a field of Controller and agrees with other sources", job::environment),
    rule("resource_config", "ResourceConfig or HyperParameterTuningResourceConfig, not both", job::resource_config),
    rule("instance_fields", "InstanceType, InstanceCount and VolumeSizeInGB are required", job::instance_fields),
    rule("instance_configs", "either InstanceConfigs or the flat fields", job::instance_configs),
    rule("spot_fallback", "SpotFallback OnDemand requires managed spot training", job::spot_fallback),
    rule("keep_alive", "no warm pool with managed spot training", job::keep_alive),
    rule("max_instances", "MaxInstances allows at least one training job", job::max_instances),
    rule("instance_counts", "InstanceCounts are distinct, and no hyperparameter is named InstanceCount",
        parameters::instance_counts),
    rule("scaled_hyperparameters", "ScaleWithInstances requires InstanceCounts and names numeric hyperparameters",
        parameters::scaled_hyperparameters),
    rule("metric_host", "MetricHost is a host of the job", job::metric_host),
    rule("tag_count", "Tags leaves room for the controller's tags", job::tag_count),
    rule("tag_keys", "tag keys are unique and not reserved; hyperband:<Field> is a field of Controller", job::tag_keys),
];

/// Returns the violation at `path`. `message` names the invalid value, the expectation and a fix.
fn violation(path: &str, message: &str) -> Violation {
    Violation { path: path.to_owned(), message: format!("{message} (at '{path}')") }
}

fn when(broken: bool, path: &str, message: &str) -> Vec<Violation> {
    if broken { vec![violation(path, message)] } else { Vec::new() }
}
