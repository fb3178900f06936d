//! Tests of requests with several training job definitions.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tuning::definition::{Definition, JobLimits};
use tuning::log::ruling::Launch;
use tuning::unit::ids::{BracketId, ChoiceId, DefinitionId, SizeId, TrialId};
use tuning::unit::time::Time;

use super::super::{ErrorCode, PriceAnswer, Request, TrainingJob};
use crate::sample;

/// Returns a request with the definitions `small`, on one `ml.m5.large`, and `large`, on three `ml.m5.xlarge` with an image,
/// ranges and a pattern of its own.
fn two() -> Value {
    let mut body = sample::request("t");
    let members = body.as_object_mut().unwrap();
    let mut small = members.remove("TrainingJobDefinition").unwrap();
    let config = members["HyperParameterTuningJobConfig"].as_object_mut().unwrap();
    small["TuningObjective"] = config.remove("HyperParameterTuningJobObjective").unwrap();
    small["HyperParameterRanges"] = config.remove("ParameterRanges").unwrap();
    small["DefinitionName"] = json!("small");
    let changes = json!({
        "DefinitionName": "large",
        "AlgorithmSpecification": {
            "TrainingImage": "image:2",
            "MetricDefinitions": [{"Name": "auc", "Regex": r"area=(\S+)"}],
        },
        "HyperParameterRanges": {
            "ContinuousParameterRanges": [{"Name": "lr", "MinValue": "0.1", "MaxValue": "1"}],
            "IntegerParameterRanges": [{"Name": "layers", "MinValue": "1", "MaxValue": "4"}],
        },
        "StaticHyperParameters": {"wide": "1"},
        "ResourceConfig": {"InstanceCount": 3, "InstanceType": "ml.m5.xlarge"},
    });
    let large = sample::with(small.clone(), changes);
    members.insert("TrainingJobDefinitions".to_owned(), json!([small, large]));
    body
}

fn changed(change: impl FnOnce(&mut Value)) -> Result<Request, String> {
    let mut body = two();
    change(&mut body);
    Request::check(body).map_err(|error| {
        assert_eq!(error.code, ErrorCode::ValidationException);
        error.to_string()
    })
}

fn definition(request: &Request) -> Definition {
    request.definition(Time(0), "000000", &PriceAnswer::uniform(request, 1_000_000, 0)).unwrap()
}

fn job(request: &Request, trial: u32, instances: u32) -> Value {
    request.create_training_job(&TrainingJob {
        name: "t-000000-1-0-1",
        tuning_id: "t-000000",
        trial,
        configuration: &BTreeMap::from([("lr".to_owned(), "0.5".to_owned())]),
        limits: JobLimits { max_runtime_seconds: 60, max_wait_seconds: None, keep_alive_seconds: 0 },
        tags: &BTreeMap::new(),
        resource: None,
        launch: Launch { instances: ChoiceId(instances), ..Launch::default() },
    })
}

/// "each definition has its own `StoppingCondition`"
#[test]
fn each_definition_has_time_limits_and_capacity_of_its_own() {
    let spot = |body: &mut Value| {
        let definition = &mut body["TrainingJobDefinitions"][1];
        definition["StoppingCondition"] = json!({"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 90});
        definition["EnableManagedSpotTraining"] = json!(true);
        body["Controller"]["SpotFallback"] = json!("OnDemand");
    };
    let request = changed(spot).unwrap();
    let made = definition(&request);
    let terms =
        [0, 1].map(|size| made.terms(SizeId(size))).map(|terms| (terms.spot, terms.max_runtime_seconds));
    assert_eq!(terms, [(false, request.max_runtime_seconds()), (true, 60)]);
    assert_eq!(made.longest_limits(SizeId(1)).max_wait_seconds, Some(90));
    let sent = job(&request, 1, 1);
    assert_eq!(
        (&sent["EnableManagedSpotTraining"], &sent["StoppingCondition"]["MaxRuntimeInSeconds"]),
        (&json!(true), &json!(60))
    );
    // No definition could fall back.
    let refused = changed(|body| body["Controller"]["SpotFallback"] = json!("OnDemand")).unwrap_err();
    assert!(refused.contains("SpotFallback"), "{refused}");
}

#[test]
fn each_definition_has_a_space_brackets_and_instances_of_its_own() {
    let request = changed(|_| {}).unwrap();
    let made = definition(&request);
    let names = |of: u32| -> Vec<&str> {
        made.space_of(DefinitionId(of)).parameters().iter().map(|parameter| parameter.name.as_str()).collect()
    };
    assert_eq!(names(0), ["lr"]);
    assert_eq!(names(1), ["layers", "lr"]);
    let counts: Vec<u32> = made.job.choices().map(|choice| made.job.instances(choice).count).collect();
    assert_eq!(counts, [1, 3]);
    assert_eq!((made.job.size(ChoiceId(0)), made.job.size(ChoiceId(1))), (SizeId(0), SizeId(1)));
    let each = made.plan().brackets().len();
    assert_eq!(made.brackets().count(), 2 * each);
    assert_eq!(made.definition_of_bracket(BracketId::at(each)), DefinitionId(1));
    assert_eq!(made.definition_of(TrialId(7)), DefinitionId(1));
    // The cap must pay for the largest job.
    assert!(changed(|body| body["Controller"]["MaxCostUsd"] = json!(0.3)).is_ok());
    let short = changed(|body| body["Controller"]["MaxCostUsd"] = json!(0.3)).unwrap();
    let error = short.definition(Time(0), "000000", &PriceAnswer::uniform(&short, 1_000_000, 0)).unwrap_err();
    assert!(error.to_string().contains("3 x ml.m5.xlarge"), "{error}");
}

#[test]
fn a_job_has_the_fields_of_the_definition_of_its_trial() {
    let request = changed(|_| {}).unwrap();
    let (small, large) = (job(&request, 4, 0), job(&request, 5, 1));
    assert_eq!(small["AlgorithmSpecification"]["TrainingImage"], "image:1");
    assert_eq!(large["AlgorithmSpecification"]["TrainingImage"], "image:2");
    assert_eq!(small["ResourceConfig"]["InstanceType"], "ml.m5.large");
    assert_eq!(large["ResourceConfig"]["InstanceCount"], 3);
    assert_eq!(large["HyperParameters"]["wide"], "1");
    assert_eq!(small["HyperParameters"].get("wide"), None);
    assert_eq!(small["Environment"]["SM_DEFINITION_NAME"], "small");
    for member in ["DefinitionName", "TuningObjective", "HyperParameterRanges"] {
        assert_eq!(large.get(member), None);
    }
    assert_eq!(request.of_trial(5).metric_regex().unwrap(), r"area=(\S+)");
    assert_eq!((request.definition_name(4), request.definition_name(5)), (Some("small"), Some("large")));
}

#[test]
fn a_list_with_one_definition_is_a_tuning_with_one() {
    let request = changed(|body| {
        body["TrainingJobDefinitions"].as_array_mut().unwrap().pop();
    });
    let request = request.unwrap();
    assert!(!definition(&request).has_definitions());
    let one = job(&request, 5, 0);
    assert_eq!(one["AlgorithmSpecification"]["TrainingImage"], "image:1");
    assert_eq!(one["Environment"]["SM_DEFINITION_NAME"], "small");
    assert_eq!(request.definition_names().collect::<Vec<_>>(), ["small"]);
}

/// Each violation names the definition that breaks the rule, by a path of the request as it was sent.
#[test]
fn violations_name_the_place_in_the_list() {
    let list = "TrainingJobDefinitions";
    let ranges = json!({"ContinuousParameterRanges": []});
    for (change, path, text) in [
        (
            json!({"/1/HyperParameterRanges": ranges}),
            "TrainingJobDefinitions[1].HyperParameterRanges",
            "parameter",
        ),
        (
            json!({"/1/TuningObjective/MetricName": "loss"}),
            "TrainingJobDefinitions[1].TuningObjective.MetricName",
            "'loss' has no definition",
        ),
        (json!({"/1/TuningObjective/Type": "Minimize"}), "TrainingJobDefinitions[1]", "TuningObjective.Type"),
        (json!({"/1/DefinitionName": "small"}), "TrainingJobDefinitions[1].DefinitionName", "two of"),
        (
            json!({"/0/DefinitionName": null}),
            "TrainingJobDefinitions[0].DefinitionName",
            "Missing DefinitionName",
        ),
        (
            json!({"/1/EnableManagedSpotTraining": true}),
            "TrainingJobDefinitions[1].StoppingCondition",
            "MaxWaitTime",
        ),
        (json!({"/0/RoleArn": 5}), "TrainingJobDefinitions[0].RoleArn", "string"),
        (json!({"/1/Foo": 5}), "TrainingJobDefinitions[1].Foo", "Unknown field"),
        (
            json!({"/1/AlgorithmSpecification/AlgorithmName": "x"}),
            "TrainingJobDefinitions[1].AlgorithmSpecification",
            "both",
        ),
    ] {
        let refused = changed(|body| {
            for (pointer, value) in change.as_object().unwrap() {
                let (parent, name) = pointer.rsplit_once('/').unwrap();
                body[list].pointer_mut(parent).unwrap()[name] = value.clone();
            }
        });
        let error = refused.unwrap_err();
        assert!(error.contains(path) && error.contains(text), "{change}: {error}");
        assert!(!error.contains("TrainingJobDefinition."), "{change}: {error}");
    }
}

#[test]
fn fields_of_one_definition_are_refused() {
    for (change, text) in [
        (json!({"Controller": {"InstanceCounts": [1, 2]}}), "Invalid InstanceCounts"),
        (json!({"Controller": {"InitialConfigurations": [{"lr": "0.2"}]}}), "Invalid InitialConfigurations"),
        (json!({"Controller": {"KnownResults": [{"lr": "0.2", "auc": 1}]}}), "Invalid KnownResults"),
        (
            json!({"WarmStartConfig": {"WarmStartType": "TransferLearning",
            "ParentHyperParameterTuningJobs": [{"HyperParameterTuningJobName": "p"}]}}),
            "Invalid WarmStartConfig",
        ),
        (json!({"HyperParameterTuningJobConfig": {"ParameterRanges": {}}}), "each definition has its own"),
        (json!({"TrainingJobDefinition": two()["TrainingJobDefinitions"][0]}), "the request has both"),
        (json!({"TrainingJobDefinitions": []}), "length greater than or equal to 1"),
        (json!({"TrainingJobDefinitions": "x"}), "be a list"),
    ] {
        let error = changed(|body| *body = sample::with(body.clone(), change.clone())).unwrap_err();
        assert!(error.contains(text), "{change}: {error}");
    }
}

/// The first definition alone decided, and a program without checkpoints was promoted.
#[test]
fn rungs_are_promoted_only_if_every_definition_allows_it() {
    let with_checkpoints = |last: Value| {
        changed(|body| {
            body["Controller"]["ResourceHyperParameter"] = json!("epochs");
            body["TrainingJobDefinitions"][0]["CheckpointConfig"] = json!({"S3Uri": "s3://example-bucket/c"});
            body["TrainingJobDefinitions"][1]["CheckpointConfig"] = last;
        })
    };
    assert!(!with_checkpoints(json!(null)).unwrap().may_promote());
    assert!(with_checkpoints(json!({"S3Uri": "s3://example-bucket/c"})).unwrap().may_promote());
}

/// A small space beside a large one was refused.
#[test]
fn a_small_space_may_have_fewer_combinations_than_the_tuning_has_jobs() {
    let request = changed(|body| {
        body["TrainingJobDefinitions"][1]["HyperParameterRanges"] =
            json!({"IntegerParameterRanges": [{"Name": "layers", "MinValue": "1", "MaxValue": "4"}]});
    });
    assert_eq!(definition(&request.unwrap()).max_trials(), 20_000);
}

#[test]
fn a_variable_of_any_definition_sets_a_field_of_controller() {
    let request = changed(|body| {
        body["TrainingJobDefinitions"][1]["Environment"] = json!({"HYPERBAND_MaxInstances": "6"});
    });
    assert_eq!(request.unwrap().max_instances(), Some(6));
}
