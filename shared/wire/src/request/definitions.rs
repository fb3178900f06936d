//! `TrainingJobDefinitions`: a request with several training job definitions is checked and read as one request for each,
//! with its own objective and ranges.
//!
//! The number of a trial names its definition ([`tuning::definition::Definition::definition_of`]).

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use tuning::unit::ids::{ChoiceId, DefinitionId, TrialId};

use super::{DEFINITION, Request, Strategy, Violation};

pub(crate) const LIST: &str = "TrainingJobDefinitions";
/// The most definitions of a request.
pub(crate) const DEFINITIONS_MAX: usize = 10;
const CONFIG: &str = "HyperParameterTuningJobConfig";
/// Members of a definition in the list, and the members of `HyperParameterTuningJobConfig` that have their place in a
/// request with one definition.
pub(crate) const MOVED: [(&str, &str); 2] =
    [("TuningObjective", "HyperParameterTuningJobObjective"), ("HyperParameterRanges", "ParameterRanges")];
/// Shows a field of a request.
type Shown = fn(&Request) -> String;

/// What all definitions must set alike.
const ALIKE: [(&str, Shown); 4] = [
    ("TuningObjective.MetricName", |one| one.objective_metric().to_owned()),
    ("TuningObjective.Type", |one| format!("{:?}", one.objective())),
    ("StaticHyperParameters: the number of epochs", |one| {
        shown(one.hyperband().and_then(|hyperband| hyperband.max_resource))
    }),
    ("the numbering of epochs in the log", |one| format!("{:?}", one.epochs())),
];
/// Fields of `Controller` that work with one definition only.
const OF_ONE: [&str; 4] = ["InstanceCounts", "ScaleWithInstances", "InitialConfigurations", "KnownResults"];

/// Returns the request that `body` is for each of its training job definitions; empty without a list of them.
pub(super) fn split(body: &Value) -> Vec<Value> {
    let definitions = body.get(LIST).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let one = |definition: &Value| {
        let mut body = body.as_object().cloned().unwrap_or_default();
        body.remove(LIST);
        let mut definition = definition.clone();
        let mut config = body.get(CONFIG).cloned().unwrap_or_default();
        if let (Some(definition), Some(config)) = (definition.as_object_mut(), config.as_object_mut()) {
            for (own, of_config) in MOVED {
                config.remove(of_config);
                if let Some(value) = definition.remove(own) {
                    config.insert(of_config.to_owned(), value);
                }
            }
        }
        body.insert(CONFIG.to_owned(), config);
        body.insert(DEFINITION.to_owned(), definition);
        Value::Object(body)
    };
    // A longer list is rejected.
    definitions.iter().take(DEFINITIONS_MAX).map(one).collect()
}

/// Returns the training job definitions of `body`: the one, or those of the list.
pub fn job_definitions_mut(body: &mut Value) -> impl Iterator<Item = &mut Value> {
    let members = body.as_object_mut().into_iter().flat_map(Map::iter_mut);
    let own = members.filter(|(name, _)| [DEFINITION, LIST].contains(&name.as_str()));
    own.flat_map(|(_, definition)| match definition {
        Value::Array(list) => list.as_mut_slice(),
        one => std::slice::from_mut(one),
    })
}

/// Changes the `TrainingJobDefinition` of `body`, or each of the list as if it were alone.
pub(super) fn change_each(body: &mut Value, change: impl Fn(&mut Value)) {
    let mut each = split(body);
    if each.is_empty() {
        return change(body);
    }
    each.iter_mut().for_each(change);
    let Some(list) = body.get_mut(LIST).and_then(Value::as_array_mut) else { return };
    for (definition, mut changed) in list.iter_mut().zip(each) {
        let (Some(sent), Some(Value::Object(mut own))) =
            (definition.as_object(), changed.get_mut(DEFINITION).map(Value::take))
        else {
            continue;
        };
        let moved = MOVED.iter().filter_map(|(name, _)| Some(((*name).to_owned(), sent.get(*name)?.clone())));
        own.extend(moved.collect::<Vec<_>>());
        *definition = Value::Object(own);
    }
}

/// Returns what `of_one` returns for the body with each definition alone, with paths in the list.
pub(super) fn paths_of_each(body: &Value, of_one: impl Fn(&Value) -> Vec<String>) -> Vec<String> {
    let each = split(body);
    if each.is_empty() {
        return of_one(body);
    }
    let of_each = each.iter().enumerate();
    of_each
        .flat_map(|(index, body)| of_one(body).into_iter().map(move |path| in_list(&path, index)))
        .collect()
}

/// Returns a path or a message of the request of one definition, as the whole request has it.
fn in_list(text: &str, index: usize) -> String {
    let own = format!("{LIST}[{index}].");
    let text = text.replace(&format!("{DEFINITION}."), &own);
    let text = text.replace(&format!("'{DEFINITION}'"), &format!("'{LIST}[{index}]'"));
    MOVED.iter().fold(text, |text, (name, of_config)| {
        text.replace(&format!("{CONFIG}.{of_config}"), &format!("{own}{name}"))
    })
}

impl Request {
    /// Returns whether the request has several training job definitions, or a list with one.
    pub fn has_definition_list(&self) -> bool {
        self.at_whole(LIST).is_some()
    }

    /// Returns the path in the whole request of a path in the request of a definition.
    pub fn path_of(&self, path: &str, definition: usize) -> String {
        if self.has_definition_list() { in_list(path, definition) } else { path.to_owned() }
    }

    /// Returns `TrainingJobDefinitions`, as sent.
    pub(crate) fn definition_list(&self) -> &[Value] {
        self.at_whole(LIST).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Returns the request of each training job definition.
    pub fn definitions(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.others)
    }

    /// Returns the request of the training job definition of a trial, with the objective and the ranges of that definition.
    pub fn of_trial(&self, trial: u32) -> &Self {
        self.definitions().nth(self.definition_of(trial).index()).unwrap_or(self)
    }

    fn definition_of(&self, trial: u32) -> DefinitionId {
        DefinitionId::of(TrialId(trial), self.others.len().saturating_add(1))
    }

    /// Returns the request of the training job definition of a trial, and the number there of an instance choice of the
    /// tuning.
    pub(crate) fn with_choice(&self, trial: u32, choice: ChoiceId) -> (&Self, ChoiceId) {
        let before = self.definitions().take(self.definition_of(trial).index());
        let before: usize = before.map(|one| one.own_choices().len()).sum();
        (self.of_trial(trial), ChoiceId::at(choice.index().saturating_sub(before)))
    }

    /// Returns `DefinitionName` of the training job definition of a trial.
    pub fn definition_name(&self, trial: u32) -> Option<&str> {
        self.of_trial(trial).own_name()
    }

    /// Returns `DefinitionName` of the training job definition; of several, that of the first.
    pub fn own_name(&self) -> Option<&str> {
        self.at("TrainingJobDefinition.DefinitionName").and_then(Value::as_str)
    }

    /// Returns `DefinitionName` of each element of a list of training job definitions.
    pub fn definition_names(&self) -> impl Iterator<Item = &str> {
        self.definition_list().iter().filter_map(|definition| definition.get("DefinitionName")?.as_str())
    }

    /// Returns the violations of a request with a list of definitions: those of the list and, by `rules`, of each
    /// definition; without one, the fields that must be alike.
    pub(crate) fn check_definitions(&self, rules: impl Fn(&Self) -> Vec<Violation>) -> Vec<Violation> {
        let mut all = self.wrong_names();
        if self.definition_list().len() > 1 {
            all.extend(self.of_one_definition().into_iter().map(|(path, message)| at(path, &message)));
        }
        // Rules about such fields would contradict this.
        if !all.is_empty() {
            return all;
        }
        let mut known = BTreeSet::new();
        for (index, one) in self.definitions().enumerate() {
            for Violation { path, message } in rules(one) {
                let violation = Violation { path: in_list(&path, index), message: in_list(&message, index) };
                if known.insert((violation.path.clone(), violation.message.clone())) {
                    all.push(violation);
                }
            }
        }
        if all.is_empty() { self.unequal() } else { all }
    }

    /// Returns the violations of fields that a request with a list of definitions must not have, or must have in the list.
    pub(crate) fn misplaced(&self) -> Vec<Violation> {
        if !self.has_definition_list() {
            return Vec::new();
        }
        let mut all = Vec::new();
        if self.at_whole(DEFINITION).is_some() {
            let message = "Invalid TrainingJobDefinition: expected either TrainingJobDefinition or \
                           TrainingJobDefinitions, but the request has both; remove one";
            all.push(at(DEFINITION.to_owned(), message));
        }
        for (own, of_config) in MOVED {
            let path = format!("{CONFIG}.{of_config}");
            if self.at_whole(&path).is_some() {
                let message = format!(
                    "Invalid {of_config}: with TrainingJobDefinitions, each definition has its own; move it to {own} of \
                     each definition"
                );
                all.push(at(path, &message));
            }
        }
        all
    }

    /// Returns the violations of definitions without a name, or with that of another one.
    fn wrong_names(&self) -> Vec<Violation> {
        let mut all = Vec::new();
        let mut names = BTreeSet::new();
        let objects =
            self.definition_list().iter().enumerate().filter(|(_, definition)| definition.is_object());
        for (index, definition) in objects {
            let path = format!("{LIST}[{index}].DefinitionName");
            match definition.get("DefinitionName").and_then(Value::as_str) {
                None => {
                    let message =
                        "Missing DefinitionName: each of TrainingJobDefinitions needs one, for example 'a'";
                    all.push(at(path, message));
                }
                Some(name) if !names.insert(name.to_owned()) => {
                    let message = format!(
                        "Invalid DefinitionName '{}': two of TrainingJobDefinitions have this name; rename one",
                        super::shortened(name)
                    );
                    all.push(at(path, &message));
                }
                Some(_) => {}
            }
        }
        all
    }

    /// Returns the fields that work with one definition only.
    fn of_one_definition(&self) -> Vec<(String, String)> {
        let of_controller = OF_ONE.iter().map(|field| format!("Controller.{field}"));
        let fields = of_controller.chain(["WarmStartConfig".to_owned()]);
        let set = fields.filter(|path| self.at_whole(path).is_some());
        let mut all: Vec<_> = set
            .map(|path| {
                let field = path.rsplit('.').next().unwrap_or(&path).to_owned();
                let message = format!(
                    "Invalid {field}: it works with one training job definition; remove it, or submit a tuning job for \
                     each definition"
                );
                (path, message)
            })
            .collect();
        if self.strategy() == Strategy::Grid {
            let message = "Invalid Strategy 'Grid': it works with one training job definition; set Strategy to \
                           'Bayesian', 'Random' or 'Hyperband', or submit a tuning job for each definition";
            all.push((format!("{CONFIG}.Strategy"), message.to_owned()));
        }
        all
    }

    /// Returns the violations of fields that all definitions must set alike.
    fn unequal(&self) -> Vec<Violation> {
        let mut all = Vec::new();
        for (index, other) in (1_usize..).zip(&self.others) {
            for (field, value) in ALIKE {
                let (own, others) = (value(self), value(other));
                if own != others {
                    let path = format!("{LIST}[{index}]");
                    let message = format!(
                        "Invalid {field}: all of TrainingJobDefinitions must set the same, but the first has '{}' and \
                         this one has '{}'; {} (at '{path}')",
                        super::shortened(&own),
                        super::shortened(&others),
                        if field.starts_with("the numbering") {
                            "set Controller.EpochPattern, EpochBase and EpochNumbering, which are for all"
                        } else {
                            "set the same in both"
                        }
                    );
                    all.push(Violation { path, message });
                }
            }
        }
        all
    }
}

fn shown<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

fn at(path: String, message: &str) -> Violation {
    Violation { message: format!("{message} (at '{path}')"), path }
}
