//! State change events, sent to an emulated event bus.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loopback::{Answer, Service};
use serde_json::{Value, json};
use training_service::EventsTo;

use crate::world::{World, account, request, text, until};

fn accepted() -> Answer {
    Answer::done(&json!({"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}))
}

async fn world_with_bus(bus: &Service) -> World {
    let to = EventsTo { account: account(&bus.endpoint).await, source: "test.sagemaker".to_owned() };
    World::with(|settings| settings.events = Some(to)).await
}

/// Returns the details of the sent entries, in order.
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
async fn each_state_change_is_sent_as_a_sagemaker_event() {
    let bus = Service::start(|_| accepted());
    let world = world_with_bus(&bus).await;
    world.done("CreateTrainingJob", &request("job", "ends")).await;
    until("all events are sent", || states(&details(&bus), "job").len() == LIFE.len()).await;
    assert_eq!(states(&details(&bus), "job"), LIFE);
    let call = bus.calls().pop().unwrap();
    assert_eq!(call.target, "AWSEvents.PutEvents");
    let entry = &call.body["Entries"][0];
    assert_eq!(text(&entry["Source"]), "test.sagemaker");
    assert_eq!(text(&entry["DetailType"]), "SageMaker Training Job State Change");
    let arn = "arn:aws:sagemaker:eu-west-1:111122223333:training-job/job";
    assert_eq!(entry["Resources"], json!([arn]));
    let last = details(&bus).pop().unwrap();
    assert_eq!(last["Tags"], json!({"team": "vision"}), "tags are a map");
    let modified = last["LastModifiedTime"].as_f64().unwrap();
    assert!((entry["Time"].as_f64().unwrap() * 1000.0 - modified).abs() < 1.0, "{entry}");
    assert!(
        last["FailureReason"].is_null() && last.get("FailureReason").is_some(),
        "an absent value is null"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_event_is_retried_in_order() {
    let failures = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&failures);
    // The first attempt of the first event, and its retry by the SDK.
    let bus = Service::start(move |_| match count.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Answer::error(500, "InternalException", "oh"),
        _ => accepted(),
    });
    let world = world_with_bus(&bus).await;
    world.done("CreateTrainingJob", &request("job", "ends")).await;
    until("all events are sent", || states(&details(&bus), "job").len() >= LIFE.len() + 2).await;
    let sent = states(&details(&bus), "job");
    assert_eq!(
        (&sent[..2], &sent[2..]),
        (&["Starting".to_owned(), "Starting".to_owned()][..], &LIFE.map(String::from)[..])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_event_is_reported_and_delays_nothing() {
    let bus = Service::start(|_| Answer::error(400, "ValidationException", "no such bus"));
    let world = world_with_bus(&bus).await;
    world.done("CreateTrainingJob", &request("job", "ends")).await;
    world.reaches("job", "Completed").await;
    let dropped = "dropped the event Completed of job: ";
    let reported = Arc::clone(&world.reported);
    until("all are dropped", || reported.lock().unwrap().iter().any(|line| line.starts_with(dropped))).await;
    assert_eq!(bus.calls().len(), LIFE.len(), "a refused event is not retried");
    assert!(reported.lock().unwrap().iter().any(|line| line.ends_with("job InProgress Training")));
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_events_are_sent_on_shutdown() {
    let bus = Service::start(|_| accepted());
    let world = world_with_bus(&bus).await;
    let mut spot = request("job", "endless");
    spot["EnableManagedSpotTraining"] = json!(true);
    spot["StoppingCondition"]["MaxWaitTimeInSeconds"] = json!(1200);
    world.done("CreateTrainingJob", &spot).await;
    world.reaches("job", "Training").await;
    world.end().await;
    assert_eq!(states(&details(&bus), "job"), ["Starting", "Downloading", "Training", "Interrupted"]);
}
