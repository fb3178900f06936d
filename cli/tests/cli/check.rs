//! `hyperband check`: validation, logs and warnings.

use std::fs::File;

use serde_json::json;

use crate::world::{QUICK, World, ended, exists, request};

const LOG: &str = "[0]\tvalidation-auc:0.5\n[1]\tvalidation-auc:0.75\n[3]\tvalidation-auc:0.875\n";

#[test]
fn a_valid_request_is_shown_with_its_warnings() {
    let world = World::new(QUICK);
    let mut body = request("t");
    let ranges = &mut body["HyperParameterTuningJobConfig"]["ParameterRanges"];
    ranges["CategoricalParameterRanges"][0]["Values"] = json!(["one"]);
    world.write_request("request.json", &body);
    let out = world.hyperband(&["check", "request.json"]).with_code(0).out;
    assert!(out.starts_with("t: the request is valid\n"), "{out}");
    assert!(out.contains("[RangeOfOneValue]"), "{out}");
    assert!(out.contains("\n1 warning\n") && !out.contains('\x1b'), "{out}");
    assert!(!exists(&world.path(".hyperband")), "nothing is stored");
}

#[test]
fn the_patterns_are_tested_on_a_log() {
    let world = World::new(QUICK);
    world.write("train.log", LOG);
    let out = world.hyperband(&["check", "request.json", "--log", "train.log"]).with_code(0).out;
    assert!(out.contains("3 lines of log\nMETRIC          LINES  FIRST   LAST  EPOCHS\n"), "{out}");
    assert!(
        out.contains("validation:auc      3    0.5  0.875  0 to 3, 1 missing (the first is 2)\n"),
        "{out}"
    );
    let mut command = world.command(&["check", "request.json", "--log", "-", "--output", "json"]);
    command.stdin(File::open(world.path("train.log")).unwrap());
    let metric = ended(command.spawn().unwrap()).with_code(0).json()["Log"]["Metrics"][0].clone();
    assert_eq!(
        (&metric["Lines"], &metric["First"], &metric["Last"]),
        (&json!(3), &json!("0.5"), &json!("0.875"))
    );
    assert_eq!((&metric["Epochs"]["Missing"], &metric["Hint"]), (&json!(1), &json!(null)));
}

#[test]
fn a_pattern_without_matches_gets_a_hint() {
    let world = World::new(QUICK);
    world.write("train.log", "epoch 1 val_auc=0.5\n");
    let ended = world.hyperband(&["check", "request.json", "--log", "train.log"]).with_code(0);
    assert!(ended.out.contains("[ObjectiveNotInLog]"), "{ended:?}");
    assert!(
        ended.out.contains("does not match the lines with 'val_auc': \"epoch 1 val_auc=0.5\""),
        "{ended:?}"
    );
}

#[test]
fn the_output_of_a_real_job_can_be_checked() {
    let world = World::new(QUICK);
    let log =
        std::process::Command::new("sh").arg(world.path("train.sh")).env("SM_HP_X", "0.5").output().unwrap();
    world.write("train.log", &String::from_utf8(log.stdout).unwrap());
    let shown = world
        .hyperband(&["check", "request.json", "--log", "train.log", "--output", "json"])
        .with_code(0)
        .json();
    let metric = &shown["Log"]["Metrics"][0];
    assert_eq!((&metric["Lines"], &metric["Epochs"]["Last"]), (&json!(9), &json!(8)));
}

#[test]
fn an_invalid_request_lists_all_violations_with_exit_code_2() {
    let world = World::new(QUICK);
    let mut bad = request("t");
    bad["Controller"]["ReductionFactor"] = json!(1);
    bad["Controller"]["MaxCost"] = json!(1);
    world.write_request("bad.json", &bad);
    let ended = world.hyperband(&["check", "bad.json"]).with_code(2);
    assert!(ended.err.starts_with("error: the request is invalid\n") && ended.out.is_empty(), "{ended:?}");
    let shown = world.hyperband(&["check", "bad.json", "--output", "json"]).with_code(2).json();
    let mut paths: Vec<&str> =
        shown["Violations"].as_array().unwrap().iter().map(|one| one["Path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["Controller.MaxCost", "Controller.ReductionFactor"]);
    assert_eq!((&shown["Valid"], &shown["Code"]), (&json!(false), &json!("ValidationException")));
    let ended = world.hyperband(&["check", "request.json", "--log", "nothing.log"]).with_code(2);
    assert!(ended.err.contains("cannot read the log nothing.log"), "{ended:?}");
    let ended = world.hyperband(&["check", "-", "--log", "-"]).with_code(2);
    assert!(ended.err.contains("cannot both come from standard input"), "{ended:?}");
}

#[test]
fn a_built_in_algorithm_needs_no_metric_definition() {
    let world = World::new(QUICK);
    let mut built_in = request("t");
    built_in["TrainingJobDefinition"]["AlgorithmSpecification"] =
        json!({"TrainingInputMode": "File", "AlgorithmName": "xgboost"});
    for field in ["EpochPattern", "EpochBase"] {
        built_in["Controller"].as_object_mut().unwrap().remove(field);
    }
    world.write_request("request.json", &built_in);
    world.write("train.log", LOG);
    let arguments = ["check", "request.json", "--log", "train.log", "--output", "json"];
    let shown = world.hyperband(&arguments).with_code(0).json();
    assert_eq!(shown["Algorithm"], "XGBoost");
    let metric = &shown["Log"]["Metrics"][0];
    assert_eq!((&metric["Name"], &metric["Lines"]), (&json!("validation:auc"), &json!(3)));
    assert_eq!(metric["Epochs"]["Last"], 3);
    // Such a tuning also runs, because its jobs print the lines of the algorithm.
    let run = world.run(&["--output", "json"]).with_code(0).json();
    assert_eq!(run["TuningJob"]["HyperParameterTuningJobStatus"], "Completed");
    let best = &run["TuningJob"]["BestTrainingJob"]["FinalHyperParameterTuningJobObjectiveMetric"]["Value"];
    assert!(best.as_f64().unwrap() > 0.9, "{best}");
}
