//! Each warning has a request that causes it; a plain request causes none.

use serde_json::{Value, json};

use super::*;

mod examples;

/// A request without warnings.
fn calm() -> Value {
    let hello = serde_json::from_str(include_str!("../../../examples/hello/request.json")).unwrap();
    let mut body = wire::sample::for_stack(hello);
    body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(49);
    body
}

fn codes(body: Value) -> Vec<&'static str> {
    let body = Request::check(body).unwrap_or_else(|error| panic!("{error}"));
    let request = for_this_machine(body.body().clone()).unwrap();
    warnings::all(&request, false).iter().map(|warning| warning.code.name()).collect()
}

fn changed(body: &Value, changes: &[(&str, Value)]) -> Value {
    let mut body = body.clone();
    for (path, value) in changes {
        let mut place = &mut body;
        for member in path.split('/') {
            place = match member.parse::<usize>() {
                Ok(index) => &mut place[index],
                Err(_) => &mut place[member],
            };
        }
        *place = value.clone();
    }
    body
}

const JOB: &str = "TrainingJobDefinition";

/// The calm request for a built-in algorithm, on demand.
fn built_in(name: &str, kind: &str, metric: &str) -> Value {
    changed(
        &calm(),
        &[
            (
                "HyperParameterTuningJobConfig/HyperParameterTuningJobObjective",
                json!({"Type": kind, "MetricName": metric}),
            ),
            (
                "TrainingJobDefinition/AlgorithmSpecification",
                json!({"TrainingInputMode": "File", "AlgorithmName": name}),
            ),
            ("TrainingJobDefinition/StaticHyperParameters", json!({})),
            ("TrainingJobDefinition/EnableManagedSpotTraining", json!(false)),
            ("TrainingJobDefinition/StoppingCondition", json!({"MaxRuntimeInSeconds": 60})),
            ("Controller/EpochPattern", json!(null)),
        ],
    )
}

#[test]
fn a_good_request_has_no_warnings() {
    assert_eq!(codes(calm()), Vec::<&str>::new());
    assert_eq!(codes(built_in("xgboost", "Maximize", "validation:auc")), Vec::<&str>::new());
}

#[test]
fn jobs_cause_warnings() {
    let stopping =
        |runtime: u32, wait: u32| json!({"MaxRuntimeInSeconds": runtime, "MaxWaitTimeInSeconds": wait});
    let condition = "TrainingJobDefinition/StoppingCondition";
    let channel = |name: &str, kind: &str| {
        let source = json!({"S3DataType": "S3Prefix", "S3Uri": "s3://b/d/", "S3DataDistributionType": kind});
        json!({"ChannelName": name, "DataSource": {"S3DataSource": source}})
    };
    let two = ("TrainingJobDefinition/ResourceConfig/InstanceCount", json!(2));
    let channels = "TrainingJobDefinition/InputDataConfig";
    for (code, changes) in [
        ("NoCostCap", vec![("Controller/MaxCostUsd", json!(null))]),
        ("SpotWithoutCheckpoint", vec![("TrainingJobDefinition/CheckpointConfig", json!(null))]),
        (
            "PromoteWithoutCheckpoint",
            vec![
                ("TrainingJobDefinition/CheckpointConfig", json!(null)),
                ("Controller/RungExecution", json!("Promote")),
                ("Controller/ResourceHyperParameter", json!("epochs")),
            ],
        ),
        ("SpotWaitShort", vec![(condition, stopping(600, 700))]),
        ("SpotWaitShort", vec![(condition, stopping(7_200, 8_000)), ("Controller/MaxCostUsd", json!(50))]),
        ("InstanceQuota", vec![two.clone(), ("Controller/MaxCostUsd", json!(9))]),
        (
            "InstancesPerJobQuota",
            vec![
                ("TrainingJobDefinition/ResourceConfig/InstanceCount", json!(21)),
                ("Controller/MaxCostUsd", json!(50)),
            ],
        ),
        ("CapAdmitsFewerJobs", vec![("Controller/MaxCostUsd", json!(0.03))]),
        ("EpochsCountedOnSpot", vec![("Controller/EpochPattern", json!(null))]),
        ("ShardedNeedsObjects", vec![two.clone(), (channels, json!([channel("train", "ShardedByS3Key")]))]),
        ("ShardedValidation", vec![two, (channels, json!([channel("validation", "ShardedByS3Key")]))]),
        (
            "MaxJobsCompareNothing",
            vec![
                ("HyperParameterTuningJobConfig/ResourceLimits/MaxNumberOfTrainingJobs", json!(2)),
                ("Controller/ReductionFactor", json!(3)),
            ],
        ),
    ] {
        let found = codes(changed(&calm(), &changes));
        assert!(found.contains(&code), "{code} in {found:?}");
    }
    let enough =
        changed(&calm(), &[(condition, stopping(7_200, 8_100)), ("Controller/MaxCostUsd", json!(50))]);
    assert_eq!(codes(enough), Vec::<&str>::new());
    let whole = changed(&calm(), &[(channels, json!([channel("validation", "ShardedByS3Key")]))]);
    assert_eq!(codes(whole), Vec::<&str>::new(), "one host has all objects");
}

#[test]
fn warm_pools_cause_warnings_about_quota_and_time() {
    let keeping = |seconds: u32| {
        let body = built_in("xgboost", "Maximize", "validation:auc");
        let resources = "TrainingJobDefinition/ResourceConfig/KeepAlivePeriodInSeconds";
        let changes = [(resources, json!(seconds)), ("Controller/MaxCostUsd", json!(50))];
        changed(&body, &changes)
    };
    assert_eq!(codes(keeping(0)), Vec::<&str>::new());
    assert_eq!(codes(keeping(600)), ["WarmPoolQuota"]);
    assert_eq!(codes(keeping(3_600)), ["WarmPoolQuota"]);
    assert_eq!(codes(keeping(3_601)), ["WarmPoolQuota", "KeepAliveLong"]);
    let two = ("TrainingJobDefinition/ResourceConfig/InstanceCount", json!(2));
    let request = for_this_machine(changed(&keeping(600), &[two])).unwrap();
    let all = warnings::all(&request, false);
    let quota = all.iter().find(|warning| warning.code.name() == "WarmPoolQuota").unwrap();
    assert!(quota.advice.contains("'ml.m5.large for training warm pool usage' of 8"), "{quota:?}");
}

#[test]
fn unsuitable_ranges_cause_warnings() {
    let warned = |list: &str, given: Value| {
        // A second range without a warning, so that there are enough combinations.
        let mut ranges =
            json!({"ContinuousParameterRanges": [{"Name": "beside", "MinValue": "1", "MaxValue": "2"}]});
        match ranges[list].as_array_mut() {
            Some(beside) => beside.push(given),
            None => ranges[list] = json!([given]),
        }
        codes(changed(&calm(), &[("HyperParameterTuningJobConfig/ParameterRanges", ranges)]))
    };
    let (continuous, integer) = ("ContinuousParameterRanges", "IntegerParameterRanges");
    for (expected, list, name, min, max, scaling) in [
        (Some("LinearOverOrders"), continuous, "c", "0.001", "1", "Linear"),
        (Some("LinearOverOrders"), continuous, "c", "0.002", "1", "Auto"),
        (None, continuous, "c", "0.001", "1", "Auto"),
        (None, continuous, "c", "0.01", "1", "Linear"),
        (Some("LinearRate"), continuous, "learning_rate", "0.01", "1", "Linear"),
        (Some("LinearRate"), continuous, "eta", "0", "1", "Auto"),
        (None, continuous, "eta", "0.2", "1", "Linear"),
        (Some("RangeOfOneValue"), continuous, "c", "0.5", "0.5", "Linear"),
        (Some("RangeOfOneValue"), integer, "n", "3", "3", "Linear"),
        (Some("LinearOverOrders"), integer, "n", "1", "500", "Linear"),
        (None, integer, "n", "1", "500", "Logarithmic"),
        (None, integer, "n", "-10", "5000", "Linear"),
    ] {
        let given = json!({"Name": name, "MinValue": min, "MaxValue": max, "ScalingType": scaling});
        let found = warned(list, given);
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{name} {min} {max} {scaling}");
    }
    let one = json!({"Name": "kind", "Values": ["only"]});
    assert_eq!(warned("CategoricalParameterRanges", one), ["RangeOfOneValue"]);
}

#[test]
fn limitations_of_the_algorithm_cause_warnings() {
    let spot = |body: &Value, wait: u32| {
        changed(
            body,
            &[
                ("TrainingJobDefinition/EnableManagedSpotTraining", json!(true)),
                (
                    "TrainingJobDefinition/StoppingCondition",
                    json!({"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": wait}),
                ),
            ],
        )
    };
    let xgboost = built_in("xgboost", "Maximize", "validation:auc");
    let statics = "TrainingJobDefinition/StaticHyperParameters";
    let ntm = built_in("ntm", "Minimize", "validation:total_loss");
    for (expected, body) in [
        (vec!["ObjectiveDirection"], built_in("xgboost", "Minimize", "validation:auc")),
        (vec!["ResumeBroken"], spot(&xgboost, 120)),
        (vec!["MaxResourceNotReached"], changed(&xgboost, &[(statics, json!({"num_round": "9"}))])),
        (vec![], changed(&xgboost, &[(statics, json!({"num_round": "27"}))])),
        (
            vec!["StoppedJobsLeaveNoModel"],
            changed(&xgboost, &[(statics, json!({"save_model_on_termination": "false"}))]),
        ),
        (vec!["NoValuesPerEpoch"], built_in("kmeans", "Minimize", "test:msd")),
        (vec!["ObjectiveAtEnd"], built_in("linear-learner", "Minimize", "validation:mse")),
        (vec![], built_in("linear-learner", "Minimize", "validation:objective_loss")),
        (vec!["ResourceIsCheckpoints", "LineNotCertain"], built_in("seq2seq", "Maximize", "validation:bleu")),
        (vec!["StoppedJobsLeaveNoModel", "LineNotCertain"], ntm.clone()),
        (vec!["LineNotCertain"], changed(&ntm, &[("Controller/Refit", json!("Best"))])),
        (vec!["NoCheckpoints", "StoppedJobsLeaveNoModel", "LineNotCertain"], spot(&ntm, 120)),
        (
            vec!["BuiltInDefinitions"],
            changed(
                &xgboost,
                &[(
                    "TrainingJobDefinition/AlgorithmSpecification/MetricDefinitions",
                    json!([{"Name": "validation:auc", "Regex": r"validation-auc:([-+.\w]*\w)"}]),
                )],
            ),
        ),
    ] {
        assert_eq!(codes(body.clone()), expected, "{}", body[JOB]);
    }
    let long = changed(&spot(&ntm, 4_000), &[("Controller/MaxCostUsd", json!(9))]);
    assert!(codes(long).contains(&"SpotWaitAboveHour"));
}

fn findings(body: Value, log: &str) -> Findings {
    log::read(&Request::check(body).unwrap(), log.as_bytes()).unwrap()
}

fn log_codes(found: &Findings) -> Vec<&'static str> {
    found.warnings().iter().map(|warning| warning.code.name()).collect()
}

#[test]
fn a_log_shows_the_matches_of_each_pattern() {
    let log = "loading\nepoch 1 accuracy=0.5\nepoch 2 accuracy=0.6\nepoch 2 accuracy=0.6\r\nepoch 5 accuracy=x\n\
               epoch 6 accuracy=0.75\nepoch 4 accuracy=0.7";
    let found = findings(calm(), log);
    let metric = &found.metrics[0];
    assert_eq!((found.lines, metric.matched, metric.not_a_number.0), (7, 5, 1));
    assert_eq!((metric.first.as_deref(), metric.last.as_deref()), (Some("0.5"), Some("0.7")));
    let epochs = &metric.epochs;
    assert_eq!((epochs.first, epochs.last), (Some(1), Some(4)));
    assert_eq!((epochs.missing(), epochs.first_missing()), (2, Some(3)));
    assert_eq!((epochs.repeated, epochs.decreased, epochs.without), (1, 1, 0));
    assert_eq!(log_codes(&found), Vec::<&str>::new());
}

#[test]
fn a_log_that_does_not_fit_the_request_causes_a_warning() {
    for (log, expected) in [
        ("", "ObjectiveNotInLog"),
        ("epoch 1 acc=0.5", "ObjectiveNotInLog"),
        ("Epoch: 1 accuracy=0.5\nEpoch: 2 accuracy=0.6", "EpochNotInLog"),
        ("done\nepoch 27 accuracy=0.5", "ObjectiveOnceInLog"),
    ] {
        assert_eq!(log_codes(&findings(calm(), log)), [expected], "{log}");
    }
    let from_zero = "epoch 0 accuracy=0.5\nepoch 1 accuracy=0.6";
    let one = changed(&calm(), &[("Controller/EpochBase", json!(1))]);
    assert_eq!(log_codes(&findings(one, from_zero)), ["EpochBelowBase"]);
    assert_eq!(log_codes(&findings(calm(), from_zero)), Vec::<&str>::new(), "the tuning counts from 0");
    let zero = changed(&calm(), &[("Controller/EpochBase", json!(0))]);
    let log = "epoch 1 accuracy=0.5\nepoch 2 accuracy=0.6";
    assert_eq!(log_codes(&findings(zero, log)), ["EpochAboveBase"]);
}

#[test]
fn the_log_of_a_built_in_algorithm_needs_no_metric_definition() {
    let log = "[0]#011train-auc:0.9#011validation-auc:0.7\n[1]#011train-auc:0.9#011validation-auc:nan\n";
    let found = findings(built_in("xgboost", "Maximize", "validation:auc"), log);
    let metric = &found.metrics[0];
    assert_eq!((metric.name.as_str(), metric.matched, metric.not_finite), ("validation:auc", 2, 1));
    assert_eq!((metric.epochs.first, metric.epochs.last), (Some(0), Some(1)));
    assert_eq!(log_codes(&found), Vec::<&str>::new());
}

#[test]
fn a_group_that_captures_text_causes_a_hint() {
    let regex = "TrainingJobDefinition/AlgorithmSpecification/MetricDefinitions/0/Regex";
    let found = findings(changed(&calm(), &[(regex, json!("(accuracy)="))]), "epoch 1 accuracy=0.5");
    let hint = found.metrics[0].hint.as_deref().unwrap();
    assert!(hint.contains("captures 'accuracy', which is not a number"), "{hint}");
}

#[test]
fn very_long_lines_are_skipped() {
    let long = "x".repeat(3 << 20);
    let found = findings(calm(), &format!("{long}\nepoch 1 accuracy=0.5\nepoch 2 accuracy=0.5"));
    assert_eq!((found.lines, found.metrics[0].matched, found.metrics[0].too_long), (3, 2, 1));
}

#[test]
fn check_rejects_the_same_requests_as_a_submission() {
    let broken = changed(&calm(), &[("Controller/MaxCostUsd", json!(0.001))]);
    let error = for_this_machine(broken).unwrap_err();
    assert_eq!(error.violations[0].path, "Controller.MaxCostUsd");
    let unpriced = changed(&calm(), &[("Controller/InstancePricesUsdPerHour", json!({}))]);
    let error = for_this_machine(unpriced).unwrap_err();
    assert_eq!(error.violations[0].path, "Controller.InstancePricesUsdPerHour");
    assert_eq!(show::invalid_json(&error)["Valid"], false);
    let statics: serde_json::Map<String, Value> =
        (0..95).map(|number| (format!("h{number}"), json!("x".repeat(2_400)))).collect();
    let large = changed(&calm(), &[("TrainingJobDefinition/StaticHyperParameters", json!(statics))]);
    let error = for_this_machine(large).unwrap_err();
    assert!(error.message.contains("of at most 200000"), "{error}");
}

/// Only the first definition was examined.
#[test]
fn a_warning_about_one_of_several_definitions_names_it() {
    let mut body = calm();
    let members = body.as_object_mut().unwrap();
    let mut small = members.remove("TrainingJobDefinition").unwrap();
    let config = members["HyperParameterTuningJobConfig"].as_object_mut().unwrap();
    small["TuningObjective"] = config.remove("HyperParameterTuningJobObjective").unwrap();
    small["HyperParameterRanges"] = config.remove("ParameterRanges").unwrap();
    small["DefinitionName"] = json!("small");
    let mut large = small.clone();
    large["DefinitionName"] = json!("large");
    large["HyperParameterRanges"] = json!({"ContinuousParameterRanges": [{"Name": "lr", "MinValue": "0.05", "MaxValue": "1", "ScalingType": "Linear"}]});
    members.insert("TrainingJobDefinitions".to_owned(), json!([small, large]));
    let request = for_this_machine(body).unwrap_or_else(|error| panic!("{error}"));
    let rates: Vec<String> = warnings::all(&request, false)
        .into_iter()
        .filter(|warning| warning.code == crate::warning::Code::LinearRate)
        .map(|warning| warning.message)
        .collect();
    assert_eq!(rates.len(), 1, "{rates:?}");
    assert!(rates[0].starts_with("definition 'large': 'lr'"), "{rates:?}");
}
