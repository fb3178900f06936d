//! Rules for the strategy, its resource, the objective and the patterns that read the objective.

use hyperband::plan::MAX_RESOURCE;
use search::PARENTS_MAX;
use serde_json::json;
use tuning::definition::Scheduling;

use super::{violation, when};
use crate::request::{
    NUMBER_PATTERN, RESOURCE_NAMES, Refit, Request, Strategy, Violation, compile_pattern, shortened,
};

const HYPERBAND: &str = "HyperParameterTuningJobConfig.StrategyConfig.HyperbandStrategyConfig";
const METRICS: &str = "TrainingJobDefinition.AlgorithmSpecification.MetricDefinitions";

pub(super) fn objective(request: &Request) -> Vec<Violation> {
    let path = "HyperParameterTuningJobConfig.HyperParameterTuningJobObjective";
    let missing = request.at("TrainingJobDefinition").is_some() && request.at(path).is_none();
    when(
        missing,
        path,
        "Missing HyperParameterTuningJobObjective: it is required, for example {\"Type\": \"Maximize\", \
         \"MetricName\": \"validation:auc\"}",
    )
}

pub(super) fn objective_metric(request: &Request) -> Vec<Violation> {
    let job = request.at("TrainingJobDefinition").is_some();
    let own = request.built_in().map_or_else(String::new, |algorithm| {
        let names: Vec<&str> = algorithm.metrics.iter().map(|metric| metric.name).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!(". Metrics of {algorithm} that need no definition: {names}")
    });
    let name = shortened(request.objective_metric());
    let example = json!({"Name": name, "Regex": format!("metric={NUMBER_PATTERN}")});
    let names = request.metric_definitions().iter().filter_map(|metric| metric.name.as_deref());
    let defined: Vec<String> = names.map(|name| format!("'{}'", shortened(name))).collect();
    let defined = if defined.is_empty() {
        "defines none".to_owned()
    } else {
        format!("defines {}", defined.join(", "))
    };
    let message = format!(
        "A metric is required for this hyperparameter tuning job objective. Provide a metric in the metric \
         definitions. MetricName '{name}' has no definition, and MetricDefinitions {defined}; for example, add \
         {example}{own}"
    );
    when(
        job && !request.objective_metric().is_empty() && request.metric_regex().is_none(),
        "HyperParameterTuningJobConfig.HyperParameterTuningJobObjective.MetricName",
        &message,
    )
}

pub(super) fn strategy_config(request: &Request) -> Vec<Violation> {
    let path = "HyperParameterTuningJobConfig.StrategyConfig";
    let message = format!(
        "Invalid StrategyConfig: expected none with Strategy '{}', because only Hyperband has one; remove \
         StrategyConfig or set Strategy to 'Hyperband'",
        request.strategy().word()
    );
    when(!request.strategy().compares_trials() && request.at(path).is_some(), path, &message)
}

pub(super) fn max_resource(request: &Request) -> Vec<Violation> {
    let missing = request.hyperband().is_some_and(|hyperband| hyperband.max_resource.is_none());
    let message = format!(
        "MaxResource parameter is not provided and could not be inferred from provided static hyperparameters of \
         TrainingJobDefinition. Set MaxResource, for example to 27, or set one of these static hyperparameters to a \
         whole number: {}",
        RESOURCE_NAMES.join(", ")
    );
    when(missing, &format!("{HYPERBAND}.MaxResource"), &message)
}

pub(super) fn resource_order(request: &Request) -> Vec<Violation> {
    let Some(hyperband) = request.hyperband() else { return Vec::new() };
    let (Some(max), Some(Err(error))) = (hyperband.max_resource, hyperband.plan()) else { return Vec::new() };
    let source = match request.inferred_max_resource() {
        _ if request.fields().config.settings.hyperband.max_resource.is_some() => String::new(),
        Some((name, _)) => format!(" (from static hyperparameter '{name}')"),
        None => request
            .default_max_resource()
            .map_or_else(String::new, |(name, _)| format!(" (the default of hyperparameter '{name}')")),
    };
    let message = format!(
        "Invalid MaxResource {max}{source}: {error}; MinResource is {}; expected 1 <= MinResource <= MaxResource <= \
         {MAX_RESOURCE}, for example MinResource 1 and MaxResource 27",
        hyperband.min_resource
    );
    vec![violation(&format!("{HYPERBAND}.MaxResource"), &message)]
}

pub(super) fn promotion(request: &Request) -> Vec<Violation> {
    if !request.is_promotion_given() {
        return Vec::new();
    }
    if !request.strategy().compares_trials() {
        let message = format!(
            "Invalid RungExecution 'Promote': expected Strategy 'Hyperband', but Strategy is '{}'; for example, remove \
             RungExecution",
            request.strategy().word()
        );
        return vec![violation("Controller.RungExecution", &message)];
    }
    when(
        request.resource_hyperparameter().is_none(),
        "Controller.ResourceHyperParameter",
        "Missing ResourceHyperParameter: RungExecution 'Promote' requires the name of the hyperparameter that sets the \
         total number of epochs of the training program, for example 'epochs'",
    )
}

pub(super) fn refit(request: &Request) -> Vec<Violation> {
    let path = "HyperParameterTuningJobConfig.ResourceLimits.MaxNumberOfTrainingJobs";
    when(
        request.refits() && request.given_max_jobs() == Some(1),
        path,
        "Invalid MaxNumberOfTrainingJobs 1: expected at least 2 with Refit, which needs one training job for \
         the search and one to train a configuration again; for example, 2",
    )
}

pub(super) fn prefer(request: &Request) -> Vec<Violation> {
    when(
        request.is_preference_given() && (!request.compares_late() || request.is_promotion_given()),
        "Controller.Prefer",
        "Invalid Prefer: expected Strategy 'Hyperband' with Sampler 'Model', and neither ReductionFactor nor RungExecution \
         'Promote', since only late comparisons of running trials depend on it; for example, remove Prefer",
    )
}

pub(super) fn best_buy(request: &Request) -> Vec<Violation> {
    when(
        request.refit() == Refit::BestBuy && request.fields().controller.value_tolerance.is_none(),
        "Controller.ValueTolerance",
        "Missing ValueTolerance: Refit 'BestBuy' requires the greatest difference from the best value, in units of the \
         objective, for example 0.01",
    )
}

pub(super) fn scheduling(request: &Request) -> Vec<Violation> {
    let synchronous = request.fields().controller.scheduling == Some(Scheduling::Synchronous);
    when(
        synchronous && !request.is_promotion_given(),
        "Controller.Scheduling",
        "Invalid Scheduling 'Synchronous': expected 'Asynchronous' unless RungExecution is 'Promote'; for example, set \
         RungExecution to 'Promote'",
    )
}

pub(super) fn early_stopping(request: &Request) -> Vec<Violation> {
    when(
        request.stops_early() && request.strategy().compares_trials(),
        "HyperParameterTuningJobConfig.TrainingJobEarlyStoppingType",
        "Invalid TrainingJobEarlyStoppingType 'Auto': expected 'Off' with Strategy 'Hyperband', which stops training \
         jobs itself",
    )
}

pub(super) fn needs_jobs(request: &Request) -> Vec<Violation> {
    let path = "HyperParameterTuningJobConfig.ResourceLimits.MaxNumberOfTrainingJobs";
    let missing = request.strategy().needs_jobs() && request.at(path).is_none();
    let message = format!(
        "Missing MaxNumberOfTrainingJobs: it is required with Strategy '{}', which has no brackets to derive it from; \
         for example, 50",
        request.strategy().word()
    );
    when(missing, path, &message)
}

pub(super) fn sampler(request: &Request) -> Vec<Violation> {
    let (own, false) = request.strategy().sampler() else { return Vec::new() };
    let given = request.fields().controller.sampler.filter(|given| *given != own);
    let message = format!(
        "Invalid Sampler '{given:?}': expected none with Strategy '{0}', which chooses configurations itself; remove \
         Sampler, or set Strategy to 'Random' or 'Hyperband'",
        request.strategy().word(),
        given = given.unwrap_or(own),
    );
    when(given.is_some(), "Controller.Sampler", &message)
}

pub(super) fn warm_start(request: &Request) -> Vec<Violation> {
    let Some((_, parents)) = request.warm_start() else { return Vec::new() };
    let path = "WarmStartConfig";
    if request.strategy() == Strategy::Grid {
        let message = "Invalid WarmStartConfig: expected none with Strategy 'Grid', which tries every combination once; \
                       remove WarmStartConfig, or set Strategy to 'Bayesian', 'Random' or 'Hyperband'";
        return vec![violation(path, message)];
    }
    let is_repeated = |(index, parent): &(usize, &&str)| {
        parents.iter().take(*index).any(|earlier| earlier.eq_ignore_ascii_case(parent))
    };
    let repeated = parents.iter().enumerate().find(is_repeated);
    let message = |parent: &str| {
        format!(
            "Invalid ParentHyperParameterTuningJobs: '{}' is named twice; name each parent once",
            shortened(parent)
        )
    };
    repeated.map(|(_, parent)| violation(path, &message(parent))).into_iter().collect()
}

pub(super) fn known_results(request: &Request) -> Vec<Violation> {
    let path = "Controller.KnownResults";
    if request.known_result_count() == 0 {
        return Vec::new();
    }
    if request.strategy() == Strategy::Grid {
        let message = "Invalid KnownResults: expected none with Strategy 'Grid', which tries every combination once; \
                       remove KnownResults, or set Strategy to 'Bayesian', 'Random' or 'Hyperband'";
        return vec![violation(path, message)];
    }
    if request.warm_start().is_some_and(|(_, parents)| parents.len() >= PARENTS_MAX) {
        let message = format!(
            "Invalid KnownResults: they count as one parent, and at most {PARENTS_MAX} parents are allowed; remove one"
        );
        return vec![violation(path, &message)];
    }
    // Other rules report a missing objective.
    let wrong = request.wrong_known_result().filter(|_| !request.objective_metric().is_empty());
    wrong.map(|(path, message)| violation(&path, &message)).into_iter().collect()
}

pub(super) fn metric_patterns(request: &Request) -> Vec<Violation> {
    let check = |(index, pattern): (usize, &str)| {
        let path = format!("{METRICS}[{index}].Regex");
        match compile_pattern(pattern) {
            Err(error) => Some(violation(&path, &format!("Invalid Regex '{}': {error}", shortened(pattern)))),
            Ok(regex) if regex.captures_len() < 2 => {
                let message = format!(
                    "Invalid Regex '{}': expected a group in parentheses that captures the metric's value, for example \
                     'loss={NUMBER_PATTERN}'",
                    shortened(pattern)
                );
                Some(violation(&path, &message))
            }
            Ok(_) => None,
        }
    };
    let patterns = request.metric_definitions().iter().enumerate();
    patterns.filter_map(|(index, metric)| check((index, metric.regex.as_deref()?))).collect()
}

pub(super) fn epoch_pattern(request: &Request) -> Vec<Violation> {
    let path = "Controller.EpochPattern";
    let Some(pattern) = request.epoch_pattern() else { return Vec::new() };
    let shown = shortened(pattern);
    match compile_pattern(pattern) {
        Err(error) => vec![violation(path, &format!("Invalid EpochPattern '{shown}': {error}"))],
        Ok(regex) => {
            let groups = regex.captures_len().saturating_sub(1);
            let message = format!(
                "Invalid EpochPattern '{shown}': expected exactly one group in parentheses, which captures the epoch, \
                 but found {groups}; write every other group as '(?:...)', for example 'epoch=([0-9]+)'"
            );
            when(groups != 1, path, &message)
        }
    }
}
