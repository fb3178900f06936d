//! Several training job definitions in one tuning, with real processes.

use serde_json::{Value, json};

use crate::report::document;
use crate::world::{QUICK, World, request};

/// Searches two definitions with different hyperparameters and log lines.
fn two() -> Value {
    let mut request = request("t");
    let members = request.as_object_mut().unwrap();
    let mut small = members.remove("TrainingJobDefinition").unwrap();
    let config = members["HyperParameterTuningJobConfig"].as_object_mut().unwrap();
    config["ResourceLimits"] = json!({"MaxNumberOfTrainingJobs": 8, "MaxParallelTrainingJobs": 2});
    small["TuningObjective"] = config.remove("HyperParameterTuningJobObjective").unwrap();
    small["HyperParameterRanges"] = config.remove("ParameterRanges").unwrap();
    let mut large = small.clone();
    small["DefinitionName"] = json!("small");
    large["DefinitionName"] = json!("large");
    large["HyperParameterRanges"] =
        json!({"ContinuousParameterRanges": [{"Name": "rate", "MinValue": "0.1", "MaxValue": "1"}]});
    large["AlgorithmSpecification"]["MetricDefinitions"] =
        json!([{"Name": large["TuningObjective"]["MetricName"], "Regex": "area ([0-9.]+)"}]);
    members.insert("TrainingJobDefinitions".to_owned(), json!([small, large]));
    request
}

/// Logs nine epochs of the definition `large` only.
const LARGE: &str = r#"[ "$SM_DEFINITION_NAME" = large ] || exit 1
for epoch in 0 1 2 3 4 5 6 7 8; do echo "[$epoch] area 0.${epoch}5"; done
"#;

#[test]
fn each_definition_runs_its_own_command_and_is_read_by_its_own_pattern() {
    let world = World::new(QUICK);
    world.write("large.sh", LARGE);
    world.write_request("request.json", &two());
    let result = world.run(&["--command", "large=sh large.sh", "--output", "json"]).with_code(0).json();
    let jobs = result["TrainingJobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 8);
    for job in jobs {
        let is_large = job["Controller"]["Trial"].as_u64().unwrap() % 2 == 1;
        assert_eq!(job["TrainingJobDefinitionName"], if is_large { "large" } else { "small" }, "{job}");
        assert_eq!(job["TunedHyperParameters"].get("rate").is_some(), is_large, "{job}");
        assert_eq!(job["ObjectiveStatus"], "Succeeded", "{job}");
    }
    let described = world.hyperband(&["describe", "t", "--output", "json"]).with_code(0).json();
    let names: Vec<&Value> = described["TrainingJobDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["DefinitionName"])
        .collect();
    assert_eq!(names, ["small", "large"]);
    assert_eq!(described.get("TrainingJobDefinition"), None);
    let rows = described["Controller"]["ClusterSizes"].as_array().unwrap();
    let trials: Vec<_> = rows.iter().map(|row| (&row["TrainingJobDefinitionName"], &row["Trials"])).collect();
    assert_eq!(trials, [(&json!("small"), &json!(4)), (&json!("large"), &json!(4))]);

    let table = world.hyperband(&["describe", "t"]).with_code(0).out;
    assert!(table.contains("DEFINITION") && table.contains(" large "), "{table}");

    let shown = document(&world.hyperband(&["report", "t", "-o", "-"]).with_code(0).out);
    assert_eq!(shown["head"]["parameters"][0]["name"], "TrainingJobDefinition");
    assert_eq!(shown["trials"][1]["values"][0], "large");
    let explained = world.hyperband(&["explain", "t", "1"]).with_code(0).out;
    assert!(explained.starts_with("trial 1 of t, definition large, bracket "), "{explained}");
    let replayed = world.hyperband(&["replay", "t"]).with_code(0);
    assert!(replayed.out.ends_with(" rulings: identical\n"), "{replayed:?}");
}

#[test]
fn a_plan_names_the_definitions() {
    let world = World::new(QUICK);
    world.write_request("request.json", &two());
    let shown = world.hyperband(&["plan", "request.json"]).with_code(0).out;
    assert!(shown.contains("definitions   small, large: each has brackets of its own"), "{shown}");
    let plan = world.hyperband(&["plan", "request.json", "--output", "json"]).with_code(0).json();
    assert_eq!(plan["Definitions"], json!(["small", "large"]));
}

/// The plan showed the worst case of the definition with the highest price, and warned about its limit only.
#[test]
fn a_plan_counts_the_longest_jobs_of_each_definition() {
    let world = World::new(QUICK);
    let mut request = two();
    request["Controller"]["MaxCostUsd"] = json!(100);
    request["Controller"]["InstancePricesUsdPerHour"] = json!({"ml.local.dear": 2, "ml.local.cheap": 1});
    for (index, kind, seconds) in [(0, "ml.local.dear", 60), (1, "ml.local.cheap", 36_000)] {
        let definition = &mut request["TrainingJobDefinitions"][index];
        definition["ResourceConfig"] = json!({"InstanceType": kind, "InstanceCount": 1, "VolumeSizeInGB": 1});
        definition["StoppingCondition"] = json!({"MaxRuntimeInSeconds": seconds});
    }
    world.write_request("request.json", &request);
    let times = ["--epoch-seconds", "100", "--startup-seconds", "5", "--output", "json"];
    let plan = world.hyperband(&[&["plan", "request.json"][..], &times].concat()).with_code(0).json();
    assert!(plan["WorstCaseJobUsd"].as_f64().unwrap() > 10.0, "{plan}");
    let warnings = plan["Warnings"].as_array().unwrap().iter();
    let cut: Vec<&str> = warnings
        .filter(|warning| warning["Code"] == "JobsCutByMaxRuntime")
        .map(|warning| warning["Message"].as_str().unwrap())
        .collect();
    assert!(matches!(cut[..], [one] if one.starts_with("definition 'small'")), "{cut:?}");
}

/// Warnings about spot and warm pools read the first definition only.
#[test]
fn check_warns_about_the_jobs_of_each_definition() {
    let world = World::new(QUICK);
    let mut request = two();
    let second = &mut request["TrainingJobDefinitions"][1];
    second["EnableManagedSpotTraining"] = json!(true);
    second["StoppingCondition"] = json!({"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 120});
    second.as_object_mut().unwrap().remove("CheckpointConfig");
    world.write_request("request.json", &request);
    let found = world.hyperband(&["check", "request.json"]).with_code(0);
    assert!(
        found.out.contains("definition 'large': The request uses spot instances without"),
        "{}",
        found.out
    );
}

/// A pattern that cuts numbers was found in the first definition only.
#[test]
fn check_and_plan_warn_of_a_pattern_of_any_definition_that_cuts_numbers() {
    let world = World::new(QUICK);
    world.write_request("request.json", &two());
    for command in ["check", "plan"] {
        let found = world.hyperband(&[command, "request.json", "--output", "json"]).with_code(0).json();
        let mut warnings = found["Warnings"].as_array().unwrap().iter();
        let cut = warnings.find(|warning| warning["Code"] == "NumberCut");
        let message = cut.and_then(|warning| warning["Message"].as_str());
        assert!(message.is_some_and(|text| text.starts_with("definition 'large': ")), "{command}: {found}");
    }
}

/// `check --log` tries the patterns of the first definition only.
#[test]
fn check_tries_the_patterns_of_the_definition_of_a_log() {
    let world = World::new(QUICK);
    world.write_request("request.json", &two());
    world.write("job.log", "[0] area 0.5\n[1] area 0.75\n");
    let check = |more: &[&str]| {
        world.hyperband(
            &[&["check", "request.json", "--log", "job.log", "--output", "json"][..], more].concat(),
        )
    };
    let lines = |more: &[&str]| check(more).with_code(0).json()["Log"]["Metrics"][0]["Lines"].clone();
    assert_eq!(lines(&[]), json!(0));
    assert_eq!(lines(&["--definition", "large"]), json!(2));
    world.write("job.log", "[0] area 0.5\n[1] area 1e-11\n");
    let found = check(&["--definition", "large"]).with_code(0).json();
    let message = |code: &str| {
        let mut warnings = found["Warnings"].as_array().unwrap().iter();
        warnings.find(|warning| warning["Code"] == code).map(|warning| warning["Message"].as_str().unwrap())
    };
    assert_eq!(found["Log"]["TrainingJobDefinitionName"], "large");
    assert!(
        message("NumberCutInLog").is_some_and(|text| text.starts_with("definition 'large': ")),
        "{found}"
    );
    let refused = check(&["--definition", "medium"]).with_code(2);
    assert!(refused.err.contains("its definitions are small, large"), "{refused:?}");
}

#[test]
fn a_command_of_an_unknown_definition_is_refused() {
    let world = World::new(QUICK);
    world.write_request("request.json", &two());
    let refused = world.run(&["--command", "medium=sh large.sh"]).with_code(2);
    assert!(
        refused.err.contains("no definition 'medium'") && refused.err.contains("small, large"),
        "{refused:?}"
    );
    let refused = world.run(&["--command", "large='sh"]).with_code(2);
    assert!(refused.err.contains("has no end"), "{refused:?}");
}
