//! The operations, by their JSON requests and answers.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::world::{World, request, text};

fn named(job: &str) -> Value {
    json!({"TrainingJobName": job})
}

const NOT_FOUND: &str = "Requested resource not found.";

fn arn(job: &str) -> String {
    format!("arn:aws:sagemaker:eu-west-1:111122223333:training-job/{job}")
}

fn validation(message: &str) -> (String, String) {
    ("ValidationException".to_owned(), message.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_and_is_described() {
    let world = World::new().await;
    let created = world.done("CreateTrainingJob", &request("job", "ends")).await;
    assert_eq!(created, json!({"TrainingJobArn": arn("job")}));
    let seen = world.reaches("job", "Completed").await;
    assert_eq!(
        (&seen["TrainingJobStatus"], &seen["TrainingJobArn"]),
        (&json!("Completed"), &json!(arn("job")))
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    for time in ["CreationTime", "TrainingStartTime", "TrainingEndTime", "LastModifiedTime"] {
        let seconds = seen[time].as_f64().unwrap();
        assert!(seconds <= now && seconds > now - 600.0, "{time} is in seconds: {seconds}");
    }
    assert!(seen["BillableTimeInSeconds"].is_u64());
    assert!(seen.as_object().unwrap().values().all(|value| !value.is_null()), "absent members are omitted");
    assert!(seen.get("Tags").is_none(), "DescribeTrainingJob has no tags");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_job_has_the_last_value_of_each_metric_that_it_logged() {
    let world = World::new().await;
    let mut job = request("job", "measures");
    job["AlgorithmSpecification"]["MetricDefinitions"] =
        json!([{"Name": "loss", "Regex": "loss=([0-9.]+)"}, {"Name": "accuracy", "Regex": "acc=([0-9.]+)"}]);
    world.done("CreateTrainingJob", &job).await;
    let seen = world.reaches("job", "Completed").await;
    let metrics = seen["FinalMetricDataList"].as_array().unwrap();
    assert_eq!(metrics.len(), 1, "{metrics:?}");
    assert_eq!((&metrics[0]["MetricName"], &metrics[0]["Value"]), (&json!("loss"), &json!(0.25)));
    let (at, end) = (metrics[0]["Timestamp"].as_f64().unwrap(), seen["TrainingEndTime"].as_f64().unwrap());
    assert!(at <= end && at >= seen["TrainingStartTime"].as_f64().unwrap(), "{at} of {seen}");
    job["TrainingJobName"] = json!("endless");
    job["HyperParameters"]["program"] = json!("endless");
    world.done("CreateTrainingJob", &job).await;
    let seen = world.reaches("endless", "Training").await;
    assert!(seen.get("FinalMetricDataList").is_none(), "the list is set when the job ends: {seen}");
}

/// Every answer had the Region of the service, which a client of another Region does not accept in `AddTags`.
#[tokio::test(flavor = "multi_thread")]
async fn regression_a_job_keeps_the_region_of_the_client_that_created_it() {
    let world = World::new().await;
    let created = world.done_in("us-gov-west-1", "CreateTrainingJob", &request("job", "ends")).await;
    let mine = "arn:aws-us-gov:sagemaker:us-gov-west-1:111122223333:training-job/job";
    assert_eq!(created, json!({"TrainingJobArn": mine}));
    let seen = world.reaches("job", "Completed").await;
    assert_eq!(seen["TrainingJobArn"], mine, "a client of any Region gets the ARN of the creation");
    let folder = world.end().await;
    let world = World::open(folder, |_| {}).await;
    assert_eq!(world.done("DescribeTrainingJob", &named("job")).await["TrainingJobArn"], mine);
    let listed = world.done_in("ap-southeast-2", "ListTrainingJobs", &json!({})).await;
    assert_eq!(listed["TrainingJobSummaries"][0]["TrainingJobArn"], mine);
    let tags = json!({"Tags": [{"Key": "team", "Value": "vision"}]});
    assert_eq!(world.done_in("us-gov-west-1", "ListTags", &json!({"ResourceArn": mine})).await, tags);
    let (code, message) = world.refused("ListTags", &json!({"ResourceArn": arn("job")})).await;
    assert_eq!(code, "ValidationException", "{message}");
    let (_, message) = world.refused("CreateTrainingJob", &request("job", "ends")).await;
    assert!(message.contains(mine), "{message}");
    let odd = world.done_in("no region", "CreateTrainingJob", &request("odd", "ends")).await;
    assert_eq!(odd, json!({"TrainingJobArn": arn("odd")}), "another text is no Region");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_match_those_of_sagemaker() {
    let world = World::with(|settings| settings.training.quota.default_instances = Some(1)).await;
    for operation in ["DescribeTrainingJob", "StopTrainingJob"] {
        assert_eq!(world.refused(operation, &named("none")).await, validation(NOT_FOUND));
    }
    world.done("CreateTrainingJob", &request("job", "endless")).await;
    let (code, message) = world.refused("CreateTrainingJob", &request("job", "ends")).await;
    assert_eq!(code, "ResourceInUse");
    assert!(message.contains(&arn("job")), "{message}");
    let (code, message) = world.refused("CreateTrainingJob", &request("other", "ends")).await;
    assert_eq!(code, "ResourceLimitExceeded");
    assert!(message.contains("'ml.m5.large for training job usage' is 1 Instances"), "{message}");
    assert_eq!(world.done("StopTrainingJob", &named("job")).await, Value::Null, "the answer is empty");
    world.reaches("job", "Stopped").await;
    let message = "The request was rejected because the training job is in status Stopped.";
    assert_eq!(world.refused("StopTrainingJob", &named("job")).await, validation(message));
    let (code, message) = world.refused("CreateTrainingJob", &request("no_such_name", "ends")).await;
    assert_eq!(code, "ValidationException");
    assert!(message.contains("trainingJobName"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_listed_as_summaries() {
    let world = World::new().await;
    for (job, program) in [("a-1", "ends"), ("a-2", "fails"), ("b-1", "endless")] {
        world.done("CreateTrainingJob", &request(job, program)).await;
    }
    world.reaches("a-1", "Completed").await;
    world.reaches("a-2", "Failed").await;
    let listed = world.done("ListTrainingJobs", &json!({"NameContains": "a-", "MaxResults": 1})).await;
    let first = &listed["TrainingJobSummaries"][0];
    assert_eq!(
        (text(&first["TrainingJobName"]), text(&first["TrainingJobArn"])),
        ("a-1".to_owned(), arn("a-1"))
    );
    assert!(first["CreationTime"].is_f64() && first["TrainingEndTime"].is_f64(), "{first}");
    let next = json!({"NameContains": "a-", "MaxResults": 1, "NextToken": listed["NextToken"]});
    let listed = world.done("ListTrainingJobs", &next).await;
    assert_eq!(listed["TrainingJobSummaries"][0]["TrainingJobName"], "a-2");
    assert!(listed.get("NextToken").is_none(), "{listed}");
    let running = world.done("ListTrainingJobs", &json!({"StatusEquals": "InProgress"})).await;
    assert_eq!(running["TrainingJobSummaries"].as_array().unwrap().len(), 1);
    assert_eq!(running["TrainingJobSummaries"][0]["TrainingJobName"], "b-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn added_tags_survive_a_restart() {
    let world = World::new().await;
    world.done("CreateTrainingJob", &request("job", "ends")).await;
    world.reaches("job", "Completed").await;
    let tag = |key: &str, value: &str| json!({"Key": key, "Value": value});
    let added = json!({"ResourceArn": arn("job"), "Tags": [tag("team", "speech"), tag("cost", "7")]});
    let all = json!({"Tags": [tag("cost", "7"), tag("team", "speech")]});
    assert_eq!(world.done("AddTags", &added).await, all);
    let many: Vec<Value> = (0..49).map(|n| tag(&format!("k{n}"), "v")).collect();
    let (code, message) = world.refused("AddTags", &json!({"ResourceArn": arn("job"), "Tags": many})).await;
    assert!(code == "ValidationException" && message.contains("50"), "{message}");
    let folder = world.end().await;
    let world = World::open(folder, |_| {}).await;
    assert_eq!(world.done("ListTags", &json!({"ResourceArn": arn("job")})).await, all);
    for arn in [arn("none"), arn(""), "job".to_owned(), arn("job").replace("eu-west-1", "us-east-1")] {
        let (code, _) = world.refused("ListTags", &json!({"ResourceArn": arn})).await;
        assert_eq!(code, "ValidationException", "{arn}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_releases_the_warm_pool_and_supports_no_other_change() {
    let world = World::new().await;
    let mut kept = request("job", "ends");
    kept["ResourceConfig"]["KeepAlivePeriodInSeconds"] = json!(600);
    world.done("CreateTrainingJob", &kept).await;
    let seen = world.reaches("job", "Completed").await;
    assert_eq!(seen["WarmPoolStatus"], json!({"Status": "Available"}));
    let available = json!({"WarmPoolStatusEquals": "Available"});
    let listed = world.done("ListTrainingJobs", &available).await;
    assert_eq!(listed["TrainingJobSummaries"][0]["WarmPoolStatus"], seen["WarmPoolStatus"]);
    let update = |resources: Value| json!({"TrainingJobName": "job", "ResourceConfig": resources});
    for refused in [
        update(json!({"KeepAlivePeriodInSeconds": 900})),
        update(json!({})),
        json!({"TrainingJobName": "job", "ProfilerConfig": {"DisableProfiler": true}}),
    ] {
        assert_eq!(world.refused("UpdateTrainingJob", &refused).await.0, "ValidationException", "{refused}");
    }
    let release = update(json!({"KeepAlivePeriodInSeconds": 0}));
    assert_eq!(world.done("UpdateTrainingJob", &release).await, json!({"TrainingJobArn": arn("job")}));
    let seen = world.reaches("job", "Completed").await;
    assert_eq!(seen["WarmPoolStatus"]["Status"], "Terminated");
    assert_eq!(world.refused("UpdateTrainingJob", &release).await.0, "ValidationException");
    let mut none = release;
    none["TrainingJobName"] = json!("none");
    assert_eq!(world.refused("UpdateTrainingJob", &none).await, validation(NOT_FOUND));
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_running_at_shutdown_are_interrupted() {
    let world = World::new().await;
    let mut spot = request("spot", "endless");
    spot["EnableManagedSpotTraining"] = json!(true);
    spot["StoppingCondition"]["MaxWaitTimeInSeconds"] = json!(1200);
    world.done("CreateTrainingJob", &spot).await;
    world.done("CreateTrainingJob", &request("on-demand", "endless")).await;
    world.reaches("spot", "Training").await;
    world.reaches("on-demand", "Training").await;
    let folder = world.end().await;
    let world = World::open(folder, |_| {}).await;
    for name in ["spot", "on-demand"] {
        let seen = world.reaches(name, "Training").await;
        let states: Vec<String> = seen["SecondaryStatusTransitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|state| text(&state["Status"]))
            .collect();
        assert!(states.contains(&"Interrupted".to_owned()), "{name}: {states:?}");
        world.done("StopTrainingJob", &named(name)).await;
        world.reaches(name, "Stopped").await;
    }
}
