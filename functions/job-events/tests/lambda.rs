//! The job-events program as Lambda runs it: EventBridge events in, facts in the table.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their test")]

use lambda_test::{STACK, Stage};
use serde_json::{Value, json};

fn event(id: &str) -> Value {
    let sample = include_str!("../../../events/training_job_state_change_training.json");
    let mut event: Value = serde_json::from_str(sample).unwrap();
    event["detail"]["TrainingJobName"] = json!(format!("{id}-0-0-1"));
    event["detail"]["Tags"] =
        json!({"hyperband:stack": STACK, "hyperband:tuning": id, "hyperband:decision": "0-0-1"});
    event
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_change_of_a_job_of_ours_is_a_fact_once() {
    let stage = Stage::open().await;
    let id = stage.submit().await;
    for _ in 0..2 {
        let answer = stage.invoke(env!("CARGO_BIN_EXE_job-events"), &event(&id)).await;
        assert_eq!(answer, Ok(json!({"recorded": "Stored"})));
        assert_eq!(stage.rows(&format!("F#{id}"), "0-0-1#state#").await.len(), 1);
    }
    assert_eq!(stage.rows(&format!("R#{id}"), "RING").await.len(), 1, "the second delivery rings");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_of_another_stack_is_dropped_and_an_unreadable_one_is_an_error() {
    let stage = Stage::open().await;
    let id = stage.submit().await;
    let mut other = event(&id);
    other["detail"]["Tags"]["hyperband:stack"] = json!("another");
    let answer = stage.invoke(env!("CARGO_BIN_EXE_job-events"), &other).await;
    assert_eq!(answer, Ok(json!({"recorded": "NotOurs"})));
    let mut unreadable = event(&id);
    unreadable["detail"]["TrainingJobStatus"] = Value::Null;
    let answer = stage.invoke(env!("CARGO_BIN_EXE_job-events"), &unreadable).await;
    assert_eq!(answer.unwrap_err()["errorType"], "Unreadable");
    assert!(stage.rows(&format!("F#{id}"), "0-0-1#").await.is_empty());
}
