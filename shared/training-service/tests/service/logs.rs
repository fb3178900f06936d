//! Log lines of jobs, sent to an emulated CloudWatch Logs.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use loopback::{Answer, Call, Service};
use serde_json::{Value, json};
use training_service::{LOG_GROUP, LogsTo};

use crate::world::{World, account, request, text, until};

/// The created groups and streams, and the bodies of `PutLogEvents`.
#[derive(Default)]
struct Stored {
    created: BTreeSet<String>,
    puts: Vec<Value>,
}

/// Starts the emulator. It answers 503 while `unavailable` is true.
fn logs(unavailable: Arc<AtomicBool>) -> (Service, Arc<Mutex<Stored>>) {
    let stored: Arc<Mutex<Stored>> = Arc::default();
    let shared = Arc::clone(&stored);
    let service = Service::start(move |call| {
        if unavailable.load(Ordering::Relaxed) {
            Answer::text(503, "")
        } else {
            answer(&mut shared.lock().unwrap(), call)
        }
    });
    (service, stored)
}

fn answer(stored: &mut Stored, call: &Call) -> Answer {
    let (group, stream) = (text(&call.body["logGroupName"]), text(&call.body["logStreamName"]));
    let created = |new| {
        if new {
            Answer::text(200, "")
        } else {
            Answer::error(400, "ResourceAlreadyExistsException", "exists")
        }
    };
    match call.operation() {
        "CreateLogGroup" => created(stored.created.insert(group)),
        "CreateLogStream" if stored.created.contains(&group) => created(stored.created.insert(stream)),
        "PutLogEvents" if stored.created.contains(&stream) => {
            stored.puts.push(call.body.clone());
            Answer::done(&json!({"nextSequenceToken": "1"}))
        }
        _ => Answer::error(400, "ResourceNotFoundException", "The specified log group does not exist."),
    }
}

async fn world_with_logs(service: &Service) -> World {
    let to = LogsTo { account: account(&service.endpoint).await, group: LOG_GROUP.to_owned() };
    World::with(|settings| settings.logs = Some(to)).await
}

fn messages(stored: &Mutex<Stored>, job: &str) -> Vec<String> {
    let stored = stored.lock().unwrap();
    let puts = stored.puts.iter().filter(|put| text(&put["logStreamName"]).starts_with(&format!("{job}/")));
    puts.flat_map(|put| put["logEvents"].as_array().unwrap()).map(|event| text(&event["message"])).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_written_to_the_stream_of_their_host_in_a_created_group() {
    let (service, stored) = logs(Arc::default());
    let world = world_with_logs(&service).await;
    for job in ["a", "b"] {
        world.done("CreateTrainingJob", &request(job, "ends")).await;
    }
    until("both are written", || ["a", "b"].iter().all(|job| messages(&stored, job).len() == 2)).await;
    assert_eq!(messages(&stored, "a"), ["one", "two"]);
    let stored = stored.lock().unwrap();
    assert!(stored.created.contains(LOG_GROUP));
    let stream = text(&stored.puts[0]["logStreamName"]);
    let digits = stream.split_once("/algo-1-").unwrap().1;
    assert!(digits.len() == 13 && digits.bytes().all(|byte| byte.is_ascii_digit()), "{stream}");
    assert!(stored.puts[0]["logEvents"][0]["timestamp"].is_i64());
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_wait_while_the_endpoint_is_unavailable_and_delay_no_job() {
    let unavailable = Arc::new(AtomicBool::new(true));
    let (service, stored) = logs(Arc::clone(&unavailable));
    let world = world_with_logs(&service).await;
    world.done("CreateTrainingJob", &request("job", "ends")).await;
    world.reaches("job", "Completed").await;
    let reported = Arc::clone(&world.reported);
    let failing = || reported.lock().unwrap().iter().any(|line| line.starts_with("cannot write logs: "));
    until("the failure is reported", failing).await;
    assert_eq!(messages(&stored, "job"), Vec::<String>::new());
    unavailable.store(false, Ordering::Relaxed);
    until("they are written", || messages(&stored, "job").len() == 2).await;
    assert_eq!(messages(&stored, "job"), ["one", "two"]);
    let recovered = || reported.lock().unwrap().iter().any(|line| line == "writing logs again");
    until("the recovery is reported", recovered).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_lines_are_flushed_on_shutdown() {
    let (service, stored) = logs(Arc::default());
    let world = world_with_logs(&service).await;
    world.done("CreateTrainingJob", &request("job", "ends")).await;
    world.reaches("job", "Completed").await;
    world.end().await;
    assert_eq!(messages(&stored, "job"), ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_lines_are_counted() {
    let service = Service::start(|_| Answer::error(400, "AccessDeniedException", "no"));
    let world = world_with_logs(&service).await;
    world.done("CreateTrainingJob", &request("job", "ends")).await;
    let reported = Arc::clone(&world.reported);
    let counted = || reported.lock().unwrap().iter().any(|line| line.starts_with("dropped 2 log lines: "));
    until("the refused lines are reported", counted).await;
}
