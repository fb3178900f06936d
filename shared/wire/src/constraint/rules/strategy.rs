//! Rules of the strategy, its resource, the objective and the patterns that read it.

use hyperband::plan::{MAX_RESOURCE, Plan};

use super::{violation, when};
use crate::request::{RESOURCE_NAMES, Request, Violation, compile_pattern};

const HYPERBAND: &str = "HyperParameterTuningJobConfig.StrategyConfig.HyperbandStrategyConfig";
const METRICS: &str = "TrainingJobDefinition.AlgorithmSpecification.MetricDefinitions";

pub(super) fn objective(request: &Request) -> Vec<Violation> {
    let path = "HyperParameterTuningJobConfig.HyperParameterTuningJobObjective";
    let missing = request.at("TrainingJobDefinition").is_some() && request.at(path).is_none();
    when(
        missing,
        path,
        "HyperParameterTuningJobObjective is required: Type (Maximize or Minimize) and MetricName",
    )
}

pub(super) fn objective_metric(request: &Request) -> Vec<Violation> {
    let job = request.at("TrainingJobDefinition").is_some();
    let own = request.built_in().map_or_else(String::new, |algorithm| {
        let names: Vec<&str> = algorithm.metrics.iter().map(|metric| metric.name).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!(" Those of {algorithm} need no definition: {names}")
    });
    let message = format!(
        "A metric is required for this hyperparameter tuning job objective. Provide a metric in the metric \
         definitions.{own}"
    );
    when(
        job && !request.objective_metric().is_empty() && request.metric_regex().is_none(),
        "HyperParameterTuningJobConfig.HyperParameterTuningJobObjective.MetricName",
        &message,
    )
}

pub(super) fn strategy_config(request: &Request) -> Vec<Violation> {
    let path = "HyperParameterTuningJobConfig.StrategyConfig";
    let broken = !request.is_hyperband() && request.at(path).is_some();
    when(broken, path, "StrategyConfig is for Strategy Hyperband only; leave it out")
}

pub(super) fn max_resource(request: &Request) -> Vec<Violation> {
    let missing = request.is_hyperband() && request.max_resource().is_none();
    let message = format!(
        "MaxResource parameter is not provided and could not be inferred from provided static hyperparameters of \
         TrainingJobDefinition. Give it, or one of these as a whole number: {}",
        RESOURCE_NAMES.join(", ")
    );
    when(missing, &format!("{HYPERBAND}.MaxResource"), &message)
}

pub(super) fn resource_order(request: &Request) -> Vec<Violation> {
    let Some(max) = request.max_resource() else { return Vec::new() };
    let Err(error) = Plan::hyperband(request.min_resource(), max, request.reduction_factor()) else {
        return Vec::new();
    };
    let source = match request.inferred_max_resource() {
        _ if request.at(&format!("{HYPERBAND}.MaxResource")).is_some() => String::new(),
        Some((name, _)) => format!(", as static hyperparameter '{name}' tells"),
        None => request
            .default_max_resource()
            .map_or_else(String::new, |(name, _)| format!(", as hyperparameter '{name}' is by default")),
    };
    let message = format!(
        "{error}: MinResource is {} and MaxResource is {max}{source}; allowed is 1 <= MinResource <= MaxResource <= \
         {MAX_RESOURCE}",
        request.min_resource()
    );
    vec![violation(&format!("{HYPERBAND}.MaxResource"), &message)]
}

pub(super) fn promotion(request: &Request) -> Vec<Violation> {
    if request.text("Controller.RungExecution") != Some("Promote") {
        return Vec::new();
    }
    if !request.is_hyperband() {
        let message = "RungExecution Promote is for Strategy Hyperband only; leave it out";
        return vec![violation("Controller.RungExecution", message)];
    }
    when(
        request.resource_hyperparameter().is_none(),
        "Controller.ResourceHyperParameter",
        "RungExecution Promote needs ResourceHyperParameter: the name of the hyperparameter that tells the training \
         program for how many epochs, in all, it is to train",
    )
}

pub(super) fn refit(request: &Request) -> Vec<Violation> {
    let path = "HyperParameterTuningJobConfig.ResourceLimits.MaxNumberOfTrainingJobs";
    when(
        request.refits() && request.count(path) == Some(1),
        path,
        "MaxNumberOfTrainingJobs must be at least 2 with Refit Best: one training job to search, one to train the best \
         configuration once more",
    )
}

pub(super) fn scheduling(request: &Request) -> Vec<Violation> {
    let synchronous = request.text("Controller.Scheduling") == Some("Synchronous");
    let promote = request.text("Controller.RungExecution") == Some("Promote");
    when(
        synchronous && !promote,
        "Controller.Scheduling",
        "Scheduling Synchronous needs RungExecution Promote; running jobs are stopped as results arrive",
    )
}

pub(super) fn early_stopping(request: &Request) -> Vec<Violation> {
    let path = "HyperParameterTuningJobConfig.TrainingJobEarlyStoppingType";
    let message = if request.is_hyperband() {
        "TrainingJobEarlyStoppingType must be Off with Strategy Hyperband, which stops training jobs itself"
    } else {
        "TrainingJobEarlyStoppingType Auto is not supported yet; use Off, or Strategy Hyperband"
    };
    when(request.text(path) == Some("Auto"), path, message)
}

pub(super) fn random_needs_jobs(request: &Request) -> Vec<Violation> {
    let path = "HyperParameterTuningJobConfig.ResourceLimits.MaxNumberOfTrainingJobs";
    let missing = request.strategy() == "Random" && request.at(path).is_none();
    when(
        missing,
        path,
        "MaxNumberOfTrainingJobs is required with Strategy Random, which has no brackets to count",
    )
}

pub(super) fn metric_patterns(request: &Request) -> Vec<Violation> {
    let check = |(index, pattern): (usize, &str)| {
        let path = format!("{METRICS}[{index}].Regex");
        match compile_pattern(pattern) {
            Err(error) => Some(violation(&path, &format!("Regex cannot be used: {error}"))),
            Ok(regex) if regex.captures_len() < 2 => Some(violation(
                &path,
                "Regex must have a group in parentheses that captures the metric's value",
            )),
            Ok(_) => None,
        }
    };
    let patterns = request.list(METRICS).iter().enumerate();
    patterns.filter_map(|(index, metric)| check((index, metric.get("Regex")?.as_str()?))).collect()
}

pub(super) fn epoch_pattern(request: &Request) -> Vec<Violation> {
    let path = "Controller.EpochPattern";
    match request.epoch_pattern().map(compile_pattern) {
        Some(Err(error)) => vec![violation(path, &format!("EpochPattern cannot be used: {error}"))],
        Some(Ok(regex)) => {
            let groups = regex.captures_len().saturating_sub(1);
            let message = format!(
                "EpochPattern must have exactly one group in parentheses, which captures the epoch; it has {groups} \
                 (a group that captures nothing is written '(?:...)')"
            );
            when(groups != 1, path, &message)
        }
        None => Vec::new(),
    }
}
