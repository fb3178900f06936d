//! The request for a training job is sent unchanged, signed, and only once.

use loopback::{Answer, Service};
use serde_json::{Value, json};
use use_cases::ports::training::{TrainingJobs, TrainingJobsError};

use crate::account::{SECRET, at};
use crate::signature;

const ARN: &str = "arn:aws:sagemaker:us-east-1:123456789012:training-job/hb1-x-0-0-1";

/// Returns a request with members of every kind, a member unknown to every SDK, and text that JSON must escape.
fn request() -> Value {
    json!({
        "TrainingJobName": "hb1-x-0-0-1",
        "HyperParameters": {"eta": "0.1", "naïve \"name\"": "a\nb"},
        "AlgorithmSpecification": {
            "TrainingImage": "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1",
            "TrainingInputMode": "File",
            "MetricDefinitions": [{"Name": "validation:auc", "Regex": ".*\\[[0-9]+\\].*#011validation-auc:(\\S+).*"}],
        },
        "RoleArn": "arn:aws:iam::123456789012:role/training",
        "InputDataConfig": [{
            "ChannelName": "train",
            "DataSource": {"S3DataSource": {
                "S3DataType": "S3Prefix",
                "S3Uri": "s3://bucket/train/",
                "AttributeNames": ["a", "b"],
                "ModelAccessConfig": {"AcceptEula": true},
            }},
            "ShuffleConfig": {"Seed": i64::MIN},
        }],
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out/", "CompressionType": "GZIP"},
        "ResourceConfig": {
            "InstanceType": "ml.m5.large",
            "InstanceCount": 2,
            "VolumeSizeInGB": 30,
            "InstancePlacementConfig": {"EnableMultipleJobs": true},
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": 3_600, "MaxPendingTimeInSeconds": 7_200},
        "EnableManagedSpotTraining": false,
        "Environment": {"A": ""},
        "Tags": [{"Key": "hyperband:stack", "Value": "s"}],
        "MemberOfTomorrow": {"Depth": [1, 2.5, null, {"More": true}]},
    })
}

#[tokio::test]
async fn the_body_is_the_whole_request_and_signed() {
    let service = Service::start(|_| Answer::done(&json!({"TrainingJobArn": ARN})));
    at(&service).create(&request()).await.unwrap();
    let calls = service.calls();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].target, "SageMaker.CreateTrainingJob");
    assert_eq!(calls[0].body, request());
    let sent = &service.requests()[0];
    assert_eq!(sent.header("content-length").unwrap(), sent.body.len().to_string());
    assert_eq!(sent.header("content-type"), Some("application/x-amz-json-1.1"));
    signature::check(sent, SECRET);
}

#[tokio::test]
async fn a_create_is_sent_once_with_any_response() {
    let taken = "Training job names must be unique within an AWS account and region";
    let quota = "The account-level service limit 'ml.m5.large for training job usage' is 0 Instances";
    let refused = TrainingJobsError::Refused {
        code: "ValidationException".to_owned(),
        message: "1 validation error detected".to_owned(),
    };
    for (answer, expected) in [
        (Answer::error(400, "ResourceInUse", taken), TrainingJobsError::NameTaken(taken.to_owned())),
        (
            Answer::error(400, "com.amazonaws.sagemaker#ResourceLimitExceeded", quota),
            TrainingJobsError::LimitExceeded(quota.to_owned()),
        ),
        (Answer::error(400, "ThrottlingException", "Rate exceeded"), TrainingJobsError::Throttled),
        (Answer::error(400, "ValidationException", "1 validation error detected"), refused),
        (
            Answer::error(500, "InternalFailure", "oh"),
            TrainingJobsError::Unavailable("InternalFailure: oh".to_owned()),
        ),
    ] {
        let service = Service::start(move |_| answer.clone());
        assert_eq!(at(&service).create(&request()).await, Err(expected));
        assert_eq!(service.calls().len(), 1);
    }
}

#[tokio::test]
async fn an_unreadable_response_is_an_unavailable_service() {
    for (status, text) in [
        (200, "{\"TrainingJobArn\": "),
        (200, "<html>Welcome</html>"),
        (403, "<html>Forbidden by a proxy</html>"),
        (502, "<html>Bad Gateway</html>"),
        (503, ""),
    ] {
        let service = Service::start(move |_| Answer::text(status, text));
        let created = at(&service).create(&request()).await;
        assert!(matches!(created, Err(TrainingJobsError::Unavailable(_))), "{status} {text}: {created:?}");
    }
}
