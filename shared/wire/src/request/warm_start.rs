//! `WarmStartConfig`: the parents of a tuning, and which tunings can be parents of it.

use std::collections::BTreeMap;

use search::{Configuration, WarmStartType};
use serde_json::{Map, Value};

use super::initial::text;
use super::ranges::Kind;
use super::{Request, shortened};

/// The most hyperparameters that may have a range in the parent and a static value in the new tuning, or the reverse.
const CHANGED_MAX: usize = 10;
/// The members of a channel that a description may have with these defaults, although no request set them.
const CHANNEL_DEFAULTS: [(&str, &str); 3] = [
    ("CompressionType", "None"),
    ("RecordWrapperType", "None"),
    ("S3DataDistributionType", "FullyReplicated"),
];

impl Request {
    /// Returns the type of the warm start and the names of the parents; `None` without `WarmStartConfig`.
    pub fn warm_start(&self) -> Option<(WarmStartType, Vec<&str>)> {
        let config = self.at("WarmStartConfig")?;
        let kind = match config["WarmStartType"].as_str()? {
            "IdenticalDataAndAlgorithm" => WarmStartType::IdenticalDataAndAlgorithm,
            _ => WarmStartType::TransferLearning,
        };
        let parents = config["ParentHyperParameterTuningJobs"].as_array()?.iter();
        Some((kind, parents.filter_map(|parent| parent["HyperParameterTuningJobName"].as_str()).collect()))
    }

    /// Returns the number of `KnownResults`.
    pub fn known_result_count(&self) -> usize {
        self.given_results().len()
    }

    /// Returns `KnownResults`: configurations and their values of the objective.
    pub fn known_results(&self) -> impl Iterator<Item = (Configuration, f64)> {
        self.given_results().iter().filter_map(|result| {
            let value = self.known_value(result)?;
            let own = result.iter().filter(|(name, _)| *name != self.objective_metric());
            Some((Configuration(own.map(|(name, value)| (name.clone(), text(value))).collect()), value))
        })
    }

    /// Returns the path and the message of the first of `KnownResults` that has no value, or lacks a hyperparameter.
    pub(crate) fn wrong_known_result(&self) -> Option<(String, String)> {
        let metric = self.objective_metric();
        let tuned = || self.ranges().filter_map(|(_, _, range)| range.name.as_deref());
        let fault = |result: &Map<String, Value>| {
            if self.known_value(result).is_none() {
                return Some((metric, "is the objective, which must be a finite number"));
            }
            tuned().find(|name| !result.contains_key(*name)).map(|name| (name, "has a range"))
        };
        let (index, (name, why)) =
            (0_usize..).zip(self.given_results()).find_map(|(index, one)| Some((index, fault(one)?)))?;
        let name = shortened(name);
        Some((
            format!("Controller.KnownResults[{index}]"),
            format!(
                "Invalid KnownResults: '{name}' {why}; add its value to each result, or remove the result"
            ),
        ))
    }

    fn given_results(&self) -> &[Map<String, Value>] {
        self.fields().controller.known_results.as_deref().unwrap_or_default()
    }

    fn known_value(&self, result: &Map<String, Value>) -> Option<f64> {
        let value = text(result.get(self.objective_metric())?);
        value.trim().parse().ok().filter(|value: &f64| value.is_finite())
    }

    /// Returns the static hyperparameters.
    pub fn static_configuration(&self) -> Configuration {
        let all = self.static_hyperparameters().into_iter().flatten();
        let text = all.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        Configuration(text.collect())
    }

    /// Checks that this tuning can start from the tuning named `name`, whose request is `parent`. Returns the reason why
    /// it cannot.
    pub fn check_parent(&self, name: &str, parent: &Self) -> Result<(), String> {
        if parent.definitions().nth(1).is_some() {
            return Err(format!(
                "the parent tuning job {name} has several training job definitions, and its trials have no space in common; \
                 name another parent"
            ));
        }
        let objective = |request: &Self| (request.objective(), request.objective_metric().to_owned());
        if objective(self) != objective(parent) {
            return Err(format!(
                "the parent tuning job {name} has the objective {:?} {}, this one has {:?} {}; set the same Type and \
                 MetricName",
                parent.objective(),
                parent.objective_metric(),
                self.objective(),
                self.objective_metric()
            ));
        }
        // The controller sets the resource hyperparameter of a tuning that has one.
        let resources = [self.resource_hyperparameter(), parent.resource_hyperparameter()];
        let (own, theirs) = (self.named_kinds(&resources), parent.named_kinds(&resources));
        let missing = |names: &BTreeMap<&str, Option<Kind>>, of: &BTreeMap<&str, Option<Kind>>| {
            of.keys().find(|name| !names.contains_key(*name)).map(|name| shortened(name))
        };
        if let Some(name_of_one) = missing(&own, &theirs).or_else(|| missing(&theirs, &own)) {
            return Err(format!(
                "The set of tunable plus static HyperParameter names is not the same across current and parent tuning \
                 jobs: only one of this tuning job and {name} has '{name_of_one}'; give it a range or a static value \
                 in both"
            ));
        }
        let both = || own.iter().filter_map(|(key, kind)| Some((*key, *kind, *theirs.get(key)?)));
        let retyped = both().find(|(_, own, theirs)| own.is_some() && theirs.is_some() && own != theirs);
        if let Some((key, ..)) = retyped {
            return Err(format!(
                "hyperparameter '{}' has a range of another type in the parent tuning job {name}; use the same list of \
                 ParameterRanges",
                shortened(key)
            ));
        }
        let changed = both().filter(|(_, own, theirs)| own.is_some() != theirs.is_some()).count();
        if changed > CHANGED_MAX {
            return Err(format!(
                "{changed} hyperparameters are tuned in only one of this tuning job and its parent {name}, and at most \
                 {CHANGED_MAX} may be; tune the others in both or in none"
            ));
        }
        self.check_identical(name, parent)
    }

    /// Checks that the algorithm and the data are those of the parent, where the type of the warm start requires it.
    fn check_identical(&self, name: &str, parent: &Self) -> Result<(), String> {
        if self.warm_start().is_none_or(|(kind, _)| kind != WarmStartType::IdenticalDataAndAlgorithm) {
            return Ok(());
        }
        let paths = [
            "TrainingJobDefinition.AlgorithmSpecification.TrainingImage",
            "TrainingJobDefinition.AlgorithmSpecification.AlgorithmName",
            "TrainingJobDefinition.InputDataConfig",
        ];
        let of = |request: &Self, path: &str| request.at(path).map(without_defaults);
        paths.into_iter().find(|path| of(self, path) != of(parent, path)).map_or(Ok(()), |path| {
            Err(format!(
                "{path} differs from that of the parent tuning job {name}, but WarmStartType is \
                 IdenticalDataAndAlgorithm; set WarmStartType to TransferLearning"
            ))
        })
    }

    /// Returns all hyperparameters of the request but `without`, with the kind of their range; `None` = a static value.
    fn named_kinds(&self, without: &[Option<&str>]) -> BTreeMap<&str, Option<Kind>> {
        let fixed =
            self.static_hyperparameters().into_iter().flatten().map(|(name, _)| (name.as_str(), None));
        let tuned = self.ranges().filter_map(|(_, kind, range)| Some((range.name.as_deref()?, Some(kind))));
        fixed.chain(tuned).filter(|(name, _)| !without.contains(&Some(*name))).collect()
    }
}

/// Returns a value without the members that have their default.
fn without_defaults(value: &Value) -> Value {
    let is_default = |name: &str, value: &Value| {
        CHANNEL_DEFAULTS.iter().any(|(own, default)| *own == name && value.as_str() == Some(*default))
    };
    match value {
        Value::Object(members) => {
            let given = members.iter().filter(|(name, value)| !is_default(name, value));
            given.map(|(name, value)| (name.clone(), without_defaults(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_defaults).collect(),
        other => other.clone(),
    }
}
