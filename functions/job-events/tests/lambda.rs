//! The job-events program as Lambda runs it: EventBridge events in, facts in the table.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use lambda_host::{STACK, Stage};
use serde_json::{Value, json};

fn event(id: &str) -> Value {
    let sample = include_str!("../../../events/aws.sagemaker/training-job-state-change.training.json");
    let mut event: Value = serde_json::from_str(sample).unwrap();
    event["detail"]["TrainingJobName"] = json!(format!("{id}-0-0-1"));
    event["detail"]["Tags"] =
        json!({"hyperband:stack": STACK, "hyperband:tuning": id, "hyperband:decision": "0-0-1"});
    event
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_change_of_our_job_is_recorded_once() {
    let stage = Stage::open().await;
    let id = stage.submit().await;
    for facts in [json!({"FactsRecorded": 1}), json!({})] {
        let invoked = stage.watch(env!("CARGO_BIN_EXE_job-events"), &event(&id)).await;
        assert_eq!(invoked.answer, Ok(json!({"recorded": "Stored"})));
        assert_eq!((json!(invoked.metrics()), invoked.lines()), (facts, Vec::<&Value>::new()));
        assert!(invoked.log_bytes <= 220, "{} bytes", invoked.log_bytes);
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
    let invoked = stage.watch(env!("CARGO_BIN_EXE_job-events"), &other).await;
    assert_eq!(invoked.answer, Ok(json!({"recorded": "NotOurs"})));
    assert_eq!(invoked.log_bytes, 0, "an ignored event writes nothing");
    let mut foreign = event(&id);
    foreign["detail"]["Tags"] = json!({});
    foreign["detail"]["TrainingJobName"] = json!("pipelines-3x7-train-9f2c");
    foreign["detail"]["TrainingJobStatus"] = Value::Null;
    let invoked = stage.watch(env!("CARGO_BIN_EXE_job-events"), &foreign).await;
    assert_eq!((invoked.answer, invoked.log_bytes), (Ok(json!({"recorded": "NotOurs"})), 0));
    let mut unreadable = event(&id);
    unreadable["detail"]["TrainingJobStatus"] = Value::Null;
    let invoked = stage.watch(env!("CARGO_BIN_EXE_job-events"), &unreadable).await;
    assert_eq!(invoked.metrics(), [("EventsUnreadable".to_owned(), json!(1))].into());
    assert_eq!(invoked.lines()[0]["errorType"], "Unreadable");
    assert_eq!(invoked.answer.unwrap_err()["errorType"], "Unreadable");
    assert!(stage.rows(&format!("F#{id}"), "0-0-1#").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn regression_an_event_without_tags_is_recorded_if_its_tuning_is_known() {
    let stage = Stage::open().await;
    let id = stage.submit().await;
    for tags in [json!({}), Value::Null, json!({"team": "search"})] {
        let mut event = event(&id);
        event["detail"]["Tags"] = tags;
        let invoked = stage.watch(env!("CARGO_BIN_EXE_job-events"), &event).await;
        assert_eq!(invoked.answer, Ok(json!({"recorded": "Stored"})));
    }
    assert_eq!(stage.rows(&format!("F#{id}"), "0-0-1#state#").await.len(), 1);
    let mut other = event(&id);
    other["detail"]["Tags"] = json!({"hyperband:tuning": "hb1-3fa1c2"});
    let invoked = stage.watch(env!("CARGO_BIN_EXE_job-events"), &other).await;
    assert_eq!(invoked.answer, Ok(json!({"recorded": "NotOurs"})), "a tag of another tuning");
    let mut unknown = event("hb1-3fa1c2");
    unknown["detail"]["Tags"] = json!({});
    let invoked = stage.watch(env!("CARGO_BIN_EXE_job-events"), &unknown).await;
    assert_eq!(invoked.answer, Ok(json!({"recorded": "NotOurs"})));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unresponsive_table_is_logged_in_time_with_the_job() {
    let mut stage = Stage::open().await;
    let id = stage.submit().await;
    stage.time_ms = Some(3_000);
    stage.fall_silent();
    // P8: the name of a foreign job costs no read of the table, so it gets its answer.
    let mut foreign = event(&id);
    foreign["detail"]["TrainingJobName"] = json!("pipelines-3x7-train-9f2c");
    let invoked = stage.watch(env!("CARGO_BIN_EXE_job-events"), &foreign).await;
    assert_eq!(invoked.answer, Ok(json!({"recorded": "NotOurs"})));
    let invoked = stage.watch(env!("CARGO_BIN_EXE_job-events"), &event(&id)).await;
    let [line] = invoked.lines()[..] else { panic!("{:?}", invoked.log) };
    assert_eq!((&line["errorType"], &line["tuning"]), (&json!("Timeout"), &json!(id)));
    assert_eq!(line["job"], format!("{id}-0-0-1"));
    assert_eq!(invoked.answer.unwrap_err()["errorType"], "Timeout");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sample_event_has_its_documented_result() {
    lambda_host::samples::check("job-events", env!("CARGO_BIN_EXE_job-events")).await;
}
