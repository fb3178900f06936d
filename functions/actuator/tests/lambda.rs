//! The actuator's program as Lambda runs it: start rows in, `CreateTrainingJob` on the wire, facts in the table.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::process::Command;

use dynamodb::event;
use lambda_host::{Invoked, STACK, Stage};
use loopback::{Answer, Call, Service};
use serde_json::{Value, json};
use tuning::log::reasons::StopWhy;
use tuning::log::ruling::{NoticeOrder, Order, ReadOrder};
use tuning::unit::ids::RungId;
use tuning::unit::time::Time;
use use_cases::ports::table::{Condition, Table, Write};
use wire::item::Item;
use wire::names::parse_job_key;
use wire::stored::{self, ActionRow, ActionStatus};

const ACTUATOR: &str = env!("CARGO_BIN_EXE_actuator");

/// Returns a stage with a tuning whose first four jobs are ordered, the tuning's ID, and the stream records.
async fn ordered(service: &Service) -> (Stage, String, Vec<Value>) {
    let mut stage = Stage::open().await;
    for name in ["SAGEMAKER", "CLOUDWATCH_LOGS", "EVENTBRIDGE", "LAMBDA"] {
        stage.set_variable(&format!("AWS_ENDPOINT_URL_{name}"), &service.endpoint);
    }
    stage.set_variable("EVENT_BUS_NAME", "bus");
    let id = stage.submit().await;
    stage.decide().await;
    let records = stage.stream().await;
    (stage, id, records)
}

/// Returns services of which SageMaker answers with this error.
fn refusing(code: &'static str, message: &'static str) -> Service {
    Service::start(move |call| {
        if call.target.starts_with("SageMaker.") {
            return Answer::error(400, code, message);
        }
        Answer::done(&json!({"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}))
    })
}

/// Performs the records, as two invocations: the first hands the starts over to the second, whose result is returned.
async fn performed(stage: &Stage, service: &Service, records: Vec<Value>) -> Invoked {
    let first = stage.watch(ACTUATOR, &event(records)).await;
    assert_eq!(first.answer, Ok(json!({"batchItemFailures": []})));
    let requests = service.requests();
    let handed: Vec<_> = requests.iter().filter(|request| request.path.ends_with("/invocations")).collect();
    assert_eq!(handed.len(), 1);
    assert_eq!(handed[0].header("x-amz-invocation-type"), Some("Event"));
    stage.watch(ACTUATOR, &serde_json::from_slice(&handed[0].body).unwrap()).await
}

/// Returns the calls of services with the JSON protocol.
fn calls(service: &Service) -> Vec<Call> {
    service.calls().into_iter().filter(|call| !call.target.is_empty()).collect()
}

/// Returns the status of each ordered start, whether it was deferred, and the kinds of facts of its job.
async fn starts(stage: &Stage, id: &str) -> Vec<(ActionStatus, bool, Vec<String>)> {
    let mut found = Vec::new();
    for row in stage.rows(&format!("A#{id}"), "start-").await {
        let start = ActionRow::read(&row).unwrap();
        let job = start.action.strip_prefix("start-").unwrap();
        let facts = stage.rows(&format!("F#{id}"), &format!("{job}#")).await;
        let kind = |fact: &Item| stored::fact(fact).unwrap().key.split('#').next().unwrap().to_owned();
        found.push((start.status, start.not_before > Time(0), facts.iter().map(kind).collect()));
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ordered_jobs_are_created_and_recorded_as_facts() {
    let service = Service::start(|_| Answer::done(&json!({"TrainingJobArn": "arn"})));
    let (stage, id, records) = ordered(&service).await;
    let invoked = performed(&stage, &service, records).await;
    assert_eq!(json!(invoked.metrics()), json!({"ActionsPerformed": 4, "JobsStarted": 4}));
    let first = invoked.lines()[0];
    assert_eq!((&first["tuning"], &first["action"]), (&json!(id), &json!("start-0-0-1")));
    assert_eq!((&first["level"], &first["job"]), (&json!("INFO"), &json!(format!("{id}-0-0-1"))));
    let mut calls = calls(&service);
    // The event for the start of the tuning does not wait for the turns of the other starts.
    let event = calls.remove(1);
    assert_eq!(event.target, "AWSEvents.PutEvents");
    assert_eq!(calls.len(), 4, "MaxParallelTrainingJobs");
    for call in &calls {
        assert_eq!(call.target, "SageMaker.CreateTrainingJob");
        assert!(call.body["TrainingJobName"].as_str().unwrap().starts_with(&id));
        let stack = json!({"Key": "hyperband:stack", "Value": STACK});
        assert!(call.body["Tags"].as_array().unwrap().contains(&stack));
    }
    assert_eq!(starts(&stage, &id).await, vec![(ActionStatus::Done, false, vec!["started".to_owned()]); 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starts_that_no_other_invocation_takes_are_performed_and_logged() {
    let service = Service::start(|call| match call.operation() {
        "CreateTrainingJob" => Answer::done(&json!({"TrainingJobArn": "arn"})),
        "PutEvents" => Answer::done(&json!({"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]})),
        _ => Answer::error(403, "AccessDeniedException", "no permission"),
    });
    let (stage, id, records) = ordered(&service).await;
    let invoked = stage.watch(ACTUATOR, &event(records)).await;
    assert_eq!(invoked.answer, Ok(json!({"batchItemFailures": []})));
    assert_eq!(json!(invoked.metrics()), json!({"ActionsPerformed": 4, "JobsStarted": 4}));
    let is_warning = |line: &&&Value| line["errorType"] == "HandOver" && line["level"] == "WARN";
    let lines = invoked.lines();
    let warning = lines.iter().find(is_warning).unwrap();
    let error = "no other invocation took the starts: AccessDeniedException: no permission";
    assert_eq!((&warning["action"], &warning["error"]), (&json!("start-0-0-1"), &json!(error)));
    assert_eq!(starts(&stage, &id).await, vec![(ActionStatus::Done, false, vec!["started".to_owned()]); 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_throttled_start_is_deferred_and_not_delivered_again() {
    let service = refusing("ThrottlingException", "Rate exceeded");
    let (stage, id, records) = ordered(&service).await;
    let invoked = performed(&stage, &service, records).await;
    assert_eq!(json!(invoked.metrics()), json!({"ActionsDeferred": 4}));
    let types: Vec<&Value> = invoked.lines().iter().map(|line| &line["errorType"]).collect();
    assert_eq!(types, [&json!("Deferred"); 4]);
    assert_eq!(calls(&service).len(), 4, "one attempt each");
    let deferred = (ActionStatus::Pending, true, vec!["deferred".to_owned()]);
    assert_eq!(starts(&stage, &id).await, vec![deferred; 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_defers_a_start_and_a_rejection_settles_it() {
    for (code, status, fact) in [
        ("ResourceLimitExceeded", ActionStatus::Pending, "deferred"),
        ("ValidationException", ActionStatus::Done, "refused"),
    ] {
        let service = refusing(code, "no");
        let (stage, id, records) = ordered(&service).await;
        let invoked = performed(&stage, &service, records).await;
        let line = invoked.lines()[0];
        let (error_type, error) = match status {
            ActionStatus::Done => ("StartRefused", "ValidationException"),
            _ => ("Deferred", "a limit of the account is reached: no"),
        };
        assert_eq!((&line["errorType"], &line["error"]), (&json!(error_type), &json!(error)));
        let expected = (status, status == ActionStatus::Pending, vec![fact.to_owned()]);
        assert_eq!(starts(&stage, &id).await, vec![expected; 4], "{code}");
    }
}

/// An account with one ended job, one line in its log, and a bus.
fn account(call: &Call) -> Answer {
    let stream = "stream/algo-1-1789000000";
    let line = "[0]#011train-auc:0.8#011validation-auc:0.7";
    match call.operation() {
        "DescribeTrainingJob" => Answer::done(&json!({
            "TrainingJobStatus": "Completed",
            "SecondaryStatus": "Completed",
            "CreationTime": 1_700_000_000,
            "TrainingStartTime": 1_700_000_060,
            "TrainingEndTime": 1_700_000_160,
            "LastModifiedTime": 1_700_000_161,
            "BillableTimeInSeconds": 100,
        })),
        "FilterLogEvents" => Answer::done(&json!({"events": [
            {"logStreamName": stream, "timestamp": 1_700_000_100_000_i64, "message": line, "eventId": "1"},
        ]})),
        "PutEvents" => Answer::done(&json!({"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]})),
        _ => Answer::done(&json!({"TrainingJobArn": "arn"})),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bill_and_a_log_are_read_and_a_notice_is_published() {
    let service = Service::start(account);
    let (stage, id, _) = ordered(&service).await;
    let job = parse_job_key("0-0-1").unwrap();
    let rest = Order::Read(ReadOrder::Rest {
        job,
        ordered: Time(1_700_000_000_000),
        ended: Time(1_700_000_160_000),
        at_once: false,
    });
    for order in
        [Order::Read(ReadOrder::Bill { job }), rest, Order::Notice(NoticeOrder::CapReached { percent: 50 })]
    {
        let row = ActionRow::pending(order).row(&id);
        stage.table.table().write(Write::Put(row, Condition::NotExists)).await.unwrap();
    }
    let records = stage.stream().await;
    let answer = stage.invoke(ACTUATOR, &event(records)).await;
    assert_eq!(answer, Ok(json!({"batchItemFailures": []})));
    let facts = stage.rows(&format!("F#{id}"), "").await;
    let keys: Vec<String> = facts.iter().map(|fact| stored::fact(fact).unwrap().key).collect();
    let begins = [
        "described#0-0-1",
        "read#0-0-1#stream/algo-1-1789000000#1#",
        "rest-read#0-0-1",
        "given#notice-cap-50",
    ];
    for begin in begins {
        assert_eq!(keys.iter().filter(|key| key.starts_with(begin)).count(), 1, "{begin}: {keys:?}");
    }
    let calls = service.calls();
    let sent = |operation: &str| calls.iter().find(|call| call.operation() == operation).unwrap();
    assert_eq!(sent("FilterLogEvents").body["logStreamNamePrefix"], format!("{id}-0-0-1/algo-1-"));
    assert_eq!(sent("PutEvents").body["Entries"][0]["EventBusName"], "bus");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trial_stopped_at_a_rung_is_published() {
    for taken in [true, false] {
        let service = Service::start(move |call| match call.operation() {
            "PutEvents" if !taken => Answer::error(400, "AccessDeniedException", "not authorized"),
            _ => account(call),
        });
        let (stage, id, _) = ordered(&service).await;
        let job = parse_job_key("0-0-1").unwrap();
        // A release that stored no numbers in orders made this one.
        let order = Order::Stop { job, why: StopWhy::Rung { rung: RungId(0) }, because: None };
        let row = ActionRow::pending(order).row(&id);
        stage.table.table().write(Write::Put(row, Condition::NotExists)).await.unwrap();
        let records = stage.stream().await;
        let stop = records.into_iter().filter(|record| record["dynamodb"]["Keys"]["sk"]["S"] == "stop-0-0-1");
        let invoked = stage.watch(ACTUATOR, &event(stop.collect())).await;
        assert_eq!(invoked.answer, Ok(json!({"batchItemFailures": []})));
        assert_eq!(json!(invoked.metrics()), json!({"ActionsPerformed": 1, "JobsStopped": 1}));
        let bus: Vec<&Value> =
            invoked.lines().into_iter().filter(|line| line["errorType"] == "Bus").collect();
        assert_eq!(bus.len(), usize::from(!taken), "{bus:?}");
        let calls = service.calls();
        let sent = calls.iter().find(|call| call.operation() == "PutEvents").unwrap();
        let entry = &sent.body["Entries"][0];
        assert_eq!(entry["DetailType"], "Tuning Trial Decision");
        let mut detail: Value = serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap();
        assert!(detail["Time"].take().is_i64());
        let expected = json!({
            "HyperParameterTuningJobName": "hb1",
            "TuningId": id,
            "TrainingJobName": format!("{id}-0-0-1"),
            "Decision": "Stopped",
            "Trial": 0,
            "Rung": 0,
            "Time": null,
        });
        assert_eq!(detail, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unresponsive_table_leaves_time_to_report_unfinished_records() {
    let service = Service::start(|call| match call.target.as_str() {
        "" => Answer::error(403, "AccessDeniedException", "no permission"),
        _ => account(call),
    });
    let (mut stage, id, records) = ordered(&service).await;
    stage.time_ms = Some(3_000);
    stage.fall_silent();
    let rows = records.iter().map(|record| &record["dynamodb"]["Keys"]["sk"]["S"]);
    let starts = rows.filter(|action| action.as_str().is_some_and(|action| action.starts_with("start-")));
    let starts: Vec<Value> = starts.map(|action| json!([id, action])).collect();
    // Stream records, which the mapping delivers again, and the starts that an earlier invocation handed over.
    for (event, again) in [(event(records), 4), (json!({"hyperbandStarts": starts}), 0)] {
        let invoked = stage.watch(ACTUATOR, &event).await;
        let failures = invoked.answer.as_ref().unwrap()["batchItemFailures"].as_array().map(Vec::len);
        assert_eq!(failures, Some(again));
        assert_eq!(json!(invoked.metrics()), json!({"ActionsFailed": 4}));
        for line in invoked.lines().iter().filter(|line| line["errorType"] != "HandOver") {
            assert_eq!((&line["errorType"], &line["tuning"]), (&json!("Timeout"), &json!(id)));
        }
    }
    assert!(calls(&service).is_empty());
}

#[test]
fn it_does_not_start_without_the_name_of_the_bus() {
    let output = Command::new(ACTUATOR)
        .env_clear()
        .envs([("TABLE_NAME", "t"), ("STACK_NAME", "s"), ("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:1")])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&line["function"], &line["errorType"]), (&json!("actuator"), &json!("Settings")));
    assert_eq!(line["error"], "missing environment variable EVENT_BUS_NAME: set it in the stack's template");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sample_event_has_its_documented_result() {
    lambda_host::samples::check("actuator", env!("CARGO_BIN_EXE_actuator")).await;
}
