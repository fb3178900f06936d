//! `hyperband simulate`.

use serde_json::{Value, json};

use crate::world::{QUICK, World, exists, request};

/// Writes a table with two configurations of nine epochs, and a request that tunes its hyperparameter.
fn write_table(world: &World) {
    let mut tuned = request("t");
    tuned["HyperParameterTuningJobConfig"]["ParameterRanges"] = json!({"ContinuousParameterRanges": [
        {"Name": "learning_rate", "MinValue": "0.0001", "MaxValue": "1", "ScalingType": "Logarithmic"},
    ]});
    world.write_request("request.json", &tuned);
    let line = |rate: f64, height: f64| {
        let values: Vec<f64> = (1..=9).map(|epoch| height * f64::from(epoch) / 9.0).collect();
        let row = json!({
            "hyperparameters": {"learning_rate": rate}, "seconds_per_epoch": 2, "values": values,
        });
        row.to_string()
    };
    std::fs::write(world.path("small.jsonl"), [line(0.001, 0.4), line(0.1, 0.8)].join("\n")).unwrap();
    let space = json!({"type": "Maximize", "max_resource": 9, "parameters": [
        {"name": "learning_rate", "kind": "Continuous", "min": 0.0001, "max": 1.0, "scaling": "Logarithmic"},
    ]});
    std::fs::write(world.path("small.space.json"), space.to_string()).unwrap();
}

fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_seed_prints_one_line_and_the_same_bytes_again() {
    let world = World::new(QUICK);
    write_table(&world);
    let arguments = ["simulate", "request.json", "--curves", "small.jsonl", "--seeds", "3..6"];
    let out = world.hyperband(&arguments).with_code(0).out;
    let shown = lines(&out);
    assert_eq!(shown.iter().map(|line| &line["seed"]).collect::<Vec<_>>(), [3, 4, 5]);
    for line in &shown {
        assert_eq!((&line["training_jobs"], &line["end_reason"]), (&json!(6), &json!("MaxJobs")), "{line}");
        assert_eq!(line["checkpoints"].as_array().unwrap().len(), 1, "{line}");
        assert!(line["cap_spent"].as_f64().unwrap() > 0.0, "the request has a cap: {line}");
        for name in ["epochs", "slots_used", "epochs_unopposed", "trials_at_max", "jobs_cut"] {
            assert!(line[name].is_number(), "{name} in {line}");
        }
    }
    assert_eq!(out, world.hyperband(&arguments).with_code(0).out);
    assert!(!exists(&world.path(".hyperband")), "nothing is stored");
}

#[test]
fn a_simulation_is_measured_at_fixed_times() {
    let world = World::new(QUICK);
    write_table(&world);
    let arguments = ["simulate", "request.json", "--curves", "small.jsonl", "--until-seconds", "1800"];
    let shown = lines(&world.hyperband(&arguments).with_code(0).out);
    let times: Vec<_> = shown[0]["checkpoints"].as_array().unwrap().iter().map(|at| &at["seconds"]).collect();
    assert_eq!(times, [600.0, 1800.0]);
}

#[test]
fn trials_replace_the_number_of_jobs_of_the_request() {
    let world = World::new(QUICK);
    write_table(&world);
    let arguments = ["simulate", "request.json", "--curves", "small.jsonl", "--trials", "12"];
    let shown = lines(&world.hyperband(&arguments).with_code(0).out);
    assert_eq!(shown[0]["trials"], 12);
}

/// The brackets were those of the request's own number of jobs.
#[test]
fn regression_the_given_trials_choose_the_brackets() {
    let world = World::new(QUICK);
    write_table(&world);
    let epochs = |arguments: &[&str]| {
        let all = [&["simulate", "request.json", "--curves", "small.jsonl"], arguments].concat();
        lines(&world.hyperband(&all).with_code(0).out)[0]["epochs"].clone()
    };
    let by_option = epochs(&["--trials", "17"]);
    world.write_request("request.json", &{
        let mut whole: Value = serde_json::from_str(&world.read("request.json")).unwrap();
        whole["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(17);
        whole
    });
    assert_eq!(by_option, epochs(&[]));
}

#[test]
fn wrong_tables_and_options_are_refused() {
    let world = World::new(QUICK);
    write_table(&world);
    let refused = |arguments: &[&str]| {
        let all = [&["simulate", "request.json"], arguments].concat();
        world.hyperband(&all).with_code(2).err
    };
    assert!(refused(&["--curves", "small.csv"]).contains("expected a .jsonl or .jsonl.gz file"));
    assert!(refused(&["--curves", "absent.jsonl"]).contains("cannot read"));
    assert!(refused(&["--curves", "small.jsonl", "--seeds", "5..5"]).contains("for example 0..20"));
    assert!(refused(&["--curves", "small.jsonl", "--capacity-outage", "9..3"]).contains("600..22200"));
    assert!(refused(&["--curves", "small.jsonl", "--mean-job-seconds", "0"]).contains("a number above 0"));
    let mut other = request("t");
    other["HyperParameterTuningJobConfig"]["ParameterRanges"] =
        json!({"ContinuousParameterRanges": [{"Name": "depth", "MinValue": "0", "MaxValue": "1"}]});
    world.write_request("request.json", &other);
    assert!(refused(&["--curves", "small.jsonl"]).contains("the table has no hyperparameter depth"));
    std::fs::write(world.path("small.jsonl"), "{\"hyperparameters\":{}}").unwrap();
    assert!(refused(&["--curves", "small.jsonl"]).contains("invalid line 1 of the table"));
}
