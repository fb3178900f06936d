//! Warm start: a tuning that starts from the results of an ended one, with real processes.

use serde_json::{Value, json};

use crate::world::{QUICK, World, request};

fn named(name: &str) -> Value {
    let mut request = request(name);
    request["Controller"]["Sampler"] = json!("Model");
    request
}

/// Returns the hyperparameters of each trial, in order.
fn configurations(result: &Value) -> Vec<Value> {
    let jobs = result["TrainingJobs"].as_array().unwrap();
    jobs.iter().map(|job| job["TunedHyperParameters"].clone()).collect()
}

#[test]
fn a_child_takes_over_the_best_configuration_of_its_parent() {
    let world = World::new(QUICK);
    world.write_request("request.json", &named("parent"));
    let parent = world.run(&["--output", "json"]).with_code(0).json();
    let best = parent["TuningJob"]["BestTrainingJob"]["TunedHyperParameters"].clone();

    world.write_request("request.json", &named("child"));
    let child = world.run(&["--parent", "parent", "--output", "json"]).with_code(0).json();
    // A copied place has 16 bits for each hyperparameter.
    let x = |configuration: &Value| configuration["x"].as_str().unwrap().parse::<f64>().unwrap();
    let is_best = |own: &Value| own["kind"] == best["kind"] && (x(own) - x(&best)).abs() < 1e-4;
    let trial = configurations(&child).iter().position(is_best).unwrap();
    assert_eq!(
        child["TuningJob"]["WarmStartConfig"],
        json!({
            "WarmStartType": "IdenticalDataAndAlgorithm",
            "ParentHyperParameterTuningJobs": [{"HyperParameterTuningJobName": "parent"}],
        })
    );
    let explained = world.hyperband(&["explain", "child", &trial.to_string()]).with_code(0).out;
    assert!(explained.contains("taken over from the parent parent, where it ranked 1"), "{explained}");

    // The observations are copied, so a replay needs no parent.
    world.hyperband(&["delete", "parent", "--yes"]).with_code(0);
    let replayed = world.hyperband(&["replay", "child"]).with_code(0);
    assert!(replayed.out.ends_with(" rulings: identical\n"), "{replayed:?}");
}

/// A parent's static value was taken for the middle of the new range.
#[test]
fn a_hyperparameter_that_the_parent_did_not_tune_has_the_value_of_the_parent() {
    let world = World::new(QUICK);
    let mut parent = named("parent");
    parent["TrainingJobDefinition"]["StaticHyperParameters"] = json!({"depth": "2"});
    world.write_request("request.json", &parent);
    world.run(&[]).with_code(0);
    let mut child = named("child");
    let depth = json!({"Name": "depth", "MinValue": "1", "MaxValue": "9"});
    child["HyperParameterTuningJobConfig"]["ParameterRanges"]["IntegerParameterRanges"] = json!([depth]);
    world.write_request("request.json", &child);
    let child = world.run(&["--parent", "parent", "--output", "json"]).with_code(0).json();
    assert_eq!(configurations(&child)[0]["depth"], "2", "{child}");
}

/// Logs high values and then fails for x from 0.5 on.
const FAILS_HIGH: &str = r#"
i=0
while [ $i -lt 9 ]; do
  printf '[%d]\tvalidation-auc:0.%d%s\n' $i $((i + 1)) "${SM_HP_X#0.}"
  sleep 0.02
  i=$((i + 1))
done
case "$SM_HP_X" in 0.[5-9]*) exit 1 ;; esac
"#;

#[test]
fn a_configuration_whose_program_failed_is_not_taken_over() {
    let world = World::new(FAILS_HIGH);
    // Only the program ends a training job, so each x from 0.5 on fails.
    let config = json!({"Strategy": "Bayesian", "StrategyConfig": null, "TrainingJobEarlyStoppingType": "Off"});
    let parent = wire::sample::with(named("parent"), json!({"HyperParameterTuningJobConfig": config}));
    world.write_request("request.json", &parent);
    let parent = world.run(&["--output", "json"]).json();
    let jobs = parent["TrainingJobs"].as_array().unwrap();
    let failed = jobs.iter().filter(|job| job["TrainingJobStatus"] == "Failed").count();
    assert!(failed > 0 && failed < jobs.len(), "{failed} of {} failed", jobs.len());
    world.write_request("request.json", &named("child"));
    let child = world.run(&["--parent", "parent", "--output", "json"]).json();
    let x: f64 = configurations(&child)[0]["x"].as_str().unwrap().parse().unwrap();
    assert!(x < 0.5, "{x}");
}

#[test]
fn a_tuning_that_cannot_be_a_parent_is_rejected_with_the_reason() {
    let world = World::new(QUICK);
    world.write_request("request.json", &named("parent"));
    world.run(&[]).with_code(0);
    let mut renamed = named("child");
    let ranges = &mut renamed["HyperParameterTuningJobConfig"]["ParameterRanges"];
    for list in ranges.as_object_mut().unwrap().values_mut() {
        for range in list.as_array_mut().unwrap() {
            range["Name"] = json!(format!("{}_2", range["Name"].as_str().unwrap()));
        }
    }
    for (body, parent, said) in [
        (named("child"), "other", "no hyperparameter tuning job is named other"),
        (renamed, "parent", "The set of tunable plus static HyperParameter names is not the same"),
    ] {
        world.write_request("request.json", &body);
        let rejected = world.run(&["--parent", parent]).with_code(2);
        assert!(rejected.err.contains(said), "{rejected:?}");
        assert!(rejected.err.contains("WarmStartConfig.ParentHyperParameterTuningJobs"), "{rejected:?}");
    }
}
