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
    let config =
        json!({"Strategy": "Bayesian", "StrategyConfig": null, "TrainingJobEarlyStoppingType": "Off"});
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
fn an_extension_runs_the_recorded_command_with_what_is_left_of_the_cap() {
    let world = World::new(QUICK);
    let mut first = named("t");
    first["Controller"]["InitialConfigurations"] = json!([{"x": "0.2"}]);
    first["Controller"]["MaxCostUsd"] = json!(3);
    world.write_request("request.json", &first);
    let first = world.run(&["--output", "json"]).with_code(0).json();
    let second = world.hyperband(&["extend", "t", "--jobs", "4", "--output", "json"]).with_code(0);
    assert!(second.err.contains("t-2 starts from the results of t\n"), "{second:?}");
    let second = second.json();
    let job = &second["TuningJob"];
    assert_eq!((&job["HyperParameterTuningJobName"], configurations(&second).len()), (&json!("t-2"), 4));
    let spent = first["TuningJob"]["Controller"]["SpentUsd"].as_f64().unwrap();
    let cap = job["Controller"]["MaxCostUsd"].as_f64().unwrap();
    assert!(spent > 0.0 && (cap + spent - 3.0).abs() < 1e-9, "{cap} is left after {spent}");
    assert_eq!(job["Controller"].get("InitialConfigurations"), None);

    let limits = ["--jobs", "2", "--cost", "1.5", "--output", "json"];
    let third = world.hyperband(&[&["extend", "t-2"], &limits[..]].concat()).with_code(0).json();
    let job = &third["TuningJob"];
    assert_eq!(
        (&job["HyperParameterTuningJobName"], &job["Controller"]["MaxCostUsd"]),
        (&json!("t-3"), &json!(1.5))
    );
    let parents = json!([{"HyperParameterTuningJobName": "t"}, {"HyperParameterTuningJobName": "t-2"}]);
    assert_eq!(job["WarmStartConfig"]["ParentHyperParameterTuningJobs"], parents);

    // The best of all three, with the name of its tuning.
    let metric = "FinalHyperParameterTuningJobObjectiveMetric";
    let value = |job: &Value| job[metric]["Value"].as_f64().unwrap();
    let all = [&first, &second, &third].map(|result| &result["TuningJob"]);
    let best =
        all.into_iter().max_by(|a, b| value(&a["BestTrainingJob"]).total_cmp(&value(&b["BestTrainingJob"])));
    let best = best.unwrap();
    let overall = &job["OverallBestTrainingJob"];
    assert_eq!(overall[metric], best["BestTrainingJob"][metric]);
    assert_eq!(overall["TuningJobName"], best["HyperParameterTuningJobName"]);

    let fourth = [&["extend", "t-3", "--without", "t"], &limits[..]].concat();
    let fourth = world.hyperband(&fourth).with_code(0);
    assert!(fourth.err.contains("t-4 starts from the results of t-2, t-3\n"), "{fourth:?}");
    assert_eq!(first["TuningJob"].get("OverallBestTrainingJob"), None);
    let is_own = overall["TuningJobName"] == "t-3";
    let shown = world.hyperband(&["describe", "t-3"]).with_code(0).out;
    assert_eq!(shown.contains(" of the parent t"), !is_own, "{shown}");
}

/// Written by Optuna 5.0.0: `study.trials_dataframe().to_csv(...)`, with a trial that failed and one that was pruned.
const OF_OPTUNA: &str = include_str!("../data/optuna.csv");

#[test]
fn a_tuning_starts_from_the_results_of_another_tool() {
    let world = World::new(QUICK);
    world.write("optuna.csv", OF_OPTUNA);
    let mut own = named("t");
    let kinds = json!([{"Name": "kind", "Values": ["a", "b"]}]);
    own["HyperParameterTuningJobConfig"]["ParameterRanges"]["CategoricalParameterRanges"] = kinds;
    world.write_request("request.json", &own);
    let ran = world.run(&["--parent", "optuna.csv", "--output", "json"]).with_code(0);
    assert!(ran.err.contains("11 of 12 results in optuna.csv count, by the column 'value'\n"), "{ran:?}");
    let result = ran.json();
    assert_eq!(result["TuningJob"]["Controller"]["KnownResults"].as_array().unwrap().len(), 11);
    let explained = world.hyperband(&["explain", "t", "0"]).with_code(0).out;
    assert!(explained.contains("taken over from the parent KnownResults, where it ranked 1"), "{explained}");

    // The same file gives the same request.
    let again = world.run(&["--parent", "optuna.csv"]).with_code(0);
    assert!(again.err.contains("t has already ended"), "{again:?}");

    // And its own export.
    world.hyperband(&["export", "t", "--format", "csv", "-o", "own.csv"]).with_code(0);
    let next = world.run(&["--parent", "own.csv", "--name", "next"]).with_code(0);
    assert!(next.err.contains("6 of 6 results in own.csv count, by the column 'BestValue'\n"), "{next:?}");

    world.write("other.csv", "a,b\n1,2\n");
    let rejected = world.run(&["--parent", "other.csv", "--name", "other"]).with_code(2);
    assert!(
        rejected.err.contains("no column of other.csv has the objective 'validation:auc'"),
        "{rejected:?}"
    );
    assert!(rejected.err.contains("the file has a, b"), "{rejected:?}");

    // Nothing is deleted for a file without a result in the ranges.
    world.write("far.csv", "x,kind,validation:auc\n7,a,0.5\n");
    let rejected = world.run(&["--fresh", "--parent", "far.csv"]).with_code(2);
    assert!(rejected.err.contains("0 of 1 results in far.csv have a number"), "{rejected:?}");
    world.hyperband(&["describe", "t"]).with_code(0);
}

/// The tag of the ended tuning contradicted the cap of its extension.
#[test]
fn a_tuning_whose_cap_is_a_tag_is_extended() {
    let world = World::new(QUICK);
    let mut first = named("t");
    first["Controller"].as_object_mut().unwrap().remove("MaxCostUsd");
    first["Tags"] = json!([{"Key": "hyperband:MaxCostUsd", "Value": "5"}, {"Key": "team", "Value": "one"}]);
    world.write_request("request.json", &first);
    world.run(&[]).with_code(0);
    let second =
        world.hyperband(&["extend", "t", "--jobs", "2", "--cost", "1", "--output", "json"]).with_code(0);
    assert_eq!(second.json()["TuningJob"]["Controller"]["MaxCostUsd"], 1.0);
}

/// A tuning that took the name of a deleted parent counted as that parent.
#[test]
fn a_replaced_parent_does_not_count() {
    let world = World::new(QUICK);
    world.write_request("request.json", &named("parent"));
    world.run(&[]).with_code(0);
    world.write_request("request.json", &named("child"));
    world.run(&["--parent", "parent"]).with_code(0);
    let mut other = named("parent");
    other["HyperParameterTuningJobConfig"]["HyperParameterTuningJobObjective"]["Type"] = json!("Minimize");
    world.write_request("request.json", &other);
    world.run(&["--fresh"]).with_code(0);
    let child = world.hyperband(&["describe", "child", "--output", "json"]).with_code(0).json();
    assert_eq!(child["OverallBestTrainingJob"]["TuningJobName"], "child", "{child}");
    let third = world.hyperband(&["extend", "child", "--jobs", "2"]).with_code(0);
    assert!(third.err.contains("child-2 starts from the results of child\n"), "{third:?}");
}

/// Both draw with the same seed.
#[test]
fn an_extension_of_a_random_search_repeats_no_configuration() {
    let world = World::new(QUICK);
    let mut first = request("t");
    first["Controller"]["Sampler"] = json!("Random");
    world.write_request("request.json", &first);
    let first = world.run(&["--output", "json"]).with_code(0).json();
    let second = world.hyperband(&["extend", "t", "--jobs", "6", "--output", "json"]).with_code(0).json();
    let (known, new) = (configurations(&first), configurations(&second));
    assert_eq!(new.len(), 6);
    assert!(new.iter().all(|one| !known.contains(one)), "{known:?} {new:?}");
}

/// The earlier tuning was deleted before the submission rejected its parents.
#[test]
fn a_fresh_run_with_a_wrong_parent_deletes_nothing() {
    let world = World::new(QUICK);
    world.write_request("request.json", &named("t"));
    world.run(&[]).with_code(0);
    for (parent, said) in
        [("t", "which is also a parent"), ("other", "no hyperparameter tuning job is named other")]
    {
        let rejected = world.run(&["--fresh", "--parent", parent]).with_code(2);
        assert!(rejected.err.contains(said), "{rejected:?}");
        world.hyperband(&["describe", "t"]).with_code(0);
    }
}

/// The resource of one was a static hyperparameter of the other, and no request was accepted.
#[test]
fn a_parent_may_set_the_resource_that_the_controller_sets_in_the_child() {
    let world = World::new(QUICK);
    let mut first = named("first");
    first["TrainingJobDefinition"]["StaticHyperParameters"] = json!({"epochs": "9"});
    let mut second = named("second");
    second["Controller"]["ResourceHyperParameter"] = json!("epochs");
    for (parent, child) in [(&first, &second), (&second, &first)] {
        let world =
            if parent["HyperParameterTuningJobName"] == "first" { &world } else { &World::new(QUICK) };
        world.write_request("request.json", parent);
        world.run(&[]).with_code(0);
        world.write_request("request.json", child);
        let parent = parent["HyperParameterTuningJobName"].as_str().unwrap();
        world.run(&["--parent", parent]).with_code(0);
    }
}

/// The value of the parent was multiplied once more, and an unmeasured size had its results.
#[test]
fn the_configurations_of_a_parent_keep_their_size_and_their_scaled_values() {
    let world = World::new(QUICK);
    let mut parent = named("parent");
    parent["TrainingJobDefinition"]["ResourceConfig"] =
        json!({"InstanceType": "ml.local.machine", "InstanceCount": 2, "VolumeSizeInGB": 1});
    parent["Controller"]["InstancePricesUsdPerHour"] = json!({"ml.local.machine": 0.1});
    world.write_request("request.json", &parent);
    let parent = world.run(&["--output", "json"]).with_code(0).json();
    let x = |configuration: &Value| configuration["x"].as_str().unwrap().parse::<f64>().unwrap();
    let best = x(&parent["TuningJob"]["BestTrainingJob"]["TunedHyperParameters"]);

    let mut child = named("child");
    child["Controller"]["InstanceCounts"] = json!([1, 2]);
    child["Controller"]["ScaleWithInstances"] = json!(["x"]);
    let range =
        &mut child["HyperParameterTuningJobConfig"]["ParameterRanges"]["ContinuousParameterRanges"][0];
    range["MinValue"] = json!("0.05");
    world.write_request("request.json", &child);
    let child = world.run(&["--parent", "parent", "--output", "json"]).with_code(0).json();
    let first = configurations(&child)[0].clone();
    assert_eq!(first["InstanceCount"], "2", "{first}");
    assert!((x(&first) * 2.0 - best).abs() < 1e-4, "{first} after {best}");

    let mut other = named("other");
    other["Controller"]["InstanceCounts"] = json!([3, 4]);
    world.write_request("request.json", &other);
    let rejected = world.run(&["--parent", "parent"]).with_code(2);
    assert!(rejected.err.contains("no trial of the parent tuning job parent counts"), "{rejected:?}");
}

#[test]
fn a_tuning_that_cannot_be_extended_is_rejected_with_the_reason() {
    let world = World::new(QUICK);
    world.write_request("request.json", &named("t"));
    world.run(&[]).with_code(0);
    for (arguments, said) in [
        (&["extend", "other", "--jobs", "2"][..], "there is no tuning 'other'"),
        (&["extend", "t", "--jobs", "2", "--name", "T"], "there is already a tuning 'T'"),
        (&["extend", "t"], "--jobs"),
        (&["extend", "t", "--jobs", "2", "--without", "other"], "the tuning t has no parent 'other'"),
    ] {
        let rejected = world.hyperband(arguments).with_code(2);
        assert!(rejected.err.contains(said), "{rejected:?}");
    }
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
