//! The request as Describe shows it: AMT rewrites some of it, and clients rely on that (`attach` of the Python SDK
//! fails without).
//!
//! Assumes a checked request. What AMT drops is dropped: `OutputDataConfig.CompressionType`,
//! `MaxPendingTimeInSeconds`, `InstanceGroupNames`. Never changes the stored request.

use serde_json::{Map, Value, json};

use crate::request::{OBJECTIVE_HYPERPARAMETER, Request};

/// `HyperParameterTuningJobConfig` with what clients expect there.
pub(super) fn config(request: &Request) -> Value {
    let mut config = request.object("HyperParameterTuningJobConfig").cloned().unwrap_or_default();
    config.entry("TrainingJobEarlyStoppingType").or_insert_with(|| json!("Off"));
    config.insert("ResourceLimits".to_owned(), resource_limits(request));
    if let Some(ranges) = member(&mut config, "ParameterRanges") {
        for list in ["IntegerParameterRanges", "ContinuousParameterRanges", "CategoricalParameterRanges"] {
            ranges.entry(list).or_insert_with(|| json!([]));
        }
    }
    Value::Object(config)
}

/// `ResourceLimits` with the number of training jobs, which AMT's clients need and may leave out here.
pub(super) fn resource_limits(request: &Request) -> Value {
    let mut limits =
        request.object("HyperParameterTuningJobConfig.ResourceLimits").cloned().unwrap_or_default();
    limits.entry("MaxNumberOfTrainingJobs").or_insert_with(|| json!(request.max_jobs()));
    Value::Object(limits)
}

/// `TrainingJobDefinition` with what clients expect there.
pub(super) fn definition(request: &Request, tuning_arn: &str) -> Value {
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
        shown.insert("ResourceConfig".to_owned(), Value::Object(request.resource_config(0)));
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

/// The ARN of an algorithm given by name: in the account and Region of the tuning job.
fn algorithm_arn(name: &str, tuning_arn: &str) -> String {
    match tuning_arn.rsplit_once(':') {
        Some((account, _)) if !name.contains(':') => format!("{account}:algorithm/{name}"),
        _ => name.to_owned(),
    }
}
