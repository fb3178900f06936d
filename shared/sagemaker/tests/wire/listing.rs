//! The listing of running jobs.

use loopback::{Answer, Call, Service};
use serde_json::json;
use use_cases::ports::training::{Listed, Paged, TrainingJobListing, TrainingJobsError};

use crate::account::at;
use tuning::unit::time::Time;

const FROM: i64 = 1_789_000_000_500;

fn listed(name: &str, created: i64) -> Listed {
    Listed { name: name.to_owned(), created: Time(created) }
}

#[tokio::test]
async fn a_page_is_requested_from_a_second_earlier_and_omits_older_jobs() {
    let service = Service::start(|_| {
        let summary = |name: &str, created: f64| {
            json!({
                "TrainingJobName": name,
                "TrainingJobArn": format!("arn:aws:sagemaker:us-east-1:123456789012:training-job/{name}"),
                "CreationTime": created,
                "TrainingJobStatus": "InProgress",
            })
        };
        let jobs = [
            summary("older", 1_789_000_000.499),
            summary("at", 1_789_000_000.5),
            summary("newer", 1_789_000_001.0),
        ];
        Answer::done(&json!({"TrainingJobSummaries": jobs, "NextToken": "two"}))
    });
    let page = at(&service).in_progress(Time(FROM), None).await.unwrap();
    let items = vec![listed("at", FROM), listed("newer", 1_789_000_001_000)];
    assert_eq!(page, Paged { items, next: Some("two".to_owned()) });
    let body = json!({
        "StatusEquals": "InProgress",
        "SortBy": "CreationTime",
        "SortOrder": "Ascending",
        "CreationTimeAfter": 1_788_999_999,
        "MaxResults": 100,
    });
    let target = "SageMaker.ListTrainingJobs".to_owned();
    assert_eq!(service.calls(), [Call { target, body }]);
}

#[tokio::test]
async fn the_next_page_has_the_same_filter_and_the_last_page_has_no_token() {
    let service = Service::start(|_| Answer::done(&json!({"TrainingJobSummaries": []})));
    let page = at(&service).in_progress(Time(FROM), Some("two")).await.unwrap();
    assert_eq!(page, Paged { items: Vec::new(), next: None });
    let body = &service.calls()[0].body;
    assert_eq!((&body["NextToken"], &body["CreationTimeAfter"]), (&json!("two"), &json!(1_788_999_999)));
}

#[tokio::test]
async fn a_denied_listing_is_refused() {
    let service = Service::start(|_| Answer::error(400, "AccessDeniedException", "not authorized"));
    let refused = TrainingJobsError::Refused {
        code: "AccessDeniedException".to_owned(),
        message: "not authorized".to_owned(),
    };
    assert_eq!(at(&service).in_progress(Time(FROM), None).await, Err(refused));
    assert_eq!(service.calls().len(), 1);
}
