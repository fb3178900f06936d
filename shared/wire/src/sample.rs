//! Valid requests for tests of any crate. A test states only the members in which its request differs.

use serde_json::{Value, json};

/// Returns a request for 8 training jobs of up to 9 epochs, in the brackets of Hyperband with eta 3, 2 in parallel, under a
/// cap of 5 dollars.
pub fn request(name: &str) -> Value {
    json!({
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobConfig": {
            "Strategy": "Hyperband",
            "StrategyConfig": {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 9}},
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "auc"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 8, "MaxParallelTrainingJobs": 2},
            "ParameterRanges": {"ContinuousParameterRanges": [{"Name": "lr", "MinValue": "0.1", "MaxValue": "1"}]},
        },
        "TrainingJobDefinition": {
            "AlgorithmSpecification": {
                "TrainingImage": "image:1",
                "TrainingInputMode": "File",
                "MetricDefinitions": [{"Name": "auc", "Regex": r"auc=(\S+)"}],
            },
            "RoleArn": "arn:aws:iam::111122223333:role/example-training-role",
            "OutputDataConfig": {"S3OutputPath": "s3://example-bucket/out"},
            "ResourceConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1},
            "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        },
        "Controller": {"MaxCostUsd": 5, "ReductionFactor": 3},
    })
}

/// Returns a request for programs that log lines such as `[0]#011validation-auc:0.5`: a tuning of `depth`, 1 to 99999,
/// whose price needs no price list.
pub fn local_request(name: &str) -> Value {
    let changes = json!({
        "HyperParameterTuningJobConfig": {
            "RandomSeed": 7,
            "HyperParameterTuningJobObjective": {"MetricName": "validation:auc"},
            "ParameterRanges": {
                "ContinuousParameterRanges": null,
                "IntegerParameterRanges": [
                    {"Name": "depth", "MinValue": "1", "MaxValue": "99999", "ScalingType": "Linear"},
                ],
            },
        },
        "TrainingJobDefinition": {
            "AlgorithmSpecification": {
                "TrainingImage": "local",
                "MetricDefinitions": [{"Name": "validation:auc", "Regex": r"#011validation-auc:(\S+)"}],
            },
        },
        "Controller": {
            "InstancePricesUsdPerHour": {"ml.m5.large": 0.115},
            "EpochPattern": r"\[(\d+)\]",
            "EpochBase": 0,
        },
    });
    with(request(name), changes)
}

/// Returns a request for this machine with the fields that a stack requires: spot jobs with checkpoints on one
/// `ml.m5.large`.
pub fn for_stack(request: Value) -> Value {
    let changes = json!({
        "TrainingJobDefinition": {
            "AlgorithmSpecification": {"TrainingImage": "image:1", "TrainingInputMode": "File"},
            "RoleArn": "arn:aws:iam::111122223333:role/example-training-role",
            "OutputDataConfig": {"S3OutputPath": "s3://example-bucket/out"},
            "ResourceConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1},
            "EnableManagedSpotTraining": true,
            "CheckpointConfig": {"S3Uri": "s3://example-bucket/checkpoints"},
            "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 120},
        },
        "Controller": {"InstancePricesUsdPerHour": {"ml.local.machine": null, "ml.m5.large": 0.115}},
    });
    with(request, changes)
}

/// Returns `request` with `changes`, as a JSON merge patch (RFC 7396): objects are merged, other values replace those
/// of the request, and null removes a member.
pub fn with(mut request: Value, changes: Value) -> Value {
    merge(&mut request, changes);
    request
}

fn merge(target: &mut Value, changes: Value) {
    match (target, changes) {
        (Value::Object(members), Value::Object(changes)) => {
            for (name, change) in changes {
                if change.is_null() {
                    members.remove(&name);
                } else {
                    merge(members.entry(name).or_insert(Value::Null), change);
                }
            }
        }
        (target, changes) => *target = changes,
    }
}
