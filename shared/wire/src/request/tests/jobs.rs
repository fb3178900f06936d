//! Tests of the training jobs made from a request.

use std::collections::BTreeMap;

use search::Domain;
use serde_json::{Value, json};
use tuning::definition::JobLimits;
use tuning::log::ruling::Launch;
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::ChoiceId;
use tuning::unit::time::Time;

use super::super::{PriceAnswer, Request, TrainingJob};
use super::{request, sample};
use crate::describe::Model;

const JOB: &str =
    include_str!("../../../../../events/aws.sagemaker.api/create-training-job.spot-multi-instance.json");

fn strings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn created(request: &Request, resource: Option<(&str, u32)>) -> Value {
    let configuration = strings(&[("eta", "0.25"), ("max_depth", "6")]);
    let tags = strings(&[
        ("hyperband:decision", "1"),
        ("hyperband:stack", "007"),
        ("hyperband:tuning", "hb1-3fa1c2"),
    ]);
    let limits =
        JobLimits { max_runtime_seconds: 2_400, max_wait_seconds: Some(3_300), keep_alive_seconds: 0 };
    request.create_training_job(&TrainingJob {
        name: "hb1-3fa1c2-7-1-1",
        tuning_id: "hb1-3fa1c2",
        trial: 7,
        configuration: &configuration,
        limits,
        tags: &tags,
        resource: resource.map(|(name, epochs)| (name, Epochs(epochs))),
        launch: Launch::default(),
    })
}

#[test]
fn the_job_of_the_sample_request_equals_the_sample_job() {
    let job =
        created(&request(|body| body["Controller"] = json!({"MaxInstances": 6})), Some(("num_round", 27)));
    let mut expected: Value = serde_json::from_str(JOB).unwrap();
    // Differences between the sample job and the job of the sample request.
    expected.as_object_mut().unwrap().remove("Environment");
    expected["EnableNetworkIsolation"] = json!(false);
    expected["EnableInterContainerTrafficEncryption"] = json!(false);
    expected["HyperParameters"]["_tuning_objective_metric"] = json!("validation:auc");
    expected["HyperParameters"]["save_model_on_termination"] = json!("true");
    expected["StoppingCondition"]["MaxWaitTimeInSeconds"] = json!(3_300);
    expected["CheckpointConfig"]["S3Uri"] = json!("s3://example-bucket/ckpt/hb1/hb1-3fa1c2/00007/");
    expected["Tags"] = json!([
        {"Key": "team", "Value": "example"},
        {"Key": "hyperband:decision", "Value": "1"},
        {"Key": "hyperband:stack", "Value": "007"},
        {"Key": "hyperband:tuning", "Value": "hb1-3fa1c2"},
    ]);
    assert_eq!(job, expected);
}

#[test]
fn a_job_gets_every_field_of_the_definition_and_no_other() {
    let passed = json!({
        "VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]},
        "RetryStrategy": {"MaximumRetryAttempts": 2},
        "Environment": {"A": "1"},
        "EnableNetworkIsolation": true,
        "OutputDataConfig": {"S3OutputPath": "s3://example-bucket/out", "CompressionType": "NONE"},
    });
    let request = request(|body| {
        let job = body["TrainingJobDefinition"].as_object_mut().unwrap();
        job.extend(passed.as_object().unwrap().clone());
        job.insert("DefinitionName".to_owned(), json!("only"));
        job["StoppingCondition"]["MaxPendingTimeInSeconds"] = json!(7_200);
        job["StaticHyperParameters"]["save_model_on_termination"] = json!("false");
        job["CheckpointConfig"]["LocalPath"] = json!("/checkpoints");
        job["HyperParameterTuningResourceConfig"]["VolumeKmsKeyId"] = json!("key");
        job["HyperParameterTuningResourceConfig"]["AllocationStrategy"] = json!("Prioritized");
        body["Controller"] = json!({"MaxInterruptions": 1});
    });
    let job = created(&request, None);
    for (name, value) in passed.as_object().unwrap() {
        assert_eq!(&job[name], value, "{name}");
    }
    let definition = &sample()["TrainingJobDefinition"];
    for name in ["AlgorithmSpecification", "InputDataConfig", "RoleArn", "EnableManagedSpotTraining"] {
        assert_eq!(job[name], definition[name], "{name}");
    }
    assert_eq!(job["StoppingCondition"]["MaxPendingTimeInSeconds"], 7_200);
    assert_eq!(job["HyperParameters"]["save_model_on_termination"], "false", "the user's value is kept");
    assert_eq!(job["HyperParameters"]["num_round"], "30");
    assert_eq!(job["CheckpointConfig"]["LocalPath"], "/checkpoints");
    let resources = json!({"InstanceType": "ml.m5.2xlarge", "InstanceCount": 3, "VolumeSizeInGB": 30, "VolumeKmsKeyId": "key"});
    assert_eq!(job["ResourceConfig"], resources);
    for absent in
        ["DefinitionName", "StaticHyperParameters", "HyperParameterTuningResourceConfig", "Controller"]
    {
        assert!(job.get(absent).is_none(), "{absent}");
    }
}

#[test]
fn each_trial_is_a_run_of_its_own_in_the_trackers() {
    let tracked = request(|body| {
        let job = &mut body["TrainingJobDefinition"];
        job["ExperimentConfig"] = json!({"ExperimentName": "churn", "TrialComponentDisplayName": "search"});
        job["MlflowConfig"] =
            json!({"MlflowResourceArn": "arn:aws:sagemaker:us-east-1:111122223333:mlflow-app/a"});
    });
    let job = created(&tracked, None);
    let expected = json!({"ExperimentName": "churn", "TrialComponentDisplayName": "search-7"});
    assert_eq!(job["ExperimentConfig"], expected);
    assert_eq!(job["MlflowConfig"]["MlflowRunName"], "hb1-3fa1c2-7");
}

#[test]
fn either_form_of_resources_becomes_resource_config() {
    let one = json!({"InstanceType": "ml.m5.large", "InstanceCount": 2, "VolumeSizeInGB": 10});
    let of_list = request(|body| {
        body["TrainingJobDefinition"]["HyperParameterTuningResourceConfig"] =
            json!({"InstanceConfigs": [one.clone()]});
    });
    assert_eq!(created(&of_list, None)["ResourceConfig"], one);
    assert_eq!((of_list.instance_type(), of_list.instance_count()), ("ml.m5.large", 2));
    let given = request(|body| {
        let job = body["TrainingJobDefinition"].as_object_mut().unwrap();
        job.remove("HyperParameterTuningResourceConfig");
        job.remove("CheckpointConfig");
        job["AlgorithmSpecification"]["TrainingImage"] = json!("own:1");
        job.insert("ResourceConfig".to_owned(), one.clone());
    });
    let job = created(&given, None);
    assert_eq!(job["ResourceConfig"], one);
    assert!(job.get("CheckpointConfig").is_none());
    assert!(job["HyperParameters"].get("save_model_on_termination").is_none(), "not XGBoost's image");
}

/// Changes the sample request to on-demand instances that are kept for ten minutes.
fn keep_instances(body: &mut Value) {
    let job = body["TrainingJobDefinition"].as_object_mut().unwrap();
    job.remove("HyperParameterTuningResourceConfig");
    job.insert("EnableManagedSpotTraining".to_owned(), json!(false));
    job.insert("StoppingCondition".to_owned(), json!({"MaxRuntimeInSeconds": 2_400}));
    let resources = json!({
        "InstanceType": "ml.m5.large", "InstanceCount": 2, "VolumeSizeInGB": 10, "KeepAlivePeriodInSeconds": 600,
    });
    job.insert("ResourceConfig".to_owned(), resources);
}

#[test]
fn only_jobs_with_a_keep_alive_limit_keep_their_instances() {
    let made = |request: &Request, keep_alive_seconds| {
        let job = request.create_training_job(&TrainingJob {
            name: "hb1-3fa1c2-7-1-1",
            tuning_id: "hb1-3fa1c2",
            trial: 7,
            configuration: &strings(&[]),
            limits: JobLimits { max_runtime_seconds: 2_400, max_wait_seconds: None, keep_alive_seconds },
            tags: &strings(&[]),
            resource: None,
            launch: Launch::default(),
        });
        job["ResourceConfig"].clone()
    };
    let kept = request(keep_instances);
    let resources = |seconds: Option<u64>| {
        let mut resources = json!({"InstanceType": "ml.m5.large", "InstanceCount": 2, "VolumeSizeInGB": 10});
        if let Some(seconds) = seconds {
            resources["KeepAlivePeriodInSeconds"] = json!(seconds);
        }
        resources
    };
    assert_eq!(made(&kept, 600), resources(Some(600)));
    assert_eq!(made(&kept, 0), resources(None), "the last job");
    let without = request(|body| {
        keep_instances(body);
        body["TrainingJobDefinition"]["ResourceConfig"]["KeepAlivePeriodInSeconds"] = json!(0);
    });
    assert_eq!(made(&without, 0), resources(None));
}

#[test]
fn the_definition_keeps_instances_with_and_without_a_cap() {
    let shape = |request: &Request| {
        let prices = PriceAnswer::uniform(request, 115_000, 191_781);
        request.definition(Time(0), "3fa1c2", &prices).unwrap().job
    };
    let capped = request(|body| {
        keep_instances(body);
        body["Controller"] = json!({"MaxCostUsd": 100});
    });
    assert_eq!((capped.keep_alive_seconds(), shape(&capped).keep_alive_seconds), (600, 600));
    let uncapped = request(keep_instances);
    assert_eq!(shape(&uncapped).keep_alive_seconds, 600);
    assert_eq!(shape(&request(|_| {})).keep_alive_seconds, 0);
}

#[test]
fn the_launch_selects_the_instances_and_on_demand() {
    let several = request(|body| {
        body["Controller"] = json!({"SpotFallback": "OnDemand"});
        let entry =
            |kind: &str, count| json!({"InstanceType": kind, "InstanceCount": count, "VolumeSizeInGB": 20});
        body["TrainingJobDefinition"]["HyperParameterTuningResourceConfig"] = json!({
            "AllocationStrategy": "Prioritized",
            "InstanceConfigs": [entry("ml.m5.large", 2), entry("ml.c5.xlarge", 4)],
        });
    });
    let made = |launch: Launch, max_wait_seconds| {
        several.create_training_job(&TrainingJob {
            name: "hb1-3fa1c2-7-1-1",
            tuning_id: "hb1-3fa1c2",
            trial: 7,
            configuration: &strings(&[]),
            limits: JobLimits { max_runtime_seconds: 2_400, max_wait_seconds, keep_alive_seconds: 0 },
            tags: &strings(&[]),
            resource: None,
            launch,
        })
    };
    let first = made(Launch::default(), Some(3_300));
    assert_eq!(
        first["ResourceConfig"],
        json!({"InstanceType": "ml.m5.large", "InstanceCount": 2, "VolumeSizeInGB": 20})
    );
    assert_eq!(first["EnableManagedSpotTraining"], true);
    let second = made(Launch { on_demand: true, instances: ChoiceId(1), ..Launch::default() }, None);
    assert_eq!(
        second["ResourceConfig"],
        json!({"InstanceType": "ml.c5.xlarge", "InstanceCount": 4, "VolumeSizeInGB": 20})
    );
    assert_eq!(second["EnableManagedSpotTraining"], false);
    assert_eq!(second["StoppingCondition"], json!({"MaxRuntimeInSeconds": 2_400}));
    let prices = PriceAnswer {
        instance_hours: [("ml.m5.large".to_owned(), 115_000)].into(),
        volume_kilo_gib_hour: Some(0),
        ..PriceAnswer::default()
    };
    let shape = several.definition(Time(0), "3fa1c2", &prices).unwrap().job;
    let choices: Vec<_> = shape.choices().map(|choice| shape.instances(choice)).collect();
    assert_eq!(choices.iter().map(|instances| instances.count).collect::<Vec<_>>(), [2, 4]);
    assert!(choices[0].rate.is_some() && choices[1].rate.is_none());
    let mut capped = several.body().clone();
    capped["Controller"]["MaxCostUsd"] = json!(100);
    let refused = Request::check(capped).unwrap().definition(Time(0), "3fa1c2", &prices).unwrap_err();
    assert!(refused.message.contains("'ml.c5.xlarge'"), "{}", refused.message);
}

#[test]
fn the_algorithm_decides_whether_a_stopped_job_leaves_a_model() {
    let of = |change: fn(&mut Value)| request(change).stopped_job_model();
    let named = |name: &'static str| {
        move |body: &mut Value| {
            let specification = json!({"TrainingInputMode": "File", "AlgorithmName": name});
            body["TrainingJobDefinition"]["AlgorithmSpecification"] = specification;
        }
    };
    let xgboost = request(named("xgboost"));
    assert_eq!(xgboost.stopped_job_model(), Model::Left, "the hyperparameter is set");
    let refused = request(|body| {
        named("xgboost")(body);
        body["TrainingJobDefinition"]["StaticHyperParameters"]["save_model_on_termination"] = json!("false");
    });
    assert_eq!(refused.stopped_job_model(), Model::None);
    let own = of(|body| {
        body["TrainingJobDefinition"]["AlgorithmSpecification"]["TrainingImage"] =
            json!("111122223333.dkr.ecr.us-east-1.amazonaws.com/train:1");
    });
    assert_eq!(own, Model::IfSaved, "the program decides");
}

#[test]
fn a_training_job_gets_no_tag_or_variable_of_the_controller() {
    let with = |variables: Value| {
        request(|body| {
            let tags =
                json!([{"Key": "hyperband:MaxCostUsd", "Value": "5"}, {"Key": "team", "Value": "example"}]);
            body["Tags"] = tags;
            body["TrainingJobDefinition"]["Environment"] = variables;
        })
    };
    let job = created(&with(json!({"LEVEL": "info", "HYPERBAND_Refit": "None"})), None);
    assert_eq!(job["Environment"], json!({"LEVEL": "info"}));
    let keys: Vec<&Value> = job["Tags"].as_array().unwrap().iter().map(|tag| &tag["Key"]).collect();
    assert_eq!(keys, ["team", "hyperband:decision", "hyperband:stack", "hyperband:tuning"]);
    assert!(created(&with(json!({"HYPERBAND_Refit": "None"})), None).get("Environment").is_none());
}

/// Returns the body of a job of the sample request whose trial has `configuration`, on an instance choice.
fn created_on(request: &Request, configuration: &[(&str, &str)], choice: u32) -> Value {
    let limits = JobLimits { max_runtime_seconds: 2_400, max_wait_seconds: None, keep_alive_seconds: 0 };
    request.create_training_job(&TrainingJob {
        name: "hb1-3fa1c2-7-1-1",
        tuning_id: "hb1-3fa1c2",
        trial: 7,
        configuration: &strings(configuration),
        limits,
        tags: &BTreeMap::new(),
        resource: None,
        launch: Launch { instances: ChoiceId(choice), ..Launch::default() },
    })
}

#[test]
fn a_job_has_the_instances_of_its_trial_and_scaled_hyperparameters() {
    let request = request(|body| {
        body["TrainingJobDefinition"]["StaticHyperParameters"] =
            json!({"mini_batch_size": "32", "decay": "0.25"});
        let scaled = ["max_depth", "mini_batch_size", "decay"];
        body["Controller"] = json!({"InstanceCounts": [4, 1, 2], "ScaleWithInstances": scaled});
    });
    let job = created_on(&request, &[("eta", "0.5"), ("max_depth", "6"), ("InstanceCount", "4")], 2);
    assert_eq!(job["ResourceConfig"]["InstanceCount"], 4);
    let sent = &job["HyperParameters"];
    assert_eq!(sent["InstanceCount"], Value::Null, "it is no hyperparameter");
    assert_eq!(
        [&sent["max_depth"], &sent["mini_batch_size"], &sent["decay"], &sent["eta"]],
        ["24", "128", "1", "0.5"]
    );
    let one = created_on(&request, &[("eta", "0.5"), ("max_depth", "6"), ("InstanceCount", "1")], 0);
    assert_eq!(
        (&one["ResourceConfig"]["InstanceCount"], &one["HyperParameters"]["decay"]),
        (&json!(1), &json!("0.25"))
    );
}

#[test]
fn instance_counts_make_a_choice_of_each_type_for_each_count() {
    let request = request(|body| {
        let job = body["TrainingJobDefinition"].as_object_mut().unwrap();
        job.remove("ResourceConfig");
        let entry = |kind: &str| json!({"InstanceType": kind, "InstanceCount": 9, "VolumeSizeInGB": 30});
        let configs = [entry("ml.m5.2xlarge"), entry("ml.m5.4xlarge")];
        job.insert("HyperParameterTuningResourceConfig".to_owned(), json!({"InstanceConfigs": configs}));
        body["Controller"] = json!({"InstanceCounts": [1, 4]});
    });
    let choices: Vec<_> = request
        .instance_choices()
        .iter()
        .map(|choice| (choice.instance_type.to_owned(), choice.count))
        .collect();
    let expected = [("ml.m5.2xlarge", 1), ("ml.m5.2xlarge", 4), ("ml.m5.4xlarge", 1), ("ml.m5.4xlarge", 4)];
    assert_eq!(choices, expected.map(|(kind, count)| (kind.to_owned(), count)));
    let prices = PriceAnswer::uniform(&request, 461_000, 191_781);
    let definition = request.definition(Time(1_700_000_000_000), "3fa1c2", &prices).unwrap();
    let counts: Vec<u32> =
        definition.job.choices().map(|choice| definition.job.instances(choice).count).collect();
    assert_eq!((counts, definition.job.sizes), (vec![1, 4, 1, 4], vec![1, 4]));
    let last = definition.space.parameters().last().unwrap();
    assert_eq!(last.domain, Domain::Ordinal { values: vec!["1".to_owned(), "4".to_owned()] });
}
