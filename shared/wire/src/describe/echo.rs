//! The request as Describe shows it. AMT rewrites some fields, and clients depend on that (`attach` of the Python SDK
//! fails otherwise).
//!
//! The request must be validated. Like AMT, this module omits `OutputDataConfig.CompressionType`,
//! `MaxPendingTimeInSeconds` and `InstanceGroupNames`. It never changes the stored request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tuning::unit::ids::ChoiceId;

use super::TuningJob;
use crate::request::{DEFINITION, LIST, MOVED, OBJECTIVE_HYPERPARAMETER, Request};

/// The members of a request that Describe shows. They stay JSON, because Describe also shows members that the
/// controller does not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestEcho {
    /// `HyperParameterTuningJobConfig`.
    #[serde(rename = "HyperParameterTuningJobConfig")]
    #[schemars(with = "Map<String, Value>")]
    pub config: Value,
    /// `TrainingJobDefinition`; null with a list of definitions.
    #[serde(rename = "TrainingJobDefinition", default, skip_serializing_if = "Value::is_null")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub definition: Value,
    /// `TrainingJobDefinitions`.
    #[serde(rename = "TrainingJobDefinitions", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub definitions: Vec<Value>,
    #[serde(rename = "WarmStartConfig", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    warm_start: Option<Value>,
    #[serde(rename = "Autotune", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    autotune: Option<Value>,
}

impl RequestEcho {
    /// Returns the members of `request` for the tuning job with this ARN.
    pub fn of(request: &Request, tuning_arn: &str) -> Self {
        Self {
            config: config(request),
            definition: if request.has_definition_list() {
                Value::Null
            } else {
                definition(request, tuning_arn)
            },
            definitions: definitions(request, tuning_arn),
            warm_start: request.at("WarmStartConfig").cloned(),
            autotune: request.at("Autotune").cloned(),
        }
    }
}

/// Returns `Controller` of the request.
pub fn settings(request: &Request) -> Map<String, Value> {
    request.object("Controller").cloned().unwrap_or_default()
}

/// Returns `HyperParameterTuningJobConfig` with the defaults that clients expect.
fn config(request: &Request) -> Value {
    let whole = request.body().get("HyperParameterTuningJobConfig").and_then(Value::as_object);
    let mut config = whole.cloned().unwrap_or_default();
    config.entry("TrainingJobEarlyStoppingType").or_insert_with(|| json!("Off"));
    config.insert("ResourceLimits".to_owned(), resource_limits(request));
    if let Some(ranges) = member(&mut config, "ParameterRanges") {
        complete(ranges);
    }
    Value::Object(config)
}

/// Adds the lists of ranges that are missing.
fn complete(ranges: &mut Map<String, Value>) {
    for list in ["IntegerParameterRanges", "ContinuousParameterRanges", "CategoricalParameterRanges"] {
        ranges.entry(list).or_insert_with(|| json!([]));
    }
}

/// Returns `TrainingJobDefinitions`, each with its objective and its ranges.
fn definitions(request: &Request, tuning_arn: &str) -> Vec<Value> {
    let shown = |(one, sent): (&Request, &Value)| {
        let mut shown = definition(one, tuning_arn);
        for (name, _) in MOVED {
            shown[name] = sent.get(name).cloned().unwrap_or_default();
        }
        if let Some(ranges) = shown["HyperParameterRanges"].as_object_mut() {
            complete(ranges);
        }
        shown
    };
    request.definitions().zip(request.definition_list()).map(shown).collect()
}

/// Returns `ResourceLimits` with `MaxNumberOfTrainingJobs`, which is optional here but which AMT's clients expect.
pub fn resource_limits(request: &Request) -> Value {
    let mut limits =
        request.object("HyperParameterTuningJobConfig.ResourceLimits").cloned().unwrap_or_default();
    limits.entry("MaxNumberOfTrainingJobs").or_insert_with(|| json!(request.max_jobs()));
    Value::Object(limits)
}

/// Returns `TrainingJobDefinition` with the defaults that clients expect.
fn definition(request: &Request, tuning_arn: &str) -> Value {
    let mut shown = request.object("TrainingJobDefinition").cloned().unwrap_or_default();
    let statics = shown.entry("StaticHyperParameters").or_insert_with(|| json!({}));
    if let Some(statics) = statics.as_object_mut() {
        statics.insert(OBJECTIVE_HYPERPARAMETER.to_owned(), json!(request.objective_metric()));
    }
    let metrics = request.described_metrics();
    if let Some(specification) = member(&mut shown, "AlgorithmSpecification") {
        specification.insert("MetricDefinitions".to_owned(), Value::Array(metrics));
        if let Some(Value::String(name)) = specification.get_mut("AlgorithmName") {
            *name = algorithm_arn(name, tuning_arn);
        }
    }
    let tuning_resources = "TrainingJobDefinition.HyperParameterTuningResourceConfig";
    if request.at(&format!("{tuning_resources}.InstanceConfigs")).is_none() {
        shown.remove("HyperParameterTuningResourceConfig");
        shown.insert("ResourceConfig".to_owned(), Value::Object(request.resource_config(ChoiceId(0))));
    }
    if let Some(output) = member(&mut shown, "OutputDataConfig") {
        output.entry("KmsKeyId").or_insert_with(|| json!(""));
        output.remove("CompressionType");
    }
    if let Some(condition) = member(&mut shown, "StoppingCondition") {
        condition.remove("MaxPendingTimeInSeconds");
    }
    for channel in shown.get_mut("InputDataConfig").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(Value::Object(source)) = channel.pointer_mut("/DataSource/S3DataSource") {
            source.remove("InstanceGroupNames");
        }
    }
    Value::Object(shown)
}

fn member<'a>(object: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Map<String, Value>> {
    object.get_mut(name).and_then(Value::as_object_mut)
}

/// Returns the ARN of an algorithm, in the account and Region of the tuning job.
fn algorithm_arn(name: &str, tuning_arn: &str) -> String {
    match tuning_arn.rsplit_once(':') {
        Some((account, _)) if !name.contains(':') => format!("{account}:algorithm/{name}"),
        _ => name.to_owned(),
    }
}

/// Returns the path of the first field in which the tuning job in a Describe response differs from `request`, or `None`
/// if all fields are equal. Names are not compared, and tags neither, because Describe does not show them.
pub fn first_difference(described: &TuningJob, request: &Request) -> Option<String> {
    let wanted = RequestEcho::of(request, &described.base.arn);
    let list = |definitions: &Vec<Value>| Value::Array(definitions.clone());
    let of_controller = |members: &Map<String, Value>| Value::Object(members.clone());
    [
        ("HyperParameterTuningJobConfig", &described.request.config, &wanted.config),
        ("TrainingJobDefinition", &described.request.definition, &wanted.definition),
        ("TrainingJobDefinitions", &list(&described.request.definitions), &list(&wanted.definitions)),
        ("Controller", &of_controller(&described.controller.settings), &of_controller(&settings(request))),
    ]
    .into_iter()
    .find_map(|(name, shown, wanted)| difference(shown, wanted).map(|inner| format!("{name}{inner}")))
}

/// Returns `.path` of the first difference of two values: empty if the values themselves differ, `None` if they are
/// equal.
pub fn difference(one: &Value, other: &Value) -> Option<String> {
    let (Value::Object(a), Value::Object(b)) = (one, other) else {
        return (one != other).then(String::new);
    };
    let mut names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
    names.find_map(|name| match (a.get(name), b.get(name)) {
        (Some(a), Some(b)) => Some(format!(".{name}{}", difference(a, b)?)),
        _ => Some(format!(".{name}")),
    })
}

/// Returns a request that is equivalent to the one in a Describe response. It removes the defaults that `config` and
/// `definition` add, except those that change no decision. It does not validate the request: the response may contain
/// additions that validation rejects, and the rules may be those of an earlier release.
pub fn request_from_description(described: &TuningJob) -> Request {
    let plain = |shown: &Value| {
        let mut shown = shown.clone();
        if let Some(statics) = shown.get_mut("StaticHyperParameters").and_then(Value::as_object_mut) {
            statics.remove(OBJECTIVE_HYPERPARAMETER);
        }
        if let Some(output) = shown.get_mut("OutputDataConfig").and_then(Value::as_object_mut)
            && output.get("KmsKeyId").is_some_and(|key| key == "")
        {
            output.remove("KmsKeyId");
        }
        shown
    };
    let definitions: Vec<Value> = described.request.definitions.iter().map(plain).collect();
    let (name, definitions) = if definitions.is_empty() {
        (DEFINITION, plain(&described.request.definition))
    } else {
        (LIST, Value::Array(definitions))
    };
    Request::from_stored(json!({
        "HyperParameterTuningJobName": described.base.name,
        "HyperParameterTuningJobConfig": described.request.config,
        name: definitions,
        "Controller": described.controller.settings,
    }))
}
