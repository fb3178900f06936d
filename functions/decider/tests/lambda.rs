//! The decider's program as Lambda runs it: one batch of stream records, the SDK's own requests, a step in the table.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::process::Command;
use std::time::SystemTime;

use dynamodb::{StreamStart, event};
use lambda_host::Stage;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submitted_tuning_gets_its_first_step_and_its_first_actions() {
    let stage = Stage::open().await;
    let id = stage.submit_at(a_minute_ago()).await;
    let mut stream = stage.table.stream(StreamStart::TrimHorizon).await.unwrap();
    let records = stream.ready(100).await.unwrap();
    let invoked = stage.watch(env!("CARGO_BIN_EXE_decider"), &event(records)).await;
    assert_eq!(invoked.answer, Ok(json!({"batchItemFailures": []})));
    let mut metrics = invoked.metrics();
    assert!(metrics.remove("FactAgeMs").unwrap().as_u64().unwrap() >= 60_000);
    let expected = [("StepsWritten", json!(1)), ("TuningsStarted", json!(1))];
    assert_eq!(metrics, expected.map(|(name, value)| (name.to_owned(), value)).into());
    let [line] = invoked.lines()[..] else { panic!("{:?}", invoked.log) };
    assert_eq!((&line["level"], &line["message"]), (&json!("INFO"), &json!("a tuning started")));
    assert_eq!((&line["function"], &line["requestId"]), (&json!("decider"), &json!("request-1")));
    assert_eq!((&line["tuning"], &line["step"]), (&json!(id), &json!(1)));
    assert_eq!(stage.rows(&format!("T#{id}"), "STEP#").await.len(), 1);
    let actions = stage.rows(&format!("A#{id}"), "start-").await;
    assert_eq!(actions.len(), 4, "MaxParallelTrainingJobs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreadable_record_is_logged_and_the_others_are_decided() {
    let stage = Stage::open().await;
    let id = stage.submit().await;
    let mut stream = stage.table.stream(StreamStart::TrimHorizon).await.unwrap();
    let mut records = stream.ready(100).await.unwrap();
    let broken = json!({"eventName": "INSERT", "dynamodb": {"SequenceNumber": "7", "Keys": {}}});
    records.insert(0, broken);
    let invoked = stage.watch(env!("CARGO_BIN_EXE_decider"), &event(records)).await;
    // It would stay unreadable, and block its shard.
    assert_eq!(invoked.answer, Ok(json!({"batchItemFailures": []})));
    assert_eq!(invoked.metrics()["EventsUnreadable"], 1);
    let unreadable = invoked.lines()[0];
    assert_eq!((&unreadable["level"], &unreadable["errorType"]), (&json!("ERROR"), &json!("Unreadable")));
    assert!(
        unreadable["error"].as_str().is_some_and(|error| error.starts_with("record 7: ")),
        "{unreadable}"
    );
    assert_eq!(stage.rows(&format!("T#{id}"), "STEP#").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tuning_with_an_unreadable_fact_is_logged() {
    let stage = Stage::open().await;
    let id = stage.submit().await;
    let mut records = stage.stream().await;
    for record in &mut records {
        if is_fact(record, &id) {
            record["dynamodb"]["NewImage"]["data"]["S"] = json!("{");
        }
    }
    let invoked = stage.watch(env!("CARGO_BIN_EXE_decider"), &event(records)).await;
    let [line] = invoked.lines()[..] else { panic!("{:?}", invoked.log) };
    assert_eq!((&line["tuning"], &line["errorType"]), (&json!(id), &json!("Unreadable")));
    assert_eq!(invoked.answer, Ok(json!({"batchItemFailures": []})), "a retry could not read it either");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unresponsive_table_leaves_time_to_log() {
    let mut stage = Stage::open().await;
    let id = stage.submit().await;
    let records = stage.stream().await;
    let facts: Vec<&Value> = records.iter().filter(|record| is_fact(record, &id)).collect();
    let sequence = &facts[0]["dynamodb"]["SequenceNumber"];
    stage.time_ms = Some(3_000);
    stage.fall_silent();
    let invoked = stage.watch(env!("CARGO_BIN_EXE_decider"), &event(records.clone())).await;
    assert_eq!(invoked.answer, Ok(json!({"batchItemFailures": [{"itemIdentifier": sequence}]})));
    assert_eq!(invoked.metrics(), [("DecideFailed".to_owned(), json!(1))].into());
    let [line] = invoked.lines()[..] else { panic!("{:?}", invoked.log) };
    assert_eq!((&line["tuning"], &line["errorType"]), (&json!(id), &json!("Timeout")));
}

fn a_minute_ago() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap() - 60_000
}

fn is_fact(record: &Value, id: &str) -> bool {
    record["dynamodb"]["Keys"]["pk"]["S"] == json!(format!("F#{id}"))
}

#[test]
fn it_does_not_start_without_the_name_of_the_table() {
    let output = Command::new(env!("CARGO_BIN_EXE_decider")).env_clear().output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&line["level"], &line["errorType"]), (&json!("ERROR"), &json!("Settings")));
    assert_eq!(line["error"], "missing environment variable TABLE_NAME: set it in the stack's template");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sample_event_has_its_documented_result() {
    lambda_host::samples::check("decider", env!("CARGO_BIN_EXE_decider")).await;
}
