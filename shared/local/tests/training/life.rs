//! The life of a job in events, logs and descriptions.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use use_cases::ports::training::{TrainingJobListing, TrainingJobs};

use crate::world::{World, instances, request, spot, text, until};
use tuning::unit::time::Time;

fn sample(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events").join(name);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_three_hosts_goes_through_all_states_in_order() {
    let world = World::new("echo \"hello from $SM_CURRENT_HOST\"; echo problem >&2").await;
    world.create(&instances(request("job"), 3)).await;
    let end = world.ended("job").await;
    let states = ["Starting", "Downloading", "Training", "Uploading", "Completed"];
    assert_eq!(world.states("job"), states);
    assert_eq!(end["TrainingJobStatus"], "Completed");
    let transitions: Vec<String> =
        end["SecondaryStatusTransitions"].as_array().unwrap().iter().map(|t| text(&t["Status"])).collect();
    assert_eq!(transitions, states);
    for host in 1..=3 {
        let mut lines = world.messages(&format!("job/algo-{host}-"));
        lines.sort_unstable();
        assert_eq!(lines, [format!("hello from algo-{host}"), "problem".to_owned()]);
        let stored = world.stored("job", &format!("algo-{host}")).await;
        assert_eq!(stored.len(), 2);
        assert!(stored[0].id < stored[1].id && stored[0].timestamp <= stored[1].timestamp);
    }
    let description = world.service.describe("job").await.unwrap();
    assert_eq!((description.status.as_str(), description.interruptions), ("Completed", 0));
    assert_eq!(description.billable_seconds, Some(1));
    assert!(description.started.unwrap() <= description.ended.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn events_and_descriptions_have_the_form_of_the_samples() {
    let world = World::new("exit 0").await;
    let mut request = spot("job");
    request["CheckpointConfig"] = json!({"S3Uri": "s3://bucket/ckpt/1/"});
    request["Environment"] = json!({"HB_TRIAL": "007"});
    request["InputDataConfig"] = json!([]);
    world.create(&request).await;
    world.ended("job").await;
    let events = world.events("job");
    for (event, name) in [
        (&events[0], "aws.sagemaker/training-job-state-change.starting.json"),
        (events.last().unwrap(), "aws.sagemaker/training-job-state-change.completed.json"),
    ] {
        let sample = sample(name);
        assert_eq!(keys(event), keys(&sample));
        assert_eq!(keys(&event["detail"]), keys(&sample["detail"]));
        for key in keys(&sample["detail"]) {
            let (ours, theirs) = (&event["detail"][&key], &sample["detail"][&key]);
            let unfilled = ["FinalMetricDataList"].contains(&key.as_str());
            assert!(unfilled || ours.is_null() == theirs.is_null(), "{name} {key}: {ours} like {theirs}");
            assert!(unfilled || ours.is_i64() == theirs.is_i64(), "{name} {key}: {ours} like {theirs}");
        }
        let transition = |event: &Value| event["detail"]["SecondaryStatusTransitions"][0].clone();
        assert_eq!(keys(&transition(event)), keys(&transition(&sample)));
    }
    assert_eq!(events[0]["detail"]["Tags"], json!({"hyperband:tuning": "t"}));
    assert_eq!(events[0]["resources"][0], "arn:aws:sagemaker:us-east-1:111122223333:training-job/job");
    let ids: BTreeSet<String> = events.iter().map(|event| text(&event["id"])).collect();
    assert_eq!(ids.len(), events.len());

    let described = world.service.describe_json("job").await.unwrap();
    let mut expected = keys(&sample("aws.sagemaker.api/describe-training-job.completed-spot.json"));
    expected.remove("FinalMetricDataList");
    assert_eq!(keys(&described), expected);
    assert!(described["CreationTime"].is_f64());
    assert_eq!(described["BillableTimeInSeconds"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn log_batches_have_the_form_of_cloudwatch_logs() {
    let world = World::new("i=0; while [ $i -lt 2500 ]; do echo line $i; i=$((i+1)); done").await;
    world.create(&request("job")).await;
    world.ended("job").await;
    let sample = sample("aws.logs/data-message.decoded.json");
    let mut ids = Vec::new();
    for batch in &world.received.lock().unwrap().batches {
        assert_eq!(keys(batch), keys(&sample));
        assert_eq!(batch["logGroup"], sample["logGroup"]);
        let events = batch["logEvents"].as_array().unwrap();
        assert!(!events.is_empty() && events.len() <= 1000);
        assert_eq!(keys(&events[0]), keys(&sample["logEvents"][0]));
        ids.extend(events.iter().map(|event| text(&event["id"])));
        assert_eq!(text(&events[0]["id"]).len(), text(&sample["logEvents"][0]["id"]).len());
        let digits = text(&batch["logStream"]).strip_prefix("job/algo-1-").unwrap().to_owned();
        assert_eq!(digits.len(), 13);
    }
    assert!(ids.is_sorted_by(|a, b| a < b));
    let messages = world.messages("job/");
    assert_eq!(messages.len(), 2500);
    assert_eq!(messages[2499], "line 2499");
    assert_eq!(world.stored("job", "algo-1").await.len(), 2500);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_is_delivered_while_the_job_runs() {
    let world = World::new("while :; do date +%s%3N; sleep 0.05; done").await;
    world.create(&request("job")).await;
    until("20 lines have arrived", || world.messages("job/").len() >= 20).await;
    world.service.stop("job").await.unwrap();
    let received = world.received.lock().unwrap();
    let mut delays: Vec<i64> = received
        .batches
        .iter()
        .zip(&received.times)
        .map(|(batch, arrival)| arrival - text(&batch["logEvents"][0]["message"]).parse::<i64>().unwrap())
        .collect();
    delays.sort_unstable();
    // The median, because a busy machine may delay single lines.
    assert!(delays[delays.len() / 2] < 100, "{delays:?}");
    eprintln!("delays in ms: {delays:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn running_jobs_are_listed_oldest_first_and_described() {
    let world = World::new("exec sleep 600").await;
    for job in ["b", "a", "c"] {
        world.create(&request(job)).await;
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    until("all train", || ["a", "b", "c"].iter().all(|job| world.states(job).len() == 3)).await;
    world.service.stop("c").await.unwrap();
    let page = world.service.in_progress(Time(0), None).await.unwrap();
    let names: Vec<&str> = page.items.iter().map(|job| job.name.as_str()).collect();
    assert_eq!((names, page.next), (vec!["b", "a"], None));
    let after = format!("{}:b", page.items[0].created);
    assert_eq!(world.service.in_progress(Time(0), Some(&after)).await.unwrap().items.len(), 1);
    let since = page.items[1].created;
    assert_eq!(world.service.in_progress(since, None).await.unwrap().items, page.items[1..]);
    let description = world.service.describe("a").await.unwrap();
    assert_eq!(
        (description.status.as_str(), description.secondary_status.as_str()),
        ("InProgress", "Training")
    );
    assert_eq!((description.billable_seconds, description.ended), (None, None));
    world.service.shutdown().await;
}
