//! The tuning jobs of Automatic Model Tuning.

use loopback::{Answer, Service};
use serde_json::{Value, json};
use use_cases::ports::{OtherTunings, OtherTuningsError};

use crate::account::at;

const DESCRIBE: &str = "SageMaker.DescribeHyperParameterTuningJob";
const LIST: &str = "SageMaker.ListTrainingJobsForHyperParameterTuningJob";

/// Returns a description as `SageMaker` documents it, with a member that the SDK does not know.
fn description() -> Value {
    json!({
        "HyperParameterTuningJobName": "amt",
        "HyperParameterTuningJobArn": "arn:aws:sagemaker:us-east-1:123456789012:hyper-parameter-tuning-job/amt",
        "HyperParameterTuningJobStatus": "Completed",
        "CreationTime": 1_789_000_000.5,
        "TrainingJobStatusCounters": {"Completed": 3},
        "ObjectiveStatusCounters": {"Succeeded": 2},
        "HyperParameterTuningJobConfig": {
            "Strategy": "Bayesian",
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "validation:auc"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 3, "MaxParallelTrainingJobs": 1},
        },
        "TrainingJobDefinition": {"StaticHyperParameters": {"_tuning_objective_metric": "validation:auc"}},
        "MemberOfNextYear": [1, 2],
    })
}

fn summary(number: u32, status: &str, value: Option<f64>) -> Value {
    let mut summary = json!({
        "TrainingJobName": format!("amt-{number}"),
        "TrainingJobArn": format!("arn:aws:sagemaker:us-east-1:123456789012:training-job/amt-{number}"),
        "CreationTime": 1_789_000_000,
        "TrainingJobStatus": status,
        "TunedHyperParameters": {"eta": format!("0.{number}")},
    });
    if let Some(value) = value {
        summary["FinalHyperParameterTuningJobObjectiveMetric"] =
            json!({"MetricName": "validation:auc", "Value": value});
    }
    summary
}

#[tokio::test]
async fn a_tuning_job_has_its_whole_description_and_the_final_values_of_its_training_jobs() {
    let service = Service::start(|call| match (call.target.as_str(), call.body["NextToken"].as_str()) {
        (DESCRIBE, _) => Answer::done(&description()),
        (LIST, None) => Answer::done(&json!({
            "TrainingJobSummaries": [summary(1, "Completed", Some(0.75)), summary(2, "Failed", Some(0.5))],
            "NextToken": "two",
        })),
        (LIST, Some("two")) => Answer::done(&json!({
            "TrainingJobSummaries": [summary(3, "Stopped", Some(0.25)), summary(4, "Completed", None)],
        })),
        other => panic!("{other:?}"),
    });
    assert_eq!(at(&service).description("amt").await, Ok(Some(description())));
    let trials = at(&service).trials("amt", true, 2_000).await.unwrap();
    let trials = trials.iter().map(|(configuration, value)| (configuration.get("eta").unwrap(), *value));
    assert_eq!(trials.collect::<Vec<_>>(), [("0.1", 0.75), ("0.3", 0.25)], "a failed job does not count");
    let list = &service.calls()[1].body;
    assert_eq!(
        *list,
        json!({
            "HyperParameterTuningJobName": "amt",
            "SortBy": "FinalObjectiveMetricValue",
            "SortOrder": "Descending",
            "MaxResults": 100,
        })
    );
}

#[tokio::test]
async fn a_long_list_ends_after_the_requested_number_with_the_smallest_values_first() {
    let page = json!({
        "TrainingJobSummaries": vec![summary(1, "Completed", Some(0.5)); 100], "NextToken": "more",
    });
    let service = Service::start(move |_| Answer::done(&page));
    assert_eq!(at(&service).trials("amt", false, 150).await.unwrap().len(), 200);
    let calls = service.calls();
    assert_eq!((calls.len(), &calls[0].body["SortOrder"]), (2, &json!("Ascending")));
}

#[tokio::test]
async fn a_missing_tuning_job_is_none_and_a_failure_is_an_error() {
    let absent = Service::start(|_| Answer::error(400, "ResourceNotFound", "no such tuning job"));
    assert_eq!(at(&absent).description("amt").await, Ok(None));
    for (status, code, refused) in [
        (400, "AccessDeniedException", true),
        (400, "ThrottlingException", false),
        (500, "InternalServerError", false),
    ] {
        let service = Service::start(move |_| Answer::error(status, code, "m"));
        for error in [
            at(&service).description("amt").await.unwrap_err(),
            at(&service).trials("amt", true, 9).await.unwrap_err(),
        ] {
            assert_eq!(matches!(error, OtherTuningsError::Refused { .. }), refused, "{code}: {error}");
        }
    }
}
