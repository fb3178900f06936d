//! Rules for hyperparameters, tuned and static.

use std::collections::BTreeSet;

use search::space::PARAMETERS_MAX;
use tuning::definition::INSTANCE_COUNT;
use tuning::unit::limits::MAX_TRAINING_JOBS;

use super::{violation, when};
use crate::algorithm::StoppedModel;
use crate::request::{OBJECTIVE_HYPERPARAMETER, Request, Strategy, Violation, parameters, shortened, times};

const RANGES: &str = "HyperParameterTuningJobConfig.ParameterRanges";
const STATICS: &str = "TrainingJobDefinition.StaticHyperParameters";
/// Most hyperparameters of one training job, by SageMaker's limit.
const HYPERPARAMETERS_MAX: usize = 100;

/// Returns the path and the name of each range.
fn names(request: &Request) -> Vec<(String, &str)> {
    let named = request.ranges().filter_map(|(path, _, range)| Some((path, range.name.as_deref()?)));
    named.map(|(path, name)| (format!("{path}.Name"), name)).collect()
}

pub(super) fn parameter_count(request: &Request) -> Vec<Violation> {
    if request.at("TrainingJobDefinition").is_none() {
        return Vec::new();
    }
    let ranges = names(request).len();
    let sizes = usize::from(!request.instance_counts().is_empty());
    let count = ranges.saturating_add(sizes);
    let fix = if ranges == 0 {
        "add a range, for example \"ContinuousParameterRanges\": [{\"Name\": \"learning_rate\", \"MinValue\": \
         \"0.001\", \"MaxValue\": \"0.1\"}]"
            .to_owned()
    } else {
        format!("remove {}", count.saturating_sub(PARAMETERS_MAX))
    };
    let message = format!(
        "Invalid ParameterRanges: expected 1 to {PARAMETERS_MAX} parameters in total{}, but found {count}; {fix}",
        if sizes > 0 { " with InstanceCounts" } else { "" }
    );
    when(ranges == 0 || count > PARAMETERS_MAX, RANGES, &message)
}

pub(super) fn ranges(request: &Request) -> Vec<Violation> {
    let (_, wrong) = parameters(request);
    wrong.iter().map(|error| violation(&error.path, &error.message)).collect()
}

pub(super) fn unique_names(request: &Request) -> Vec<Violation> {
    let mut seen = BTreeSet::new();
    let check = |(path, name): (String, &str)| {
        let shown = shortened(name);
        if !seen.insert(name.to_owned()) {
            let message = format!(
                "Invalid parameter '{shown}': another range has this name; rename or remove one of the two"
            );
            return Some(violation(&path, &message));
        }
        request.static_hyperparameter(name).map(|_| {
            let message = format!(
                "Invalid parameter '{shown}': StaticHyperParameters also sets it; remove it from ParameterRanges or \
                 from StaticHyperParameters"
            );
            violation(&path, &message)
        })
    };
    names(request).into_iter().filter_map(check).collect()
}

pub(super) fn reserved_names(request: &Request) -> Vec<Violation> {
    let message = format!(
        "Invalid hyperparameter '{OBJECTIVE_HYPERPARAMETER}': the service sets it to the objective's MetricName; \
         remove it or choose another name, for example 'metric'"
    );
    let tuned = names(request).into_iter().filter(|(_, name)| *name == OBJECTIVE_HYPERPARAMETER);
    let mut found: Vec<Violation> = tuned.map(|(path, _)| violation(&path, &message)).collect();
    // A request copied from a Describe response contains it with the right value.
    if request
        .static_hyperparameter(OBJECTIVE_HYPERPARAMETER)
        .is_some_and(|name| name != request.objective_metric())
    {
        found.push(violation(&format!("{STATICS}.{OBJECTIVE_HYPERPARAMETER}"), &message));
    }
    if request.resource_hyperparameter() == Some(OBJECTIVE_HYPERPARAMETER) {
        found.push(violation("Controller.ResourceHyperParameter", &message));
    }
    found
}

pub(super) fn instance_counts(request: &Request) -> Vec<Violation> {
    let path = "Controller.InstanceCounts";
    let given = request.fields().controller.instance_counts.iter().flatten();
    let mut seen = BTreeSet::new();
    if let Some(repeated) = given.into_iter().find(|count| !seen.insert(**count)) {
        let message = format!(
            "Invalid InstanceCounts: {repeated} is in the list twice; remove one, for example [1, 2, 4]"
        );
        return vec![violation(path, &message)];
    }
    let is_set = names(request).iter().any(|(_, name)| *name == INSTANCE_COUNT)
        || request.static_hyperparameter(INSTANCE_COUNT).is_some();
    let message = format!(
        "Invalid InstanceCounts: a hyperparameter has the name '{INSTANCE_COUNT}', which the search needs for the number \
         of instances; rename the hyperparameter, or remove InstanceCounts"
    );
    when(is_set && !request.instance_counts().is_empty(), path, &message)
}

/// Only a number has a product, and only a chosen number of instances changes it.
pub(super) fn scaled_hyperparameters(request: &Request) -> Vec<Violation> {
    let path = "Controller.ScaleWithInstances";
    let scaled = request.scaled_hyperparameters();
    if !scaled.is_empty() && request.instance_counts().is_empty() {
        let message = "Invalid ScaleWithInstances: without InstanceCounts all jobs have the same number of instances; add \
                       InstanceCounts, for example [1, 2, 4], or remove ScaleWithInstances";
        return vec![violation(path, message)];
    }
    let mut seen = BTreeSet::new();
    if let Some((index, name)) = scaled.iter().enumerate().find(|(_, name)| !seen.insert(*name)) {
        let message =
            format!("Invalid ScaleWithInstances '{}': it is in the list twice; remove one", shortened(name));
        return vec![violation(&format!("{path}[{index}]"), &message)];
    }
    let is_number = |name: &str| {
        let tuned = request.ranges().any(|(path, _, range)| {
            range.name.as_deref() == Some(name) && !path.contains("CategoricalParameterRanges")
        });
        tuned || request.static_hyperparameter(name).is_some_and(|value| times(value, 1).is_some())
    };
    let wrong = scaled.iter().enumerate().filter(|(_, name)| !is_number(name));
    wrong
        .map(|(index, name)| {
            let message = format!(
                "Invalid ScaleWithInstances '{}': expected a hyperparameter with an integer or continuous range, or with \
                 a number in StaticHyperParameters; for example, 'mini_batch_size'",
                shortened(name)
            );
            violation(&format!("{path}[{index}]"), &message)
        })
        .collect()
}

pub(super) fn combinations(request: &Request) -> Vec<Violation> {
    let path = "HyperParameterTuningJobConfig.ResourceLimits.MaxNumberOfTrainingJobs";
    // A grid has exactly as many.
    let given = request.given_max_jobs().filter(|_| request.strategy() != Strategy::Grid);
    let Some(jobs) = given else { return Vec::new() };
    match request.combinations() {
        Some(combinations) if combinations < u64::from(jobs) => {
            let message = format!(
                "You don't have enough combinations of hyperparameter ranges. The number of combinations, \
                 [{combinations}], must be equal or greater than the number of training jobs, MaxNumberOfTrainingJobs, \
                 [{jobs}]"
            );
            vec![violation(path, &message)]
        }
        _ => Vec::new(),
    }
}

/// Each of `InitialConfigurations` is in the space, and becomes a trial.
pub(super) fn initial(request: &Request) -> Vec<Violation> {
    let path = "Controller.InitialConfigurations";
    let count = request.initial_count();
    // The refit is no trial of the search. The rule `refit` reports that no job is left for one.
    let jobs = request.max_jobs().saturating_sub(u32::from(request.refits()));
    if count > 0 && request.strategy() == Strategy::Grid {
        let message = "Invalid InitialConfigurations: Strategy 'Grid' tries each combination once, in its own order; \
                       remove InitialConfigurations, or choose another Strategy";
        return vec![violation(path, message)];
    }
    // Other rules report invalid ranges.
    let Some(space) = request.space() else { return Vec::new() };
    let values = request.wrong_initial(&space);
    let mut all: Vec<Violation> = values.iter().map(|(path, message)| violation(path, message)).collect();
    if jobs > 0 && u32::try_from(count).is_ok_and(|count| count > jobs) {
        let message = format!(
            "Invalid InitialConfigurations: expected at most {jobs} configurations, the number of training jobs without \
             the Refit, but found {count}; remove some, or raise MaxNumberOfTrainingJobs"
        );
        all.push(violation(path, &message));
    }
    all
}

/// Grid takes categorical ranges only, and its number of training jobs is that of their combinations.
pub(super) fn grid(request: &Request) -> Vec<Violation> {
    if request.strategy() != Strategy::Grid {
        return Vec::new();
    }
    let numeric = request.ranges().filter(|(path, _, _)| !path.contains("CategoricalParameterRanges"));
    let wrong: Vec<Violation> = numeric
        .map(|(path, _, range)| {
            let message = format!(
                "Invalid range '{}': Strategy 'Grid' allows categorical ranges only; list its values in \
                 CategoricalParameterRanges, for example \"Values\": [\"0.01\", \"0.1\"]",
                shortened(range.name.as_deref().unwrap_or_default())
            );
            violation(&path, &message)
        })
        .collect();
    let Some(combinations) = request.combinations().filter(|_| wrong.is_empty()) else { return wrong };
    let jobs = combinations.saturating_add(u64::from(request.refits()));
    if jobs > u64::from(MAX_TRAINING_JOBS) {
        let message = format!(
            "Invalid ParameterRanges: Strategy 'Grid' makes {combinations} combinations of them, but a tuning job has \
             at most {MAX_TRAINING_JOBS} training jobs; list fewer values"
        );
        return vec![violation(RANGES, &message)];
    }
    let refit = if request.refits() { ", and one for the Refit" } else { "" };
    let given = request.given_max_jobs();
    let message = format!(
        "Invalid MaxNumberOfTrainingJobs {}: expected {jobs}, the number of combinations of the categorical values{refit}; \
         set it to {jobs} or remove it",
        given.unwrap_or_default()
    );
    let path = "HyperParameterTuningJobConfig.ResourceLimits.MaxNumberOfTrainingJobs";
    when(given.is_some_and(|given| u64::from(given) != jobs), path, &message)
}

pub(super) fn hyperparameter_count(request: &Request) -> Vec<Violation> {
    let mut all: BTreeSet<String> = names(request).into_iter().map(|(_, name)| name.to_owned()).collect();
    all.extend(request.static_hyperparameters().into_iter().flat_map(|statics| statics.keys().cloned()));
    all.insert(OBJECTIVE_HYPERPARAMETER.to_owned());
    all.extend(request.resource_hyperparameter().map(str::to_owned));
    if let Some(StoppedModel::With(name)) = request.built_in().map(|algorithm| algorithm.stopped_model) {
        all.insert(name.to_owned());
    }
    let message = format!(
        "Invalid StaticHyperParameters: a training job has at most {HYPERPARAMETERS_MAX} hyperparameters (static, \
         tuned and those that the service adds), but this request gives it {}; remove {}",
        all.len(),
        all.len().saturating_sub(HYPERPARAMETERS_MAX)
    );
    when(all.len() > HYPERPARAMETERS_MAX, STATICS, &message)
}

pub(super) fn resource_hyperparameter(request: &Request) -> Vec<Violation> {
    let Some(name) = request.resource_hyperparameter() else { return Vec::new() };
    let tuned = names(request).iter().any(|(_, tuned)| *tuned == name);
    let message = format!(
        "Invalid ResourceHyperParameter '{}': ParameterRanges tunes it, but the controller must set it; remove the \
         range or name another hyperparameter, for example 'epochs'",
        shortened(name)
    );
    when(tuned, "Controller.ResourceHyperParameter", &message)
}
