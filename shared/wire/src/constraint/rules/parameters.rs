//! Rules for hyperparameters, tuned and static.

use std::collections::BTreeSet;

use search::Space;
use search::space::PARAMETERS_MAX;

use super::{violation, when};
use crate::algorithm::StoppedModel;
use crate::request::{OBJECTIVE_HYPERPARAMETER, Request, Violation, parameters, shortened};

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
    let count = names(request).len();
    let fix = if count == 0 {
        "add a range, for example \"ContinuousParameterRanges\": [{\"Name\": \"learning_rate\", \"MinValue\": \
         \"0.001\", \"MaxValue\": \"0.1\"}]"
            .to_owned()
    } else {
        format!("remove {}", count.saturating_sub(PARAMETERS_MAX))
    };
    let message = format!(
        "Invalid ParameterRanges: expected 1 to {PARAMETERS_MAX} parameters in total, but found {count}; {fix}"
    );
    when(count == 0 || count > PARAMETERS_MAX, RANGES, &message)
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

pub(super) fn combinations(request: &Request) -> Vec<Violation> {
    let path = "HyperParameterTuningJobConfig.ResourceLimits.MaxNumberOfTrainingJobs";
    let Some(jobs) = request.given_max_jobs() else { return Vec::new() };
    let (parameters, wrong) = parameters(request);
    let cardinality =
        Space::new(parameters).ok().filter(|_| wrong.is_empty()).and_then(|space| space.cardinality());
    match cardinality {
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
