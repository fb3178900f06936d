//! The hyperparameters of the report: those of all training job definitions and, where there are several, the definition of
//! each trial.

use std::collections::{BTreeMap, BTreeSet};

use search::Domain;
use tuning::unit::ids::TrialId;
use use_cases::store::Tuning;

use crate::document::Parameter;

/// The name of the column with the definition of a trial.
const DEFINITION: &str = "TrainingJobDefinition";

/// Returns the hyperparameters, one for each name.
pub(super) fn columns(tuning: &Tuning) -> Vec<Parameter> {
    let definition = &tuning.definition;
    let mut known = BTreeSet::new();
    let own = definition.definitions().flat_map(|of| definition.space_of(of).parameters());
    let own = own.filter(|parameter| known.insert(parameter.name.clone()));
    let own =
        own.map(|parameter| Parameter { name: parameter.name.clone(), range: parameter.domain.clone() });
    let name = |number: u32| tuning.request.definition_name(number).unwrap_or_default().to_owned();
    let names = definition.definitions().map(|of| name(of.0)).collect();
    let of_trial = Parameter { name: DEFINITION.to_owned(), range: Domain::Categorical { values: names } };
    definition.has_definitions().then_some(of_trial).into_iter().chain(own).collect()
}

/// Returns the value of each of these hyperparameters in a trial; `None` if its definition does not tune it.
pub(super) fn values(
    tuning: &Tuning,
    columns: &[Parameter],
    trial: TrialId,
    tuned: &BTreeMap<String, String>,
) -> Vec<Option<String>> {
    let has_definitions = tuning.definition.has_definitions();
    let value = |(index, column): (usize, &Parameter)| match index {
        0 if has_definitions => tuning.request.definition_name(trial.0).map(str::to_owned),
        _ => tuned.get(&column.name).cloned(),
    };
    columns.iter().enumerate().map(value).collect()
}
