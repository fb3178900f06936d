//! Violates each rule at least once and expects exactly that violation.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::super::RULES;
use super::requests::{configs, flat, named};
use super::{Request, reported};

/// Abbreviations in paths and pointers.
const SHORT: [(&str, &str); 4] = [
    ("CONFIG", "HyperParameterTuningJobConfig"),
    ("RANGES", "ParameterRanges"),
    ("JOB", "TrainingJobDefinition"),
    ("RESOURCES", "HyperParameterTuningResourceConfig"),
];

/// A rule, the request that violates it (a valid one, changed at JSON pointers; null removes a field), and the expected
/// path and part of the message.
struct Case {
    rule: &'static str,
    base: fn() -> Value,
    changes: Value,
    path: String,
    message: &'static str,
}

fn case(rule: &'static str, base: fn() -> Value, changes: Value, path: &str, message: &'static str) -> Case {
    Case { rule, base, changes, path: long(path), message }
}

fn long(text: &str) -> String {
    SHORT.iter().fold(text.to_owned(), |text, (short, long)| text.replace(short, long))
}

fn changed(mut body: Value, changes: &Value) -> Value {
    for (pointer, value) in changes.as_object().unwrap() {
        let pointer = long(pointer);
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        match body.pointer_mut(parent).unwrap_or_else(|| panic!("{parent}")) {
            Value::Object(members) if value.is_null() => assert!(members.remove(name).is_some(), "{pointer}"),
            Value::Object(members) => drop(members.insert(name.to_owned(), value.clone())),
            Value::Array(elements) if name == "-" => elements.push(value.clone()),
            _ => panic!("{pointer}"),
        }
    }
    body
}

fn warm(parents: &[&str]) -> Value {
    let parents: Vec<Value> =
        parents.iter().map(|name| json!({"HyperParameterTuningJobName": name})).collect();
    json!({"WarmStartType": "TransferLearning", "ParentHyperParameterTuningJobs": parents})
}

#[rustfmt::skip]
fn strategy_cases() -> Vec<Case> {
    let max = "CONFIG.StrategyConfig.HyperbandStrategyConfig.MaxResource";
    let max_at = "/CONFIG/StrategyConfig/HyperbandStrategyConfig/MaxResource";
    let jobs = "CONFIG.ResourceLimits.MaxNumberOfTrainingJobs";
    let metric = "CONFIG.HyperParameterTuningJobObjective.MetricName";
    let early = "CONFIG.TrainingJobEarlyStoppingType";
    let regex = "JOB.AlgorithmSpecification.MetricDefinitions[0].Regex";
    let regex_at = "/JOB/AlgorithmSpecification/MetricDefinitions/0/Regex";
    let epochs_at = "/JOB/StaticHyperParameters/epochs";
    vec![
        case("objective", flat, json!({"/CONFIG/HyperParameterTuningJobObjective": null}),
            "CONFIG.HyperParameterTuningJobObjective", "required"),
        case("objective_metric", flat, json!({"/JOB/AlgorithmSpecification/MetricDefinitions": null}), metric,
            "A metric is required for this hyperparameter tuning job objective."),
        case("objective_metric", flat, json!({"/CONFIG/HyperParameterTuningJobObjective/MetricName": "loss"}), metric,
            "Provide a metric in the metric definitions."),
        case("strategy_config", flat, json!({"/CONFIG/Strategy": "Random"}), "CONFIG.StrategyConfig", "only Hyperband has one"),
        case("max_resource", flat, json!({max_at: null}), max,
            "MaxResource parameter is not provided and could not be inferred from provided static hyperparameters of \
             TrainingJobDefinition."),
        case("max_resource", flat, json!({"/CONFIG/StrategyConfig": null, epochs_at: "many"}), max, "num_round"),
        case("resource_order", flat, json!({"/CONFIG/StrategyConfig/HyperbandStrategyConfig/MinResource": 31}), max,
            "MinResource is 31"),
        case("resource_order", flat, json!({max_at: null, epochs_at: "20001"}), max, "static hyperparameter 'epochs'"),
        case("promotion", flat, json!({"/Controller/RungExecution": "Promote", "/Controller/ResourceHyperParameter": null}),
            "Controller.ResourceHyperParameter", "Missing ResourceHyperParameter"),
        case("promotion", configs, json!({"/Controller": {"RungExecution": "Promote"}}), "Controller.RungExecution",
            "expected Strategy 'Hyperband'"),
        case("refit", flat, json!({"/Controller/Refit": "Best", "/CONFIG/ResourceLimits/MaxNumberOfTrainingJobs": 1}), jobs,
            "at least 2 with Refit"),
        case("prefer", flat, json!({"/Controller/Prefer": "Value", "/Controller/ReductionFactor": 3}), "Controller.Prefer",
            "neither ReductionFactor nor"),
        case("best_buy", flat, json!({"/Controller/Refit": "BestBuy", "/Controller/ValueTolerance": null}),
            "Controller.ValueTolerance", "Missing ValueTolerance"),
        case("scheduling", flat, json!({"/Controller/Scheduling": "Synchronous"}), "Controller.Scheduling",
            "unless RungExecution is 'Promote'"),
        case("early_stopping", flat, json!({"/CONFIG/TrainingJobEarlyStoppingType": "Auto"}), early,
            "expected 'Off' with Strategy 'Hyperband'"),
        case("needs_jobs", configs, json!({"/CONFIG/ResourceLimits/MaxNumberOfTrainingJobs": null}), jobs,
            "required with Strategy 'Random'"),
        case("needs_jobs", configs, json!({"/CONFIG/Strategy": "Bayesian", "/Controller": {},
            "/CONFIG/ResourceLimits/MaxNumberOfTrainingJobs": null}), jobs, "required with Strategy 'Bayesian'"),
        case("sampler", configs, json!({"/CONFIG/Strategy": "Bayesian", "/Controller": {"Sampler": "Sobol"}}),
            "Controller.Sampler", "Invalid Sampler 'Sobol': expected none with Strategy 'Bayesian'"),
        case("warm_start", flat, json!({"/WarmStartConfig": warm(&["one", "ONE"])}), "WarmStartConfig", "named twice"),
        case("known_results", flat, json!({"/Controller/KnownResults": [{"learning_rate": 0.1, "other": 1}]}),
            "Controller.KnownResults[0]", "finite number"),
        case("metric_patterns", flat, json!({regex_at: r"auc=[-+.\w]*\w"}), regex, "expected a group"),
        case("metric_patterns", flat, json!({regex_at: r"(?<=auc=)([-+.\w]*\w)"}), regex, "look-behind"),
        case("metric_patterns", flat, json!({regex_at: "((a{100}){100}){100}"}), regex, "larger than"),
        case("epoch_pattern", flat, json!({"/Controller/EpochPattern": "epoch"}), "Controller.EpochPattern", "found 0"),
        case("epoch_pattern", flat, json!({"/Controller/EpochPattern": "(a)(b)"}), "Controller.EpochPattern", "found 2"),
        case("epoch_pattern", flat, json!({"/Controller/EpochPattern": "(a"}), "Controller.EpochPattern", "unclosed"),
    ]
}

#[rustfmt::skip]
fn parameter_cases() -> Vec<Case> {
    let integer = "CONFIG.RANGES.IntegerParameterRanges[0]";
    let continuous = "CONFIG.RANGES.ContinuousParameterRanges[0]";
    let initial = "Controller.InitialConfigurations";
    let min_at = "/CONFIG/RANGES/IntegerParameterRanges/0/MinValue";
    let max_at = "/CONFIG/RANGES/IntegerParameterRanges/0/MaxValue";
    let scaling_at = "/CONFIG/RANGES/IntegerParameterRanges/0/ScalingType";
    let name_at = "/CONFIG/RANGES/IntegerParameterRanges/0/Name";
    let low_at = "/CONFIG/RANGES/ContinuousParameterRanges/0/MinValue";
    let high_at = "/CONFIG/RANGES/ContinuousParameterRanges/0/MaxValue";
    let range = |n| json!({"Name": format!("p{n}"), "MinValue": "0", "MaxValue": "1"});
    let many: Vec<Value> = (0..28).map(range).collect();
    let statics: Map<String, Value> = (0..95).map(|n| (format!("s{n}"), json!("1"))).collect();
    let metric = "_tuning_objective_metric";
    let values = |name: &str, values: &[&str]| json!({"Name": name, "Values": values});
    let one = json!({"IntegerParameterRanges": [range(0)]});
    let grid = json!({"CategoricalParameterRanges": [values("a", &["1", "2"]), values("b", &["x", "y", "z"])]});
    vec![
        case("parameter_count", flat, json!({"/CONFIG/RANGES": {}}), "CONFIG.RANGES", "1 to 30"),
        case("parameter_count", flat, json!({"/CONFIG/RANGES": null}), "CONFIG.RANGES", "found 0"),
        case("parameter_count", flat, json!({"/CONFIG/RANGES/IntegerParameterRanges": many}), "CONFIG.RANGES", "found 31"),
        case("ranges", flat, json!({min_at: "one"}), &format!("{integer}.MinValue"), "Invalid MinValue 'one': expected a whole number"),
        case("ranges", flat, json!({max_at: "9223372036854775808"}), &format!("{integer}.MaxValue"), "whole number"),
        case("ranges", flat, json!({max_at: "0"}), integer, "minimum is greater"),
        case("ranges", flat, json!({scaling_at: "ReverseLogarithmic"}), integer, "continuous parameters only"),
        case("ranges", flat, json!({scaling_at: "Logarithmic", min_at: "0"}), integer, "greater than 0"),
        case("ranges", flat, json!({low_at: "x"}), &format!("{continuous}.MinValue"), "expected a number"),
        case("ranges", flat, json!({high_at: "inf"}), continuous, "finite"),
        case("ranges", flat, json!({low_at: "0"}), continuous, "logarithmic scaling"),
        case("ranges", flat, json!({"/CONFIG/RANGES/ContinuousParameterRanges/1/MaxValue": "1"}),
            "CONFIG.RANGES.ContinuousParameterRanges[1]", "0 <= x < 1"),
        case("initial_configurations", flat, json!({"/Controller/InitialConfigurations": [{"eta": 0.1}, {"eta": 2}]}),
            &format!("{initial}[1].eta"), "Invalid value '2' of 'eta': expected a number from "),
        case("initial_configurations", flat, json!({"/Controller/InitialConfigurations": [{"max_depth": 2.5}]}),
            &format!("{initial}[0].max_depth"), "Invalid value '2.5' of 'max_depth': expected a whole number from "),
        case("initial_configurations", flat, json!({"/Controller/InitialConfigurations": [{"lambda": "1"}]}),
            &format!("{initial}[0].lambda"), "'lambda' has no range in ParameterRanges; remove it, add a range, or use one of "),
        case("initial_configurations", configs, json!({"/CONFIG/ResourceLimits/MaxNumberOfTrainingJobs": 1,
            "/Controller": {"InitialConfigurations": [{"eta": 0.1}, {"eta": 0.2}]}}), initial, "at most 1 configurations"),
        case("initial_configurations", configs, json!({"/CONFIG/ResourceLimits/MaxNumberOfTrainingJobs": 2,
            "/Controller": {"Refit": "Best", "InitialConfigurations": [{"eta": 0.1}, {"eta": 0.2}]}}), initial, "at most 1 configurations"),
        case("initial_configurations", configs, json!({"/CONFIG/Strategy": "Grid", "/CONFIG/RANGES": grid,
            "/CONFIG/ResourceLimits/MaxNumberOfTrainingJobs": 6,
            "/Controller": {"InitialConfigurations": [{"a": "1"}]}}), initial, "tries each combination once"),
        case("grid", configs, json!({"/CONFIG/Strategy": "Grid", "/Controller": {}, "/CONFIG/RANGES": one}), integer, "categorical ranges only"),
        case("warm_start", configs, json!({"/CONFIG/Strategy": "Grid", "/Controller": {}, "/CONFIG/RANGES": grid,
            "/CONFIG/ResourceLimits/MaxNumberOfTrainingJobs": 6, "/WarmStartConfig": warm(&["one"])}), "WarmStartConfig",
            "none with Strategy 'Grid'"),
        case("grid", configs, json!({"/CONFIG/Strategy": "Grid", "/Controller": {}, "/CONFIG/RANGES": grid}),
            "CONFIG.ResourceLimits.MaxNumberOfTrainingJobs", "expected 6, the number of combinations"),
        case("unique_names", flat, json!({name_at: "eta"}), &format!("{continuous}.Name"), "another range has this name"),
        case("unique_names", flat, json!({"/JOB/StaticHyperParameters/eta": "1"}), &format!("{continuous}.Name"),
            "StaticHyperParameters also sets it"),
        case("reserved_names", flat, json!({name_at: metric}), &format!("{integer}.Name"), "the service sets it"),
        case("reserved_names", flat, json!({format!("/JOB/StaticHyperParameters/{metric}"): "other"}),
            &format!("JOB.StaticHyperParameters.{metric}"), "the service sets it"),
        case("reserved_names", flat, json!({"/Controller/ResourceHyperParameter": metric}),
            "Controller.ResourceHyperParameter", "the service sets it"),
        case("combinations", flat, json!({"/CONFIG/RANGES/ContinuousParameterRanges": []}),
            "CONFIG.ResourceLimits.MaxNumberOfTrainingJobs",
            "You don't have enough combinations of hyperparameter ranges."),
        case("hyperparameter_count", flat, json!({"/JOB/StaticHyperParameters": statics}), "JOB.StaticHyperParameters",
            "gives it 101"),
        case("resource_hyperparameter", flat, json!({"/Controller/ResourceHyperParameter": "eta"}),
            "Controller.ResourceHyperParameter", "ParameterRanges tunes it"),
    ]
}

#[rustfmt::skip]
fn job_cases() -> Vec<Case> {
    let channel = &flat()["TrainingJobDefinition"]["InputDataConfig"][0];
    let files = &named()["TrainingJobDefinition"]["InputDataConfig"][0]["DataSource"]["FileSystemDataSource"];
    let specification = "JOB.AlgorithmSpecification";
    let wait = "JOB.StoppingCondition.MaxWaitTimeInSeconds";
    let wait_at = "/JOB/StoppingCondition/MaxWaitTimeInSeconds";
    let spot_at = "/JOB/EnableManagedSpotTraining";
    let keep_alive = "JOB.ResourceConfig.KeepAlivePeriodInSeconds";
    let long = format!("s3://bucket/{}", "x".repeat(970));
    vec![
        case("one_definition", flat, json!({"/JOB": null}), "JOB", "required"),
        case("image_or_algorithm", flat, json!({"/JOB/AlgorithmSpecification/AlgorithmName": "x"}), specification, "found both"),
        case("image_or_algorithm", flat, json!({"/JOB/AlgorithmSpecification/TrainingImage": null}), specification, "found neither"),
        case("channel_names", flat, json!({"/JOB/InputDataConfig/-": channel}), "JOB.InputDataConfig[1].ChannelName",
            "no other channel has"),
        case("data_source", flat, json!({"/JOB/InputDataConfig/0/DataSource": {}}), "JOB.InputDataConfig[0].DataSource",
            "exactly one"),
        case("data_source", flat, json!({"/JOB/InputDataConfig/0/DataSource/FileSystemDataSource": files}),
            "JOB.InputDataConfig[0].DataSource", "exactly one"),
        case("spot_wait", flat, json!({wait_at: null}), wait, "must be present"),
        case("spot_wait", flat, json!({wait_at: 2_399}), wait, "2399 is less than 2400"),
        case("spot_wait", flat, json!({"/JOB/StoppingCondition/MaxRuntimeInSeconds": null}), wait, "less than 86400"),
        case("wait_without_spot", flat, json!({spot_at: false}), wait,
            "Invalid MaxWaitTimeInSeconds. It is only supported when EnableManagedSpotTraining is set to true"),
        case("checkpoint_length", flat, json!({"/JOB/CheckpointConfig/S3Uri": long}), "JOB.CheckpointConfig.S3Uri", "976"),
        case("environment", flat, json!({"/JOB/Environment/HYPERBAND_MaxCost": "5"}),
            "JOB.Environment.HYPERBAND_MaxCost", "Controller has no such field"),
        case("keep_alive", named, json!({spot_at: true, wait_at: 3_600}), keep_alive, "spot instances"),
    ]
}

#[rustfmt::skip]
fn resource_cases() -> Vec<Case> {
    let tags: Vec<Value> = (0..48).map(|n| json!({"Key": format!("k{n}"), "Value": "v"})).collect();
    let entry = json!({"InstanceType": "ml.m5.large", "InstanceCount": 3, "VolumeSizeInGB": 30});
    let (counts, scaled) = ("Controller.InstanceCounts", "Controller.ScaleWithInstances");
    vec![
        case("resource_config", flat, json!({"/JOB/RESOURCES": null}), "JOB.ResourceConfig", "found neither"),
        case("resource_config", flat, json!({"/JOB/ResourceConfig": entry}), "JOB.ResourceConfig", "found both"),
        case("instance_fields", flat, json!({"/JOB/RESOURCES/InstanceType": null}), "JOB.RESOURCES.InstanceType", "required"),
        case("instance_fields", flat, json!({"/JOB/RESOURCES/InstanceCount": null}), "JOB.RESOURCES.InstanceCount", "required"),
        case("instance_fields", named, json!({"/JOB/ResourceConfig/VolumeSizeInGB": null}),
            "JOB.ResourceConfig.VolumeSizeInGB", "required"),
        case("instance_configs", flat, json!({"/JOB/RESOURCES/InstanceConfigs": [entry]}), "JOB.RESOURCES.InstanceConfigs",
            "found both"),
        case("spot_fallback", flat, json!({"/Controller/SpotFallback": "OnDemand", "/JOB/EnableManagedSpotTraining": false,
            "/JOB/StoppingCondition/MaxWaitTimeInSeconds": null}), "Controller.SpotFallback", "unless EnableManagedSpotTraining is true"),
        case("max_instances", flat, json!({"/Controller/MaxInstances": 2}), "Controller.MaxInstances", "at least"),
        case("max_instances", flat, json!({"/Controller/MaxInstances": 3, "/Controller/InstanceCounts": [2, 4]}),
            "Controller.MaxInstances", "for example, 4"),
        case("instance_counts", flat, json!({"/Controller/InstanceCounts": [1, 2, 1]}), counts, "1 is in the list twice"),
        case("instance_counts", flat, json!({"/Controller/InstanceCounts": [1, 2], "/JOB/StaticHyperParameters/InstanceCount": "2"}),
            counts, "rename the hyperparameter"),
        case("scaled_hyperparameters", flat, json!({"/Controller/ScaleWithInstances": ["batch_size"]}), scaled, "add InstanceCounts"),
        case("scaled_hyperparameters", configs, json!({"/Controller/ScaleWithInstances": ["batch_size", "batch_size"]}),
            &format!("{scaled}[1]"), "in the list twice"),
        case("scaled_hyperparameters", configs, json!({"/Controller/ScaleWithInstances": ["batch_size", "optimizer"]}),
            &format!("{scaled}[1]"), "Invalid ScaleWithInstances 'optimizer'"),
        case("metric_host", configs, json!({"/Controller/MetricHost": "algo-4"}), "Controller.MetricHost", "algo-3"),
        case("metric_host", flat, json!({"/Controller/MetricHost": "algo-99999999999"}), "Controller.MetricHost", "algo-3"),
        case("tag_count", flat, json!({"/Tags": tags}), "Tags", "at most 47"),
        case("tag_keys", flat, json!({"/Tags/0/Key": "aws:x"}), "Tags[0].Key", "AWS reserves keys"),
        case("tag_keys", flat, json!({"/Tags/0/Key": "Hyperband:MaxCostUsd"}), "Tags[0].Key", "in their exact case"),
        case("tag_keys", flat, json!({"/Tags/-": {"Key": "team", "Value": ""}}), "Tags[1].Key", "no other tag has"),
    ]
}

#[test]
fn each_violated_rule_is_reported_alone_with_its_path() {
    let cases: Vec<Case> =
        [strategy_cases(), parameter_cases(), job_cases(), resource_cases()].into_iter().flatten().collect();
    for Case { rule, base, changes, path, message } in &cases {
        let mut base = base();
        // They name the objective and every range, which the changes replace.
        base["Controller"].as_object_mut().map(|controller| controller.remove("KnownResults"));
        let body = changed(base, changes);
        assert_eq!(reported(&body), std::slice::from_ref(path), "{rule}: {changes}");
        let error = Request::check(body.clone()).unwrap_err();
        assert!(error.message.contains(message), "{rule}: {}", error.message);
        let violated = RULES.iter().find(|known| known.name == *rule).expect("a rule of that name");
        assert_eq!((violated.check)(&Request::from_stored(body)).len(), 1, "{rule} does not report it");
    }
    let covered: BTreeSet<&str> = cases.iter().map(|case| case.rule).collect();
    let all: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(all.difference(&covered).collect::<Vec<_>>(), Vec::<&&str>::new(), "rules without a case");
}
