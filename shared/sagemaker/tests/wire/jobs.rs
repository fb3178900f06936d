//! Calls for one job: stop, release, describe, tags.

use std::collections::BTreeMap;

use loopback::{Answer, Call, Service};
use serde_json::{Value, json};
use use_cases::ports::training::{Description, TrainingJobs, TrainingJobsError, WarmPool};

use crate::account::{ABSENT, at, not_found};
use tuning::unit::time::Time;

const JOB: &str = "hb1-x-0-0-1";
const ARN: &str = "arn:aws:sagemaker:us-east-1:123456789012:training-job/hb1-x-0-0-1";

/// Returns the description of a job that was interrupted twice and has ended.
fn ended() -> Value {
    let transition =
        |status: &str, start: f64| json!({"Status": status, "StartTime": start, "StatusMessage": "m"});
    json!({
        "TrainingJobName": JOB,
        "TrainingJobArn": ARN,
        "ModelArtifacts": {"S3ModelArtifacts": ""},
        "TrainingJobStatus": "Failed",
        "SecondaryStatus": "Failed",
        "FailureReason": "AlgorithmError: exit code 1",
        "HyperParameters": {"eta": "0.1"},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3_600},
        "CreationTime": 1_789_000_000.123,
        "TrainingStartTime": 1_789_000_060.5,
        "TrainingEndTime": 1_789_000_360,
        "LastModifiedTime": 1_789_000_361.75,
        "SecondaryStatusTransitions": [
            transition("Starting", 1_789_000_000.0),
            transition("Training", 1_789_000_060.0),
            transition("Interrupted", 1_789_000_100.0),
            transition("Training", 1_789_000_200.0),
            transition("Interrupted", 1_789_000_250.0),
            transition("Failed", 1_789_000_360.0),
        ],
        "TrainingTimeInSeconds": 299,
        "BillableTimeInSeconds": 99,
        "FinalMetricDataList": [
            {"MetricName": "loss", "Value": 0.1, "Timestamp": 1_789_000_350},
            {"MetricName": "auc", "Value": "NaN", "Timestamp": 1_789_000_350},
        ],
        "WarmPoolStatus": {"Status": "Reused", "ResourceRetainedBillableTimeInSeconds": 42, "ReusedByJob": "other"},
        "EnableManagedSpotTraining": true,
        "MemberOfTomorrow": {"a": 1},
    })
}

/// Returns the description of a new job in a status that this version does not know.
fn young() -> Value {
    json!({
        "TrainingJobName": JOB,
        "TrainingJobArn": ARN,
        "TrainingJobStatus": "InProgress",
        "SecondaryStatus": "Defrosting",
        "StoppingCondition": {},
        "CreationTime": 1_789_000_000,
    })
}

#[tokio::test]
async fn a_job_is_described_with_all_its_fields() {
    let service = Service::start(|_| Answer::done(&ended()));
    let expected = Description {
        name: JOB.to_owned(),
        status: "Failed".to_owned(),
        secondary_status: "Failed".to_owned(),
        created: Time(1_789_000_000_123),
        started: Some(Time(1_789_000_060_500)),
        ended: Some(Time(1_789_000_360_000)),
        modified: Time(1_789_000_361_750),
        billable_seconds: Some(99),
        failure_reason: Some("AlgorithmError: exit code 1".to_owned()),
        interruptions: 2,
        final_metrics: vec![("loss".to_owned(), 0.1)],
        warm_pool: Some(WarmPool { status: "Reused".to_owned(), retained_seconds: Some(42) }),
    };
    assert_eq!(at(&service).describe(JOB).await, Ok(expected));
    let target = "SageMaker.DescribeTrainingJob".to_owned();
    assert_eq!(service.calls(), [Call { target, body: json!({"TrainingJobName": JOB}) }]);
}

#[tokio::test]
async fn a_new_job_has_only_its_creation_time() {
    let service = Service::start(|_| Answer::done(&young()));
    let found = at(&service).describe(JOB).await.unwrap();
    assert_eq!(found.secondary_status, "Defrosting");
    assert_eq!((found.created, found.modified), (Time(1_789_000_000_000), Time(1_789_000_000_000)));
    assert_eq!((found.started, found.ended, found.billable_seconds), (None, None, None));
    assert_eq!((found.failure_reason, found.interruptions, found.warm_pool), (None, 0, None));
}

#[tokio::test]
async fn a_response_without_a_required_field_is_an_error() {
    for member in ["TrainingJobStatus", "SecondaryStatus", "CreationTime"] {
        let service = Service::start(move |_| {
            let mut answer = young();
            answer.as_object_mut().unwrap().remove(member);
            Answer::done(&answer)
        });
        let error = TrainingJobsError::Unavailable(format!("the response has no {member}"));
        assert_eq!(at(&service).describe(JOB).await, Err(error));
    }
    let service = Service::start(|_| Answer::done(&json!({"TrainingJobStatus": "InProgress"})));
    let error = TrainingJobsError::Unavailable("the response has no TrainingJobArn".to_owned());
    assert_eq!(at(&service).tags(JOB).await, Err(error));
}

#[tokio::test]
async fn stop_and_release_send_the_name_of_the_job() {
    let service = Service::start(|call| match call.operation() {
        "UpdateTrainingJob" => Answer::done(&json!({"TrainingJobArn": ARN})),
        _ => Answer::text(200, ""),
    });
    let jobs = at(&service);
    jobs.stop(JOB).await.unwrap();
    jobs.release(JOB).await.unwrap();
    let call = |operation: &str, body: Value| Call { target: format!("SageMaker.{operation}"), body };
    let kept = json!({"TrainingJobName": JOB, "ResourceConfig": {"KeepAlivePeriodInSeconds": 0}});
    assert_eq!(
        service.calls(),
        [call("StopTrainingJob", json!({"TrainingJobName": JOB})), call("UpdateTrainingJob", kept)]
    );
}

#[tokio::test]
async fn stops_of_an_ended_job_and_of_a_missing_job_are_different_errors() {
    let message = "The request was rejected because the training job is in status Stopped.";
    let service = Service::start(move |_| Answer::error(400, "ValidationException", message));
    let ended = TrainingJobsError::AlreadyEnded(message.to_owned());
    assert_eq!(at(&service).stop(JOB).await, Err(ended));
    let service = Service::start(|_| Answer::error(400, "ValidationException", ABSENT));
    assert_eq!(at(&service).stop(JOB).await, Err(not_found()));
    assert_eq!(at(&service).describe(JOB).await, Err(not_found()));
    assert_eq!(at(&service).release(JOB).await, Err(not_found()));
}

/// A role that may stop only jobs with our tag gets `AccessDeniedException` for a missing job.
#[tokio::test]
async fn a_forbidden_stop_is_not_found_only_if_the_job_is_missing() {
    const FORBIDDEN: &str = "User is not authorized to perform: sagemaker:StopTrainingJob";
    let forbidden = || Answer::error(400, "AccessDeniedException", FORBIDDEN);
    let service = Service::start(move |call| match call.operation() {
        "DescribeTrainingJob" => Answer::error(400, "ValidationException", ABSENT),
        _ => forbidden(),
    });
    assert_eq!(at(&service).stop(JOB).await, Err(not_found()));
    let refused = TrainingJobsError::Refused {
        code: "AccessDeniedException".to_owned(),
        message: FORBIDDEN.to_owned(),
    };
    let service = Service::start(move |call| match call.operation() {
        "DescribeTrainingJob" => Answer::done(&young()),
        _ => forbidden(),
    });
    assert_eq!(at(&service).stop(JOB).await, Err(refused.clone()));
    let service = Service::start(move |_| forbidden());
    assert_eq!(at(&service).stop(JOB).await, Err(refused), "it is unknown whether the job exists");
}

#[tokio::test]
async fn all_tags_are_read_by_the_arn_of_the_job() {
    let service = Service::start(|call| match (call.operation(), call.body.get("NextToken")) {
        ("DescribeTrainingJob", _) => Answer::done(&young()),
        ("ListTags", None) => {
            Answer::done(&json!({"Tags": [{"Key": "a", "Value": "1"}], "NextToken": "more"}))
        }
        _ => Answer::done(&json!({"Tags": [{"Key": "b", "Value": ""}]})),
    });
    let tags = at(&service).tags(JOB).await.unwrap();
    assert_eq!(tags, BTreeMap::from([("a", "1"), ("b", "")].map(|(k, v)| (k.to_owned(), v.to_owned()))));
    let calls = service.calls();
    assert_eq!(calls[1].body, json!({"ResourceArn": ARN}));
    assert_eq!(calls[2].body, json!({"ResourceArn": ARN, "NextToken": "more"}));
}

#[tokio::test]
async fn tags_of_a_missing_job_and_an_endless_list_of_tags_are_errors() {
    let service = Service::start(|call| match call.operation() {
        "DescribeTrainingJob" => Answer::error(400, "ResourceNotFound", ABSENT),
        _ => Answer::done(&json!({"Tags": []})),
    });
    assert_eq!(at(&service).tags(JOB).await, Err(not_found()));
    let service = Service::start(|call| match call.operation() {
        "DescribeTrainingJob" => Answer::done(&young()),
        _ => Answer::done(&json!({"Tags": [], "NextToken": "more"})),
    });
    assert!(matches!(at(&service).tags(JOB).await, Err(TrainingJobsError::Unavailable(_))));
}
