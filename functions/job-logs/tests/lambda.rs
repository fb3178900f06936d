//! The job-logs program as Lambda runs it: gzipped log batches in, facts in the table.

use lambda_host::{SUBMITTED, Stage};
use serde_json::{Value, json};
use wire::events::logs::{LogEvent, encode_batch};

fn batch(stream: &str) -> Value {
    let line = |n: i64| LogEvent {
        id: format!("{n:056}"),
        timestamp: SUBMITTED + n,
        message: format!("[{n}]#011train-auc:0.9#011validation-auc:0.{n}"),
    };
    encode_batch("/aws/sagemaker/TrainingJobs", stream, vec![line(1), line(2)])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_the_metric_host_are_one_fact_and_other_lines_are_dropped() {
    let stage = Stage::open().await;
    let id = stage.submit().await;
    for (stream, recorded, metrics, bytes) in [
        (format!("{id}-0-0-1/algo-1-1789000000"), "Stored", json!({"FactsRecorded": 1, "LogLines": 2}), 300),
        (format!("{id}-0-0-1/algo-2-1789000000"), "NotOurs", json!({}), 0),
        ("foreign-job/algo-1-1789000000".to_owned(), "NotOurs", json!({}), 0),
    ] {
        let invoked = stage.watch(env!("CARGO_BIN_EXE_job-logs"), &batch(&stream)).await;
        assert_eq!(invoked.answer, Ok(json!({"recorded": recorded})), "{stream}");
        assert_eq!(json!(invoked.metrics()), metrics, "{stream}");
        assert!(invoked.log_bytes <= bytes, "{stream}: {} bytes", invoked.log_bytes);
    }
    let facts = stage.rows(&format!("F#{id}"), "0-0-1#logs#").await;
    assert_eq!(facts.len(), 1);
    let lines: Value = serde_json::from_str(facts[0].text("data").unwrap()).unwrap();
    assert_eq!(lines["MetricsLogged"]["lines"].as_array().map(Vec::len), Some(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreadable_batch_has_its_own_error_type() {
    let stage = Stage::open().await;
    let event = json!({"awslogs": {"data": "bm90IGd6aXA="}});
    let invoked = stage.watch(env!("CARGO_BIN_EXE_job-logs"), &event).await;
    assert_eq!(invoked.answer.as_ref().unwrap_err()["errorType"], "Unreadable");
    assert_eq!(json!(invoked.metrics()), json!({"EventsUnreadable": 1}));
    assert_eq!(invoked.lines()[0]["errorType"], "Unreadable");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sample_event_has_its_documented_result() {
    lambda_host::samples::check("job-logs", env!("CARGO_BIN_EXE_job-logs")).await;
}
