//! `InitialConfigurations`: the configurations that a tuning job tries first.

use search::{Configuration, Domain, EncodeError, EncodeRule, Space};
use serde_json::{Map, Value};

use super::{Request, RequestError, shortened};

const PATH: &str = "Controller.InitialConfigurations";

impl Request {
    /// Returns the number of `InitialConfigurations`.
    pub fn initial_count(&self) -> usize {
        self.given_initial().len()
    }

    /// Returns `InitialConfigurations`, with values in the form in which training jobs get them.
    pub(super) fn initial_configurations(&self, space: &Space) -> Result<Vec<Configuration>, RequestError> {
        let configurations = self.given_initial().iter().map(|given| space.normalized(&configuration(given)));
        configurations
            .collect::<Result<_, _>>()
            .map_err(|error| RequestError::field(PATH, &error.to_string()))
    }

    /// Returns the path and the message of each value that is not in the range of its parameter.
    pub(crate) fn wrong_initial(&self, space: &Space) -> Vec<(String, String)> {
        let wrong = |(index, given): (usize, &Map<String, Value>)| {
            let Err(EncodeError { parameter, rule }) = space.normalized(&configuration(given)) else {
                return None;
            };
            let name = shortened(&parameter);
            let value = shortened(&given.get(&parameter).map(text).unwrap_or_default());
            let message = match rule {
                EncodeRule::NotInSpace | EncodeRule::Missing => format!(
                    "Invalid InitialConfigurations: '{name}' has no range in ParameterRanges; remove it, add a range, \
                     or use one of {}",
                    listed(space.parameters().iter().map(|parameter| parameter.name.as_str()))
                ),
                EncodeRule::NotANumber | EncodeRule::OutOfDomain => format!(
                    "Invalid value '{value}' of '{name}': expected {}; change the value, or widen the range in \
                     ParameterRanges",
                    expected(space, &parameter)
                ),
            };
            Some((format!("{PATH}[{index}].{name}"), message))
        };
        self.given_initial().iter().enumerate().filter_map(wrong).collect()
    }

    fn given_initial(&self) -> &[Map<String, Value>] {
        self.fields.controller.initial.as_deref().unwrap_or_default()
    }
}

/// Returns the values of a parameter as a phrase.
fn expected(space: &Space, name: &str) -> String {
    match space.parameters().iter().find(|parameter| parameter.name == name).map(|found| &found.domain) {
        Some(Domain::Integer { min, max, .. }) => format!("a whole number from {min} to {max}"),
        Some(Domain::Continuous { min, max, .. }) => format!("a number from {min} to {max}"),
        Some(Domain::Categorical { values } | Domain::Ordinal { values }) => {
            format!("one of {}", listed(values.iter().map(String::as_str)))
        }
        None => "a value in its range".to_owned(),
    }
}

/// Returns a list of names for a message. It has at most as many entries as a space has parameters or values.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(shortened).collect::<Vec<_>>().join(", ")
}

fn configuration(given: &Map<String, Value>) -> Configuration {
    Configuration(given.iter().map(|(name, value)| (name.clone(), text(value))).collect())
}

/// Returns the text of a value, as training jobs get their hyperparameters.
pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
