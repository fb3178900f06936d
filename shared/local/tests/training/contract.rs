//! The folder and the environment of a training process.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use use_cases::ports::training::{TrainingJobs, TrainingJobsError};

use crate::world::{World, instances, request};

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        .unwrap()
}

fn channel(name: &str, uri: &str, distribution: &str) -> Value {
    json!({
        "ChannelName": name,
        "ContentType": "text/csv",
        "DataSource": {"S3DataSource": {
            "S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": distribution,
        }},
    })
}

/// Returns the environment of a host, which the script wrote to a file.
fn environment(world: &World, host: &str) -> Vec<(String, String)> {
    let text = fs::read(world.service.host_folder("job", host).join("output/environment")).unwrap();
    String::from_utf8(text)
        .unwrap()
        .split_terminator('\0')
        .map(|entry| entry.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_host_has_its_files_and_environment_variables() {
    let world = World::new("cp /proc/self/environ $SM_ROOT/output/environment; pwd; cat").await;
    let mut request = instances(request("job"), 2);
    request["Environment"] = json!({"HB_TRIAL": "007", "SM_ROOT": "/not/this"});
    request["HyperParameters"]["name"] = json!("\"quoted\"");
    request["InputDataConfig"] = json!([channel("train", "s3://bucket/x", "FullyReplicated")]);
    world.create(&request).await;
    assert_eq!(world.ended("job").await["TrainingJobStatus"], "Completed");
    let mut addresses = Vec::new();
    for host in ["algo-1", "algo-2"] {
        let found = environment(&world, host);
        let get = |name: &str| {
            let value = found.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
            value.unwrap_or_else(|| panic!("{name} is missing"))
        };
        let root = world.service.host_folder("job", host);
        assert_eq!(get("SM_ROOT"), root.to_str().unwrap());
        assert_eq!(get("SM_CURRENT_HOST"), host);
        assert_eq!(get("SM_HOSTS"), r#"["algo-1","algo-2"]"#);
        assert_eq!((get("SM_NUM_GPUS"), get("HB_TRIAL")), ("0".to_owned(), "007".to_owned()));
        assert_eq!(get("SM_HPS"), r#"{"name":"quoted","num_round":27,"objective":"binary:logistic"}"#);
        assert_eq!((get("SM_HP_NUM_ROUND"), get("SM_HP_NAME")), ("27".to_owned(), "quoted".to_owned()));
        assert_eq!(get("SM_MODEL_DIR"), root.join("model").to_str().unwrap());
        assert_eq!(get("SM_OUTPUT_DATA_DIR"), root.join("output/data").to_str().unwrap());
        assert_eq!(get("SM_CHANNEL_TRAIN"), root.join("input/data/train").to_str().unwrap());
        assert_eq!(
            (get("SM_CHANNELS"), get("TRAINING_JOB_NAME")),
            (r#"["train"]"#.to_owned(), "job".to_owned())
        );
        assert_eq!(get("TRAINING_JOB_ARN"), "arn:aws:sagemaker:us-east-1:111122223333:training-job/job");
        assert!(get("SM_NUM_CPUS").parse::<u32>().unwrap() >= 1);
        addresses.push((get("SM_HOST_ADDRESSES"), get("SM_ATTEMPT_ID")));
        let resources = read(&root.join("input/config/resourceconfig.json"));
        assert_eq!(get("SM_RESOURCE_CONFIG"), resources.to_string());
        assert_eq!(resources["current_host"], host);
        assert_eq!(resources["network_interface_name"], "lo");
        assert_eq!(resources["instance_groups"][0]["hosts"], json!(["algo-1", "algo-2"]));
        let hyperparameters = read(&root.join("input/config/hyperparameters.json"));
        assert_eq!(hyperparameters, request["HyperParameters"]);
        let inputs = read(&root.join("input/config/inputdataconfig.json"));
        assert_eq!(inputs["train"]["ContentType"], "text/csv");
        assert!(root.join("model").is_dir() && root.join("checkpoints").is_dir());
    }
    assert_eq!(addresses[0], addresses[1]);
    let map: Value = serde_json::from_str(&addresses[0].0).unwrap();
    assert_ne!(map["algo-1"], map["algo-2"]);
    assert!(map["algo-1"].as_str().unwrap().starts_with("127."));
    let lines = world.messages("job/");
    let here = std::env::current_dir().unwrap();
    assert_eq!(lines.iter().filter(|line| **line == here.to_str().unwrap()).count(), 2);
    assert_eq!(lines.iter().filter(|line| line.contains("s3://bucket/x is not on this machine")).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn local_data_is_replicated_or_sharded_by_file() {
    let world = World::new("cd $SM_ROOT/input/data; find -L . -type f | sort | xargs cat; ls | wc -l").await;
    let data = world.folder.path().join("data");
    fs::create_dir_all(data.join("deep")).unwrap();
    for name in ["c.csv", "a.csv", "deep/b.csv", "d.csv", "e.csv"] {
        fs::write(data.join(name), format!("{name}\n")).unwrap();
    }
    let uri = format!("file://{}", data.display());
    let mut sharded = instances(request("sharded"), 2);
    sharded["InputDataConfig"] = json!([channel("train", &uri, "ShardedByS3Key")]);
    world.create(&sharded).await;
    let mut whole = instances(request("whole"), 2);
    let single = format!("{uri}/a.csv");
    whole["InputDataConfig"] =
        json!([channel("one", &single, "FullyReplicated"), channel("train", &uri, "FullyReplicated")]);
    world.create(&whole).await;
    world.ended("sharded").await;
    world.ended("whole").await;
    assert_eq!(world.messages("sharded/algo-1-"), ["a.csv", "d.csv", "e.csv", "1"].map(String::from));
    assert_eq!(world.messages("sharded/algo-2-"), ["c.csv", "deep/b.csv", "1"].map(String::from));
    for host in ["algo-1", "algo-2"] {
        let all = ["a.csv", "a.csv", "c.csv", "d.csv", "deep/b.csv", "e.csv", "2"];
        assert_eq!(world.messages(&format!("whole/{host}-")), all.map(String::from));
    }
    assert!(data.join("a.csv").is_file(), "the data is unchanged");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_missing_local_data_is_refused() {
    let world = World::new("exit 0").await;
    let mut missing = request("job");
    missing["InputDataConfig"] = json!([channel("train", "file:///no/such/folder", "FullyReplicated")]);
    let refusal = world.service.create(&missing).await.unwrap_err();
    let TrainingJobsError::Refused { code, message } = refusal else { panic!("{refusal:?}") };
    assert_eq!(code, "ValidationException");
    assert!(message.starts_with("No S3 objects found under S3 URL \"file:///no/such/folder\""), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_with_the_same_checkpoint_address_share_checkpoints() {
    let world =
        World::new("cat $SM_ROOT/checkpoints/* ; echo $TRAINING_JOB_NAME > $SM_ROOT/checkpoints/last").await;
    for (job, uri) in [("one", "s3://b/c/1/"), ("two", "s3://b/c/1"), ("three", "s3://b/c/2/")] {
        let mut request = request(job);
        request["CheckpointConfig"] = json!({"S3Uri": uri});
        world.create(&request).await;
        world.ended(job).await;
    }
    assert_eq!(world.messages("two/"), ["one"]);
    assert!(world.messages("three/").iter().all(|line| line.contains("No such file")));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_jobs_have_distinct_addresses() {
    let world = World::new("echo $SM_HOST_ADDRESSES").await;
    for job in ["a", "b"] {
        world.create(&instances(request(job), 2)).await;
    }
    world.ended("a").await;
    world.ended("b").await;
    let all = [world.messages("a/"), world.messages("b/")].concat();
    let parsed: Vec<Value> = all.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let hosts = |map: &Value| map.as_object().unwrap().values().map(ToString::to_string).collect::<Vec<_>>();
    let addresses: std::collections::BTreeSet<String> = parsed.iter().flat_map(hosts).collect();
    assert_eq!(addresses.len(), 4);
}
