//! Rules of hyperparameters, tuned and static.

use std::collections::BTreeSet;

use search::Space;
use search::space::PARAMETERS_MAX;
use serde_json::Value;

use super::{violation, when};
use crate::algorithm::StoppedModel;
use crate::request::{OBJECTIVE_HYPERPARAMETER, Request, Violation, parameters, shortened};

const RANGES: &str = "HyperParameterTuningJobConfig.ParameterRanges";
const STATICS: &str = "TrainingJobDefinition.StaticHyperParameters";
const LISTS: [&str; 3] =
    ["IntegerParameterRanges", "ContinuousParameterRanges", "CategoricalParameterRanges"];
/// Most hyperparameters of a training job.
const HYPERPARAMETERS_MAX: usize = 100;

/// Path and name of each range.
fn names(request: &Request) -> Vec<(String, &str)> {
    let of_list = |list: &'static str| {
        let ranges = request.list(&format!("{RANGES}.{list}")).iter().enumerate();
        ranges.filter_map(move |(index, range)| {
            Some((format!("{RANGES}.{list}[{index}].Name"), range.get("Name").and_then(Value::as_str)?))
        })
    };
    LISTS.into_iter().flat_map(of_list).collect()
}

pub(super) fn parameter_count(request: &Request) -> Vec<Violation> {
    if request.at("TrainingJobDefinition").is_none() {
        return Vec::new();
    }
    let count = names(request).len();
    let message = format!("ParameterRanges must have 1 to {PARAMETERS_MAX} parameters together, not {count}");
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
            return Some(violation(&path, &format!("Parameter '{shown}' is given twice; names must differ")));
        }
        request.static_hyperparameter(name).map(|_| {
            violation(
                &path,
                &format!("Parameter '{shown}' is in StaticHyperParameters too; leave it out of one"),
            )
        })
    };
    names(request).into_iter().filter_map(check).collect()
}

pub(super) fn reserved_names(request: &Request) -> Vec<Violation> {
    let message = format!("'{OBJECTIVE_HYPERPARAMETER}' is set by the service to the objective's MetricName");
    let tuned = names(request).into_iter().filter(|(_, name)| *name == OBJECTIVE_HYPERPARAMETER);
    let mut found: Vec<Violation> = tuned.map(|(path, _)| violation(&path, &message)).collect();
    // A request made from what Describe shows has it, rightly.
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
    let Some(jobs) = request.count(path) else { return Vec::new() };
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
        "A training job has at most {HYPERPARAMETERS_MAX} hyperparameters, static, tuned and the service's own \
         together; here it would have {}",
        all.len()
    );
    when(all.len() > HYPERPARAMETERS_MAX, STATICS, &message)
}

pub(super) fn resource_hyperparameter(request: &Request) -> Vec<Violation> {
    let Some(name) = request.resource_hyperparameter() else { return Vec::new() };
    let tuned = names(request).iter().any(|(_, tuned)| *tuned == name);
    let message =
        format!("'{}' is tuned in ParameterRanges; what sets the resource must not be", shortened(name));
    when(tuned, "Controller.ResourceHyperParameter", &message)
}
