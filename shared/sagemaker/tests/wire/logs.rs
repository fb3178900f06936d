//! Reads of the stored log.

use loopback::{Answer, Call, Service};
use serde_json::{Value, json};
use tuning::unit::time::Time;
use use_cases::ports::training::{JobLogs, LogLine, Paged, TrainingJobsError};
use wire::events::logs::MAX_ID_BYTES;

use crate::account::at;

const JOB: &str = "hb1-x-0-0-1";
const STREAM: &str = "hb1-x-0-0-1/algo-1-1789000000";

fn event(id: &str, timestamp: i64) -> Value {
    json!({
        "logStreamName": STREAM,
        "timestamp": timestamp,
        "message": format!("line {id}"),
        "ingestionTime": timestamp + 10,
        "eventId": id,
    })
}

fn line(id: &str, timestamp: i64) -> LogLine {
    let (stream, message) = (STREAM.to_owned(), format!("line {id}"));
    LogLine { stream, id: id.to_owned(), timestamp: Time(timestamp), message }
}

#[tokio::test]
async fn the_lines_of_one_host_are_returned_in_order() {
    let service = Service::start(|_| {
        let events = [event("2", 1_001), event("9", 1_000), event("10", 1_001), event("1", 1_001)];
        Answer::done(&json!({"events": events, "searchedLogStreams": [], "nextToken": "two"}))
    });
    let page = at(&service).read(JOB, "algo-1", Time(1_000), None).await.unwrap();
    let items = vec![line("9", 1_000), line("1", 1_001), line("10", 1_001), line("2", 1_001)];
    assert_eq!(page, Paged { items, next: Some("two".to_owned()) });
    let body = json!({
        "logGroupName": "/aws/sagemaker/TrainingJobs",
        "logStreamNamePrefix": "hb1-x-0-0-1/algo-1-",
        "startTime": 1_000,
    });
    assert_eq!(service.calls(), [Call { target: "Logs_20140328.FilterLogEvents".to_owned(), body }]);
}

#[tokio::test]
async fn an_empty_page_may_have_a_next_page_and_a_negative_time_becomes_the_epoch() {
    let service = Service::start(|_| Answer::done(&json!({"events": [], "nextToken": "three"})));
    let page = at(&service).read(JOB, "algo-1", Time(-5), Some("two")).await.unwrap();
    assert_eq!(page, Paged { items: Vec::new(), next: Some("three".to_owned()) });
    let body = &service.calls()[0].body;
    assert_eq!((&body["nextToken"], &body["startTime"]), (&json!("two"), &json!(0)));
}

#[tokio::test]
async fn only_lines_with_a_valid_id_are_returned() {
    let long = "1".repeat(MAX_ID_BYTES);
    let mut nameless = event("5", 5);
    nameless.as_object_mut().unwrap().remove("eventId");
    let events = [event(&format!("{long}1"), 1), event("a b", 2), event("", 3), event(&long, 4), nameless];
    let body = json!({"events": events});
    let service = Service::start(move |_| Answer::done(&body));
    let page = at(&service).read(JOB, "algo-1", Time(0), None).await.unwrap();
    assert_eq!(page, Paged { items: vec![line(&long, 4)], next: None });
}

#[tokio::test]
async fn a_log_without_lines_is_not_found() {
    let message = "The specified log group does not exist.";
    let service = Service::start(move |_| Answer::error(400, "ResourceNotFoundException", message));
    let read = at(&service).read(JOB, "algo-1", Time(0), None).await;
    assert_eq!(read, Err(TrainingJobsError::NotFound(message.to_owned())));
}
