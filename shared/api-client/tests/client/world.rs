//! Shared helpers: clients of a stack, and a request.

use std::time::Duration;

use api_client::{Client, Retry};
use aws_credential_types::Credentials;
use serde_json::{Value, json};
use stack_api::Stack;
use wire::request::Request;

pub(crate) const KEY_ID: &str = "AKIAEXAMPLEKEYWXYZ";
pub(crate) const SECRET: &str = "example-secret-key";
pub(crate) const TOKEN: &str = "example-session-token";

/// Four attempts without pauses, so that the tests do not depend on time.
pub(crate) const AT_ONCE: Retry = Retry { tries: 4, first: Duration::ZERO, most: Duration::ZERO };

pub(crate) fn credentials() -> Credentials {
    Credentials::new(KEY_ID, SECRET, Some(TOKEN.to_owned()), None, "test")
}

/// Returns a client that signs.
pub(crate) fn client(stack: &Stack) -> Client {
    let endpoint = stack.endpoint.parse().unwrap();
    Client::new(endpoint, Some((credentials(), "eu-west-1")), AT_ONCE)
}

pub(crate) fn request(name: &str) -> Request {
    Request::check(body(name)).unwrap()
}

pub(crate) fn body(name: &str) -> Value {
    json!({
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobConfig": {
            "Strategy": "Hyperband",
            "StrategyConfig": {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 9}},
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "auc"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 8, "MaxParallelTrainingJobs": 2},
            "ParameterRanges": {
                "ContinuousParameterRanges": [{"Name": "lr", "MinValue": "0.1", "MaxValue": "1"}],
            },
        },
        "TrainingJobDefinition": {
            "AlgorithmSpecification": {
                "TrainingImage": "image:1", "TrainingInputMode": "File",
                "MetricDefinitions": [{"Name": "auc", "Regex": "auc=(\\S+)"}],
            },
            "RoleArn": "arn:aws:iam::111122223333:role/example-training-role",
            "OutputDataConfig": {"S3OutputPath": "s3://example-bucket/out"},
            "ResourceConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1},
            "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        },
        "Controller": {"MaxCostUsd": 5},
    })
}
