//! Requests for this machine: without fields of AWS, with channels of this machine, with and without prices.

use serde_json::{Value, json};
use wire::sample;

use crate::world::{QUICK, World, exists, request};

/// The hint about the model of the best epoch.
const BEST_EPOCH: &str = "note: the best value of any epoch counts, but the model is that of the last epoch: save it \
                          whenever validation:auc improves, or set Controller.Refit to \"Best\"\n";
const NOTE: &str = "note: this machine has defaults for fields of TrainingJobDefinition that a stack requires: \
                    RoleArn, OutputDataConfig.S3OutputPath, AlgorithmSpecification.TrainingInputMode, \
                    AlgorithmSpecification.TrainingImage, ResourceConfig.InstanceType, ResourceConfig.InstanceCount, \
                    ResourceConfig.VolumeSizeInGB, StoppingCondition.MaxRuntimeInSeconds. `hyperband check --stack` \
                    validates without them.\n";

/// Returns a request without fields of AWS, prices and a cap.
fn bare() -> Value {
    let changes = json!({
        "HyperParameterTuningJobConfig": {"ParameterRanges": {"CategoricalParameterRanges": null}},
        "TrainingJobDefinition": {
            "AlgorithmSpecification": {"TrainingImage": null, "TrainingInputMode": null},
            "RoleArn": null, "OutputDataConfig": null, "ResourceConfig": null, "StoppingCondition": null,
        },
        "Controller": {"MaxCostUsd": null, "InstancePricesUsdPerHour": null},
    });
    sample::with(request("t"), changes)
}

fn world(changes: Value) -> World {
    let world = World::new(QUICK);
    world.write_request("request.json", &sample::with(bare(), changes));
    world
}

#[test]
fn a_request_without_fields_of_aws_runs_and_only_a_stack_rejects_it() {
    let world = world(json!({}));
    let checked = world.hyperband(&["check", "request.json"]).with_code(0);
    assert_eq!(checked.out, format!("t: the request is valid\n{NOTE}{BEST_EPOCH}no warnings\n"));
    let shown = world.hyperband(&["check", "request.json", "--output", "json"]).with_code(0).json();
    assert_eq!(shown["RequiredByStack"].as_array().unwrap().len(), 8, "{shown}");
    assert_eq!(shown["RequiredByStack"][0], "TrainingJobDefinition.RoleArn");
    world.hyperband(&["plan", "request.json"]).with_code(0);
    for command in [&["check", "--stack", "request.json"][..], &["submit", "request.json"]] {
        let ended = world.hyperband(command).with_code(2);
        assert!(ended.err.contains("TrainingJobDefinition.RoleArn"), "{ended:?}");
    }
    let ended = world.run(&["--output", "json"]).with_code(0);
    let job = &ended.json()["TuningJob"]["TrainingJobDefinition"];
    assert_eq!(job["ResourceConfig"]["InstanceType"], "ml.local.machine");
    let again = world.run(&[]).with_code(0);
    assert!(again.err.starts_with("t has already ended"), "{again:?}");
}

#[test]
fn a_request_for_a_stack_has_no_note_and_needs_no_price_there() {
    let world = World::new(QUICK);
    let checked = world.hyperband(&["check", "request.json"]).with_code(0);
    assert!(!checked.out.contains("note: this machine"), "{checked:?}");
    let unpriced = sample::with(request("t"), json!({"Controller": {"InstancePricesUsdPerHour": null}}));
    world.write_request("request.json", &unpriced);
    let checked = world.hyperband(&["check", "request.json"]).with_code(2);
    assert!(checked.err.contains("{\"ml.m5.large\": 0.5}, or remove MaxCostUsd"), "{checked:?}");
    world.hyperband(&["check", "request.json", "--stack"]).with_code(0);
}

#[test]
fn a_metric_without_a_regex_is_in_the_note_and_no_warning() {
    let metrics = json!({"TrainingJobDefinition": {"AlgorithmSpecification": null}});
    let world = world(metrics);
    let checked = world.hyperband(&["check", "request.json"]).with_code(0);
    assert!(
        checked.out.contains(", AlgorithmSpecification.MetricDefinitions. `hyperband check"),
        "{checked:?}"
    );
    assert!(checked.out.ends_with("\nno warnings\n"), "{checked:?}");
}

#[test]
fn a_cap_needs_a_price_and_a_time_limit_that_fits() {
    let world = world(json!({"Controller": {"MaxCostUsd": 1}}));
    let message = "MaxCostUsd needs a price, and this machine has no price list; set \
                   Controller.InstancePricesUsdPerHour to the price of one hour, for example \
                   {\"ml.local.machine\": 0.5}, or remove MaxCostUsd";
    for ended in [world.run(&[]), world.hyperband(&["check", "request.json"])] {
        assert!(ended.with_code(2).err.contains(message));
    }
    let priced =
        json!({"Controller": {"MaxCostUsd": 1, "InstancePricesUsdPerHour": {"ml.local.machine": 0.5}}});
    world.write_request("request.json", &sample::with(bare(), priced.clone()));
    let message = "or set StoppingCondition.MaxRuntimeInSeconds to the seconds that a job needs, now 86400";
    for ended in [world.run(&[]), world.hyperband(&["check", "request.json"])] {
        assert!(ended.with_code(2).err.contains(message));
    }
    let tight = sample::with(bare(), sample::with(priced, json!({"Controller": {"MaxCostUsd": 13}})));
    world.write_request("request.json", &tight);
    let warning =
        "[CapAdmitsFewerJobs]\n  Set StoppingCondition.MaxRuntimeInSeconds to the seconds that a job needs";
    let checked = world.hyperband(&["check", "request.json"]).with_code(0);
    assert!(checked.out.contains(warning), "{checked:?}");
    let ended = world.run(&[]).with_code(0);
    assert!(ended.err.contains(warning) && ended.out.contains("cap $13.0000"), "{ended:?}");
}

fn channel(uri: &str) -> Value {
    let source = json!({"S3DataSource": {"S3Uri": uri}});
    json!({"TrainingJobDefinition": {"InputDataConfig": [{"ChannelName": "train", "DataSource": source}]}})
}

#[test]
fn a_channel_is_a_path_and_data_elsewhere_is_rejected() {
    let world = World::new("cat \"$SM_CHANNEL_TRAIN/value\"\n");
    std::fs::create_dir(world.path("data")).unwrap();
    world.write("data/value", "[0] validation-auc:0.5\n");
    let two = json!({"HyperParameterTuningJobConfig": {"ResourceLimits": {"MaxNumberOfTrainingJobs": 2}}});
    for (name, uri) in [("a", "data".to_owned()), ("b", format!("file://{}", world.path("data").display()))] {
        let request = sample::with(sample::with(bare(), channel(&uri)), two.clone());
        world.write_request("request.json", &request);
        world.hyperband(&["check", "request.json"]).with_code(0);
        let ended = world.run(&["--name", name, "--output", "json"]).with_code(0).json();
        let best = &ended["TuningJob"]["BestTrainingJob"]["FinalHyperParameterTuningJobObjectiveMetric"];
        assert_eq!(best["Value"], json!(0.5), "{ended}");
    }
    world.write_request("request.json", &sample::with(bare(), channel("s3://example-bucket/data")));
    for ended in [world.run(&[]), world.hyperband(&["check", "request.json"])] {
        let ended = ended.with_code(2);
        assert!(
            ended
                .err
                .contains("cannot read 's3://example-bucket/data'; download the data, and add --channel")
                && ended.err.contains("for example \"data/train\""),
            "{ended:?}"
        );
    }
    // A stack has the data.
    world
        .write_request("whole.json", &sample::with(request("t"), whole(channel("s3://example-bucket/data"))));
    world.hyperband(&["check", "whole.json"]).with_code(0);
    world.hyperband(&["run", "whole.json", "--data-dir", "other", "--", "true"]).with_code(2);
    assert!(!exists(&world.path("other")), "nothing is stored");
}

/// Adds the type of the data, which a stack requires.
fn whole(mut channel: Value) -> Value {
    let source = &mut channel["TrainingJobDefinition"]["InputDataConfig"][0]["DataSource"]["S3DataSource"];
    source["S3DataType"] = json!("S3Prefix");
    channel
}
