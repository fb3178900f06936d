//! Lines of jobs in CloudWatch Logs played on loopback.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use loopback::{Answer, Call, Service};
use serde_json::{Value, json};
use training_service::{LOG_GROUP, LogsTo};

use crate::world::{World, account, request, text, until};

/// Groups and streams that were made, and what was put.
#[derive(Default)]
struct Kept {
    made: BTreeSet<String>,
    puts: Vec<Value>,
}

fn logs(away: Arc<AtomicBool>) -> (Service, Arc<Mutex<Kept>>) {
    let kept: Arc<Mutex<Kept>> = Arc::default();
    let shared = Arc::clone(&kept);
    let service = Service::start(move |call| {
        if away.load(Ordering::Relaxed) {
            Answer::text(503, "")
        } else {
            answer(&mut shared.lock().unwrap(), call)
        }
    });
    (service, kept)
}

fn answer(kept: &mut Kept, call: &Call) -> Answer {
    let (group, stream) = (text(&call.body["logGroupName"]), text(&call.body["logStreamName"]));
    let there = |made| {
        if made {
            Answer::text(200, "")
        } else {
            Answer::error(400, "ResourceAlreadyExistsException", "exists")
        }
    };
    match call.operation() {
        "CreateLogGroup" => there(kept.made.insert(group)),
        "CreateLogStream" if kept.made.contains(&group) => there(kept.made.insert(stream)),
        "PutLogEvents" if kept.made.contains(&stream) => {
            kept.puts.push(call.body.clone());
            Answer::done(&json!({"nextSequenceToken": "1"}))
        }
        _ => Answer::error(400, "ResourceNotFoundException", "The specified log group does not exist."),
    }
}

async fn writing(service: &Service) -> World {
    let to = LogsTo { account: account(&service.endpoint).await, group: LOG_GROUP.to_owned() };
    World::with(|settings| settings.logs = Some(to)).await
}

fn messages(kept: &Mutex<Kept>, job: &str) -> Vec<String> {
    let kept = kept.lock().unwrap();
    let puts = kept.puts.iter().filter(|put| text(&put["logStreamName"]).starts_with(&format!("{job}/")));
    puts.flat_map(|put| put["logEvents"].as_array().unwrap()).map(|event| text(&event["message"])).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_come_to_a_stream_of_their_host_in_a_group_that_is_made() {
    let (service, kept) = logs(Arc::default());
    let world = writing(&service).await;
    for job in ["a", "b"] {
        world.done("CreateTrainingJob", &request(job, "ends")).await;
    }
    until("both are written", || ["a", "b"].iter().all(|job| messages(&kept, job).len() == 2)).await;
    assert_eq!(messages(&kept, "a"), ["one", "two"]);
    let kept = kept.lock().unwrap();
    assert!(kept.made.contains(LOG_GROUP));
    let stream = text(&kept.puts[0]["logStreamName"]);
    let digits = stream.split_once("/algo-1-").unwrap().1;
    assert!(digits.len() == 13 && digits.bytes().all(|byte| byte.is_ascii_digit()), "{stream}");
    assert!(kept.puts[0]["logEvents"][0]["timestamp"].is_i64());
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_wait_while_the_endpoint_is_away_and_hold_up_no_job() {
    let away = Arc::new(AtomicBool::new(true));
    let (service, kept) = logs(Arc::clone(&away));
    let world = writing(&service).await;
    world.done("CreateTrainingJob", &request("job", "ends")).await;
    world.reaches("job", "Completed").await;
    let told = Arc::clone(&world.told);
    until("it is told", || told.lock().unwrap().iter().any(|line| line.starts_with("logs are not written")))
        .await;
    assert_eq!(messages(&kept, "job"), Vec::<String>::new());
    away.store(false, Ordering::Relaxed);
    until("they are written", || messages(&kept, "job").len() == 2).await;
    assert_eq!(messages(&kept, "job"), ["one", "two"]);
    until("it is told", || told.lock().unwrap().iter().any(|line| line == "logs are written again")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_written_when_the_service_ends() {
    let (service, kept) = logs(Arc::default());
    let world = writing(&service).await;
    world.done("CreateTrainingJob", &request("job", "ends")).await;
    world.reaches("job", "Completed").await;
    world.end().await;
    assert_eq!(messages(&kept, "job"), ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_counted() {
    let service = Service::start(|_| Answer::error(400, "AccessDeniedException", "no"));
    let world = writing(&service).await;
    world.done("CreateTrainingJob", &request("job", "ends")).await;
    let told = Arc::clone(&world.told);
    until("they are counted", || told.lock().unwrap().iter().any(|line| line.starts_with("2 lines"))).await;
}
