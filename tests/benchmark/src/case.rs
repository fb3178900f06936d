//! A case of the benchmark: a table, and the request for tunings on it.

use curves::Table;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tuning::definition::Definition;
use tuning::unit::time::Time;
use wire::request::{PriceAnswer, Request, RequestError};

use crate::error::BenchmarkError;

/// The kind of a hyperparameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A floating-point number.
    Continuous,
    /// An integer.
    Integer,
}

/// A hyperparameter of a space.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Range {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
    /// `Linear` or `Logarithmic`.
    pub scaling: String,
}

/// The file `NAME.space.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SpaceFile {
    /// `Minimize` or `Maximize`.
    #[serde(rename = "type")]
    pub direction: String,
    /// Epochs of each curve.
    pub max_resource: u32,
    /// The hyperparameters.
    pub parameters: Vec<Range>,
}

/// Where a table comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Real training, recorded. Defaults were chosen on it, or may have been.
    Recorded,
    /// Real training, or a model of it, recorded by others. The sampler was not chosen on it.
    HeldOut,
    /// A computed function.
    Analytic,
}

/// A table, and the request for tunings on it.
#[derive(Debug)]
pub struct Case {
    /// The name of the table.
    pub name: String,
    /// Where the table comes from.
    pub source: Source,
    /// The learning curves.
    pub table: Table,
    body: Value,
    observable: Scale,
    full: Scale,
}

/// The best and the median of a value of each row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// The best value.
    pub best: f64,
    /// The median: the mean of both middle values if there are two.
    pub median: f64,
}

impl Scale {
    fn of(mut values: Vec<f64>, maximize: bool) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        let last = values.len().saturating_sub(1);
        let best = if maximize { at(last) } else { at(0) };
        Self { best, median: f64::midpoint(at(last / 2), at(values.len() / 2)) }
    }

    fn regret(self, value: f64) -> f64 {
        (self.best - value) / (self.best - self.median)
    }
}

impl Case {
    /// Returns the case of a table, with its request.
    pub fn new(name: &str, table: Table, body: Value, source: Source) -> Self {
        let better = |a: f64, b: f64| if table.maximize { a.max(b) } else { a.min(b) };
        let of = |value: &dyn Fn(&[f64]) -> Option<f64>| {
            Scale::of(table.rows.iter().filter_map(|row| value(&row.values)).collect(), table.maximize)
        };
        let observable = of(&|values| values.iter().copied().reduce(better));
        let full = of(&|values| values.last().copied());
        Self { name: name.to_owned(), source, table, body, observable, full }
    }

    /// Returns the best and the median of the best value of each row at any epoch.
    pub fn observable(&self) -> Scale {
        self.observable
    }

    /// Returns the regret of a value at any epoch: (best - value) / (best - median), by [`Self::observable`].
    pub fn regret(&self, value: f64) -> f64 {
        self.observable.regret(value)
    }

    /// Returns the regret of a value at the last epoch, by the best and the median value at the last epoch.
    pub fn full_regret(&self, value: f64) -> f64 {
        self.full.regret(value)
    }

    /// Returns the tuning of at most `jobs` training jobs with these fields of the controller.
    pub fn definition(&self, controller: &Value, jobs: u32) -> Result<Definition, BenchmarkError> {
        let mut body = self.body.clone();
        body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = jobs.into();
        body["Controller"] = controller.clone();
        definition(body).map_err(|why| BenchmarkError::Request { table: self.name.clone(), why })
    }
}

/// Returns the tuning of a request.
pub(crate) fn definition(body: Value) -> Result<Definition, RequestError> {
    Request::check(body)?.definition(Time::EPOCH, "000000", &PriceAnswer::default())
}

/// Returns a Hyperband request with all values of a table's space: from 1 to all epochs, 4 parallel jobs.
pub(crate) fn request(name: &str, space: &SpaceFile) -> Value {
    let ranges = |kind: Kind| -> Vec<Value> {
        let ranges = space.parameters.iter().filter(|range| range.kind == kind);
        let range = |range: &Range| {
            json!({
                "Name": range.name,
                "MinValue": range.min.to_string(),
                "MaxValue": range.max.to_string(),
                "ScalingType": range.scaling,
            })
        };
        ranges.map(range).collect()
    };
    json!({
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobConfig": {
            "Strategy": "Hyperband",
            "StrategyConfig": {
                "HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": space.max_resource},
            },
            "HyperParameterTuningJobObjective": {"Type": space.direction, "MetricName": "objective"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 30, "MaxParallelTrainingJobs": 4},
            "ParameterRanges": {
                "ContinuousParameterRanges": ranges(Kind::Continuous),
                "IntegerParameterRanges": ranges(Kind::Integer),
            },
        },
        "TrainingJobDefinition": {
            "AlgorithmSpecification": {
                "TrainingImage": name,
                "TrainingInputMode": "File",
                "MetricDefinitions": [{"Name": "objective", "Regex": "value=([-+.\\w]*\\w)"}],
            },
            "RoleArn": "arn:aws:iam::111122223333:role/example-training-role",
            "OutputDataConfig": {"S3OutputPath": "s3://example-bucket/out"},
            "ResourceConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1},
            "StoppingCondition": {"MaxRuntimeInSeconds": 3_600},
        },
    })
}
