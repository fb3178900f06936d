//! `hyperband run` from beginning to end.

use std::io::Read;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::{QUICK, World, ended, request};

#[test]
fn run_prints_its_result_as_text() {
    let world = World::new(QUICK);
    let ended = world.run(&[]).with_code(0);
    assert!(ended.out.starts_with("t: Completed, all training jobs were launched\n"), "{ended:?}");
    for part in
        ["best job", "validation:auc = 0.9", "kind=<script>", "6: ", ", cap $5.0000", "hyperband describe t"]
    {
        assert!(ended.out.contains(part), "{part} in {}", ended.out);
    }
    for part in [
        "t: up to 6 training jobs, 2 in parallel",
        "trial 0: job ordered",
        "rung 0 at epoch",
        "best so far",
        "s billed, $",
    ] {
        assert!(ended.err.contains(part), "{part} in {}", ended.err);
    }
    assert!(ended.err.trim_end().ends_with("the tuning has ended: all training jobs were launched"));
    assert!(!format!("{}{}", ended.out, ended.err).contains('\x1b'), "escape codes in a pipe");
    assert_eq!(world.processes(), Vec::<String>::new());
    let events = world.read(".hyperband/events.jsonl");
    // The file also has events about trials.
    let changes = events.lines().filter(|line| line.contains("HyperParameter Tuning Job State Change"));
    let statuses: Vec<&str> =
        changes
            .map(|line| {
                if line.contains(r#""HyperParameterTuningJobStatus":"InProgress""#) {
                    "begun"
                } else {
                    "ended"
                }
            })
            .collect();
    assert_eq!(statuses, ["begun", "ended"], "{events}");
}

#[test]
fn run_prints_its_result_as_json() {
    let world = World::new(QUICK);
    let ended = world.run(&["--output", "json", "--name", "other"]).with_code(0);
    let result = ended.json();
    let members: Vec<&String> = result.as_object().unwrap().keys().collect();
    assert_eq!(members, ["TrainingJobs", "TuningJob"]);
    let tuning = &result["TuningJob"];
    assert_eq!(tuning["HyperParameterTuningJobName"], "other");
    assert_eq!(tuning["HyperParameterTuningJobStatus"], "Completed");
    assert_eq!(tuning["Controller"]["EndReason"], "MaxJobs");
    assert_eq!(tuning["Controller"]["CapUsd"], 5);
    assert_eq!(tuning["Controller"]["ReservedUsd"], 0);
    assert!(tuning["Controller"]["SpentUsd"].as_f64().unwrap() > 0.0);
    let jobs = result["TrainingJobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 6);
    let name = |job: &Value| job["TrainingJobName"].as_str().unwrap().to_owned();
    assert!(
        jobs.iter().all(|job| name(job).starts_with("other-") && job["Controller"]["CostUsd"].is_number())
    );
    assert!(jobs.iter().map(name).any(|job| job == name(&tuning["BestTrainingJob"])));
}

#[test]
fn the_request_can_come_from_standard_input() {
    let world = World::new(QUICK);
    let mut command = world.command(&["run", "-", "--data-dir", "elsewhere/deep", "--", "sh", "train.sh"]);
    command.stdin(std::fs::File::open(world.path("request.json")).unwrap());
    let ended = ended(command.spawn().unwrap()).with_code(0);
    assert!(ended.out.contains("hyperband describe t --data-dir elsewhere/deep"), "{ended:?}");
    world.hyperband(&["describe", "t", "--data-dir", "elsewhere/deep"]).with_code(0);
    world.hyperband(&["describe", "t"]).with_code(2);
}

#[test]
fn a_failed_tuning_has_exit_code_1() {
    let world = World::new("echo 'no such data' > $SM_ROOT/output/failure; exit 3");
    let ended = world.run(&[]).with_code(1);
    assert!(ended.out.starts_with("t: Failed, "), "{ended:?}");
    assert!(ended.out.contains("no such data"), "{ended:?}");
    let again = world.run(&["--output", "json"]).with_code(1);
    assert_eq!(again.json()["TuningJob"]["HyperParameterTuningJobStatus"], "Failed");
}

#[test]
fn without_a_price_the_result_has_no_cost() {
    let world = World::new(QUICK);
    let mut request = request("t");
    request["Controller"] = json!({"EpochPattern": r"^\[([0-9]+)\]", "EpochBase": 0});
    world.write_request("request.json", &request);
    let ended = world.run(&[]).with_code(0);
    assert!(!ended.out.contains("\n  cost ") && !ended.out.contains("$0"), "{ended:?}");
    assert!(!ended.err.contains("$0"), "{ended:?}");
}

#[test]
fn a_closed_pipe_does_not_end_the_tuning() {
    let world = World::new(QUICK);
    let mut child = world.start(&[]);
    // Closes standard output at once, and standard error after its first byte.
    drop(child.stdout.take());
    let mut progress = child.stderr.take().unwrap();
    progress.read_exact(&mut [0]).unwrap();
    drop(progress);
    let ended = ended(child);
    assert_eq!(ended.code, 0);
    let described = world.hyperband(&["describe", "t", "--output", "json"]).with_code(0).json();
    assert_eq!(described["HyperParameterTuningJobStatus"], "Completed");
    let mut list = world.command(&["list"]);
    list.stdout(Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap()));
    assert_eq!(crate::world::ended(list.spawn().unwrap()).code, 0);
}
