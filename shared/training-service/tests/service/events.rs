//! Changes of state on a bus played on loopback.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loopback::{Answer, Service};
use serde_json::{Value, json};
use training_service::EventsTo;

use crate::world::{World, account, request, text, until};

fn taken() -> Answer {
    Answer::done(&json!({"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}))
}

async fn telling(bus: &Service) -> World {
    let to = EventsTo { account: account(&bus.endpoint).await, source: "test.sagemaker".to_owned() };
    World::with(|settings| settings.events = Some(to)).await
}

/// The details of the entries that were sent, in order.
fn details(bus: &Service) -> Vec<Value> {
    let entries = bus.calls().into_iter().map(|call| call.body["Entries"][0].clone());
    entries.map(|entry| serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap()).collect()
}

fn states(details: &[Value], job: &str) -> Vec<String> {
    let mine = details.iter().filter(|detail| detail["TrainingJobName"] == job);
    mine.map(|detail| text(&detail["SecondaryStatus"])).collect()
}

const LIFE: [&str; 5] = ["Starting", "Downloading", "Training", "Uploading", "Completed"];

#[tokio::test(flavor = "multi_thread")]
async fn each_change_is_an_event_of_the_real_shape() {
    let bus = Service::start(|_| taken());
    let world = telling(&bus).await;
    world.done("CreateTrainingJob", &request("job", "ends")).await;
    until("the end is told", || states(&details(&bus), "job").len() == LIFE.len()).await;
    assert_eq!(states(&details(&bus), "job"), LIFE);
    let call = bus.calls().pop().unwrap();
    assert_eq!(call.target, "AWSEvents.PutEvents");
    let entry = &call.body["Entries"][0];
    assert_eq!(text(&entry["Source"]), "test.sagemaker");
    assert_eq!(text(&entry["DetailType"]), "SageMaker Training Job State Change");
    let arn = "arn:aws:sagemaker:eu-west-1:111122223333:training-job/job";
    assert_eq!(entry["Resources"], json!([arn]));
    let last = details(&bus).pop().unwrap();
    assert_eq!(last["Tags"], json!({"team": "vision"}), "as a map");
    let modified = last["LastModifiedTime"].as_f64().unwrap();
    assert!((entry["Time"].as_f64().unwrap() * 1000.0 - modified).abs() < 1.0, "{entry}");
    assert!(last["FailureReason"].is_null() && last.get("FailureReason").is_some(), "absent is null");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bus_that_fails_is_tried_again_and_keeps_the_order() {
    let failures = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&failures);
    // The first try of the first event, and its retry by the SDK.
    let bus = Service::start(move |_| match count.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Answer::error(500, "InternalException", "oh"),
        _ => taken(),
    });
    let world = telling(&bus).await;
    world.done("CreateTrainingJob", &request("job", "ends")).await;
    until("the end is told", || states(&details(&bus), "job").len() >= LIFE.len() + 2).await;
    let told = states(&details(&bus), "job");
    assert_eq!(
        (&told[..2], &told[2..]),
        (&["Starting".to_owned(), "Starting".to_owned()][..], &LIFE.map(String::from)[..])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_bus_refuses_is_told_and_holds_up_nothing() {
    let bus = Service::start(|_| Answer::error(400, "ValidationException", "no such bus"));
    let world = telling(&bus).await;
    world.done("CreateTrainingJob", &request("job", "ends")).await;
    world.reaches("job", "Completed").await;
    let refused = "the event Completed of job was not delivered";
    let told = Arc::clone(&world.told);
    until("all are given up", || told.lock().unwrap().iter().any(|line| line.starts_with(refused))).await;
    assert_eq!(bus.calls().len(), LIFE.len(), "none is tried twice");
    assert!(told.lock().unwrap().iter().any(|line| line.ends_with("job InProgress Training")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_to_tell_is_told_when_the_service_ends() {
    let bus = Service::start(|_| taken());
    let world = telling(&bus).await;
    let mut spot = request("job", "endless");
    spot["EnableManagedSpotTraining"] = json!(true);
    spot["StoppingCondition"]["MaxWaitTimeInSeconds"] = json!(1200);
    world.done("CreateTrainingJob", &spot).await;
    world.reaches("job", "Training").await;
    world.end().await;
    assert_eq!(states(&details(&bus), "job"), ["Starting", "Downloading", "Training", "Interrupted"]);
}
