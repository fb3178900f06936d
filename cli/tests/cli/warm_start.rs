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
