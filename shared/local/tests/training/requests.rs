//! Refused requests and their messages.

use serde_json::{Value, json};
use use_cases::ports::training::{JobLogs, TrainingJobs, TrainingJobsError};

use crate::world::{World, instances, request, spot};
use tuning::unit::time::Time;

async fn refusal(world: &World, request: &Value) -> String {
    match world.service.create(request).await {
        Err(TrainingJobsError::Refused { code, message }) if code == "ValidationException" => message,
        other => panic!("{request}: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_requests_are_refused_and_create_nothing() {
    let world = World::new("exit 0").await;
    let mut cases = vec![(json!(null), "object"), (json!({}), "trainingJobName")];
    for name in ["", "-a", "a-", "a_b", "../up", "a/b", &"x".repeat(64)] {
        cases.push((request(name), "trainingJobName"));
    }
    let mut change = |path: &str, value: Value, expected: &'static str| {
        let mut changed = request("job");
        *changed.pointer_mut(path).unwrap() = value;
        cases.push((changed, expected));
    };
    change("/RoleArn", json!(null), "roleArn");
    change("/AlgorithmSpecification", json!(null), "algorithmSpecification");
    change("/OutputDataConfig", json!({}), "outputDataConfig.s3OutputPath");
    change("/ResourceConfig/InstanceCount", json!(0), "greater than or equal to 1");
    change("/ResourceConfig/InstanceCount", json!("1"), "resourceConfig.instanceCount");
    change("/ResourceConfig/InstanceType", json!(null), "resourceConfig.instanceType");
    change("/StoppingCondition/MaxRuntimeInSeconds", json!(0), "greater than or equal to 1");
    change("/HyperParameters/num_round", json!(27), "hyperParameters.num_round");
    change("/HyperParameters/num_round", json!("x".repeat(2501)), "2500");
    let many: Value =
        (0..101).map(|n| (format!("p{n}"), json!("1"))).collect::<serde_json::Map<_, _>>().into();
    change("/HyperParameters", many, "100");
    change("/Tags/0", json!({"Key": "only"}), "tags");
    let mut add = |field: &str, value: Value, expected: &'static str| {
        let mut changed = request("job");
        changed[field] = value;
        cases.push((changed, expected));
    };
    add("Environment", json!({"BAD-NAME": "1"}), "environment");
    add("EnableManagedSpotTraining", json!(true), "Invalid MaxWaitTimeInSeconds");
    let source = json!({"S3DataSource": {"S3Uri": "s3://b/x"}});
    add("InputDataConfig", json!([{"ChannelName": "..", "DataSource": source}]), "channelName");
    add("StoppingCondition", json!({"MaxWaitTimeInSeconds": 9}), "EnableManagedSpotTraining is set to true");
    let mut short = spot("job");
    short["StoppingCondition"]["MaxWaitTimeInSeconds"] = json!(599);
    cases.push((short, "greater than or equal to MaxRuntimeInSeconds"));
    for (bad, expected) in cases {
        let message = refusal(&world, &bad).await;
        assert!(message.contains(expected), "{message} does not name {expected}");
    }
    assert_eq!(std::fs::read_dir(world.root().join("jobs")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_fields_are_accepted_and_kept() {
    let world = World::new("exit 0").await;
    let mut extended = request("job");
    extended["SomethingNew"] = json!({"a": 1});
    extended["VpcConfig"] = json!({"Subnets": ["s"]});
    world.create(&extended).await;
    world.ended("job").await;
    assert_eq!(world.service.describe_json("job").await.unwrap()["VpcConfig"]["Subnets"][0], "s");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_stays_taken_after_a_restart() {
    let world = World::new("exit 0").await;
    world.create(&request("job")).await;
    world.ended("job").await;
    let again = world.service.create(&request("job")).await.unwrap_err();
    let TrainingJobsError::NameTaken(message) = &again else { panic!("{again:?}") };
    assert!(message.starts_with("Training job names must be unique within an AWS account and region"));
    assert!(message.contains("training-job/job"));
    let world = world.reopen("exit 0", |_| {}).await;
    assert_eq!(world.service.create(&request("job")).await.unwrap_err(), again);
    assert_eq!(world.service.describe("job").await.unwrap().status, "Completed");
    assert_eq!(world.service.tags("job").await.unwrap()["hyperband:tuning"], "t");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_concurrent_creates_succeeds() {
    let world = World::new("exit 0").await;
    let request = request("job");
    let (one, two) = tokio::join!(world.service.create(&request), world.service.create(&request));
    assert_eq!([one.is_ok(), two.is_ok()].iter().filter(|won| **won).count(), 1);
    world.ended("job").await;
    assert_eq!(world.states("job").len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_counts_the_jobs_that_have_not_ended() {
    let world = World::with("exec sleep 600", |config| {
        config.quota.instances.insert("ml.m5.large".to_owned(), 3);
    })
    .await;
    world.create(&instances(request("a"), 2)).await;
    let refused = world.service.create(&instances(request("b"), 2)).await.unwrap_err();
    let TrainingJobsError::LimitExceeded(message) = refused else { panic!("{refused:?}") };
    let expected = "The account-level service limit 'ml.m5.large for training job usage' is 3 Instances, with \
                    current utilization of 2 Instances and a request delta of 2 Instances.";
    assert!(message.starts_with(expected), "{message}");
    world.create(&instances(request("c"), 1)).await;
    world.service.stop("a").await.unwrap();
    world.ended("a").await;
    world.create(&instances(request("b"), 2)).await;
    world.service.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_job_is_not_found() {
    let world = World::new("exit 0").await;
    let expected = TrainingJobsError::NotFound("Requested resource not found.".to_owned());
    assert_eq!(world.service.stop("none").await.unwrap_err(), expected);
    assert_eq!(world.service.describe("none").await.unwrap_err(), expected);
    assert_eq!(world.service.tags("none").await.unwrap_err(), expected);
    assert_eq!(world.service.describe_json("none").await.unwrap_err(), expected);
    assert_eq!(world.service.read("none", "algo-1", Time(0), None).await.unwrap_err(), expected);
}
