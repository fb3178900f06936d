//! Cluster sizes as a dimension of the search, with real processes.

use std::fs;

use serde_json::{Value, json};

use crate::report::document;
use crate::world::{QUICK, World, request};

/// Searches over one and two instances, with a hyperparameter that the program gets times the number of instances.
fn sized() -> Value {
    let mut request = request("t");
    request["HyperParameterTuningJobConfig"]["ResourceLimits"] =
        json!({"MaxNumberOfTrainingJobs": 6, "MaxParallelTrainingJobs": 2});
    request["TrainingJobDefinition"]["StaticHyperParameters"] = json!({"batch_size": "32"});
    request["Controller"]["InstanceCounts"] = json!([1, 2]);
    request["Controller"]["ScaleWithInstances"] = json!(["batch_size"]);
    request["Controller"]["InitialConfigurations"] = json!([{"InstanceCount": 2}, {"InstanceCount": 1}]);
    request
}

/// All values are within the tolerance, so the best buy is the cheapest trial.
#[test]
fn the_best_buy_is_shown_and_trained_again() {
    let world = World::new(QUICK);
    let mut request = request("t");
    request["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(8);
    request["Controller"]["ValueTolerance"] = json!(1_000);
    request["Controller"]["Refit"] = json!("BestBuy");
    world.write_request("request.json", &request);
    let result = world.run(&["--output", "json"]).with_code(0).json();
    let described = world.hyperband(&["describe", "t", "--output", "json"]).with_code(0).json();
    let own = &described["Controller"];
    let (front, buy) = (own["Front"].as_array().unwrap(), &own["BestBuy"]);
    assert_eq!(front.last().unwrap(), buy, "the last one is the cheapest: {front:?}");
    for (better, cheaper) in front.iter().zip(&front[1..]) {
        assert!(better["Value"].as_f64() > cheaper["Value"].as_f64(), "{front:?}");
        assert!(better["SecondsPerTraining"].as_f64() > cheaper["SecondsPerTraining"].as_f64(), "{front:?}");
    }
    let refit = result["TrainingJobs"].as_array().unwrap().last().unwrap();
    assert_eq!(refit["TrainingJobName"], own["RefitTrainingJobName"]);
    assert_eq!(refit["TunedHyperParameters"], buy["TunedHyperParameters"]);

    let text = world.hyperband(&["describe", "t"]).with_code(0).out;
    let row = text.lines().find(|line| line.contains("best buy, ")).unwrap_or_default();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!((cells[0], cells[2]), (buy["Trial"].to_string().as_str(), "1"), "{text}");
    let shown = document(&world.hyperband(&["report", "t", "-o", "-"]).with_code(0).out);
    assert_eq!(shown["head"]["costs"]["BestBuy"], *buy);
}

#[test]
fn each_job_is_a_process_for_each_instance_of_its_trial() {
    let world = World::new(QUICK);
    world.write_request("request.json", &sized());
    let result = world.run(&["--output", "json"]).with_code(0).json();
    let jobs = result["TrainingJobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 6);
    let mut counts = Vec::new();
    for job in jobs {
        let count = job["TunedHyperParameters"]["InstanceCount"].as_str().unwrap();
        let folder = world.path(".hyperband/training/jobs").join(job["TrainingJobName"].as_str().unwrap());
        let hosts = fs::read_dir(folder.join("hosts")).unwrap().count();
        assert_eq!(hosts.to_string(), count, "{job}");
        let sent = fs::read_to_string(folder.join("hosts/algo-1/input/config/hyperparameters.json")).unwrap();
        let sent: Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(sent["batch_size"], (32 * hosts).to_string(), "{sent}");
        assert_eq!(sent.get("InstanceCount"), None, "{sent}");
        counts.push(hosts);
    }
    assert!(counts.contains(&1) && counts.contains(&2), "{counts:?}");

    let described = world.hyperband(&["describe", "t"]).with_code(0).out;
    let line = described.lines().find(|line| line.starts_with("INSTANCES")).unwrap_or_default();
    let head: Vec<&str> = line.split("  ").map(str::trim).filter(|title| !title.is_empty()).collect();
    let titles =
        ["INSTANCES", "TRIALS", "BEST", "EPOCH", "EPOCH USD", "TRAINING", "TRAINING USD", "SPEED-UP"];
    assert_eq!(head, titles, "{described}");
    let own = &world.hyperband(&["describe", "t", "--output", "json"]).with_code(0).json();
    let sizes = own["Controller"]["ClusterSizes"].as_array().unwrap();
    let of = |member: &str| sizes.iter().map(|size| size[member].clone()).collect::<Vec<_>>();
    assert_eq!(of("InstanceCount"), [1, 2]);
    let trials: u64 = of("Trials").iter().filter_map(Value::as_u64).sum();
    assert_eq!((trials, &sizes[0]["SpeedUp"]), (6, &json!(1.0)), "{sizes:?}");
    assert!(sizes[1]["UsdPerTraining"].as_f64() > sizes[0]["UsdPerTraining"].as_f64(), "{sizes:?}");

    let shown = document(&world.hyperband(&["report", "t", "-o", "-"]).with_code(0).out);
    assert_eq!(shown["head"]["costs"]["ClusterSizes"], own["Controller"]["ClusterSizes"]);
    let replayed = world.hyperband(&["replay", "t"]).with_code(0);
    assert!(replayed.out.ends_with(" rulings: identical\n"), "{replayed:?}");
}
