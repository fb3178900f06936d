//! The decider's program as Lambda runs it: one batch of stream records, the SDK's own requests, a step in the table.

use dynamodb::{StreamStart, event};
use lambda_test::Stage;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submitted_tuning_gets_its_first_step_and_its_first_actions() {
    let stage = Stage::open().await;
    let id = stage.submit().await;
    let mut stream = stage.table.stream(StreamStart::TrimHorizon).await.unwrap();
    let records = stream.ready(100).await.unwrap();
    let answer = stage.invoke(env!("CARGO_BIN_EXE_decider"), &event(records)).await;
    assert_eq!(answer, Ok(json!({"batchItemFailures": []})));
    assert_eq!(stage.rows(&format!("T#{id}"), "STEP#").await.len(), 1);
    let actions = stage.rows(&format!("A#{id}"), "start-").await;
    assert_eq!(actions.len(), 4, "MaxParallelTrainingJobs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_cannot_be_read_is_named_and_the_others_are_taken() {
    let stage = Stage::open().await;
    let id = stage.submit().await;
    let mut stream = stage.table.stream(StreamStart::TrimHorizon).await.unwrap();
    let mut records = stream.ready(100).await.unwrap();
    let broken = json!({"eventName": "INSERT", "dynamodb": {"SequenceNumber": "7", "Keys": {}}});
    records.insert(0, broken);
    let answer = stage.invoke(env!("CARGO_BIN_EXE_decider"), &event(records)).await;
    assert_eq!(answer, Ok(json!({"batchItemFailures": [{"itemIdentifier": "7"}]})));
    assert_eq!(stage.rows(&format!("T#{id}"), "STEP#").await.len(), 1);
}
