//! `hyperband plan`.

use std::fs::File;

use serde_json::json;

use crate::world::{QUICK, World, ended, exists, request};

#[test]
fn a_plan_is_shown_without_starting_anything() {
    let world = World::new(QUICK);
    let out = world.hyperband(&["plan", "request.json", "--epoch-seconds", "60"]).with_code(0).out;
    for part in [
        "t: Hyperband from 1 to 9 epochs, reduction factor 3\n",
        "      0     0       3       5\n",
        "one full set of these brackets, at most 2 jobs at once (MaxParallelTrainingJobs); 3 min 0 s per start-up, 1 min 0 s per epoch\n",
        "Stop (this request)     5 ",
        "Promote                 6      24 ",
        "is cheaper here",
        "rungs         Auto: Stop, because without ResourceHyperParameter a job cannot end at a rung\n",
        "this request  at most 6 training jobs; a full set has 17\n",
        "Subscription, typical           5 s   < 0.1  $0.0002\n",
        "Subscription, documented  3 min 2 s     3.0  $0.0059\n",
        "worst case    $0.0288 per job, $0.1725 in total (cap $5.0000)\n",
        "brackets      6 trials in the 1 of 3 brackets that they fill\n",
    ] {
        assert!(out.contains(part), "{part} in {out}");
    }
    assert!(!out.contains('\x1b'), "escape codes in a pipe");
    assert!(!exists(&world.path(".hyperband")), "nothing is stored");
    let again = world.hyperband(&["plan", "request.json", "--epoch-seconds", "60"]).with_code(0).out;
    assert_eq!(out, again, "the plan is deterministic");
}

#[test]
fn a_plan_can_be_printed_as_json() {
    let world = World::new(QUICK);
    let arguments =
        ["plan", "request.json", "--epoch-seconds", "0.5", "--startup-seconds", "2", "--output", "json"];
    let shown = world.hyperband(&arguments).with_code(0).json();
    assert_eq!((&shown["EpochSeconds"], &shown["StartupSeconds"]), (&json!(0.5), &json!(2)));
    assert_eq!(
        shown["Brackets"][0],
        json!({
            "Trials": 5, "TrialsOfRequest": 6, "Rungs": [{"Resource": 3, "Trials": 5}, {"Resource": 9, "Trials": 1}],
        })
    );
    let promote = &shown["FullSet"]["Promote"];
    // The request has no CheckpointConfig: promoted trials restart.
    assert_eq!((&promote["TrainingJobs"], &promote["Epochs"]), (&json!(6), &json!(24)));
    assert_eq!(promote["BilledSeconds"], json!(6 * 2 + 12));
    assert_eq!(shown["Expected"]["TrainingJobs"], 6);
    assert_eq!((&shown["WorstCaseJobUsd"], &shown["MaxCostUsd"]), (&json!(0.02875), &json!(5)));
    assert_eq!((&shown["AllBrackets"], &shown["FullSetTrainingJobs"]), (&json!(3), &json!(17)));
    assert_eq!(shown["RungExecution"], "Stop");
    let reason = shown["RungExecutionReason"].as_str().unwrap();
    assert!(reason.contains("without ResourceHyperParameter"), "{reason}");
    // Six epochs are left after the first rung.
    let late = &shown["LateStops"];
    assert_eq!(late["Subscription"]["Typical"]["TrainedSeconds"], json!(3));
    assert_eq!(
        late["Polling"]["Typical"],
        json!({
            "DelaySeconds": 62, "TrainedSeconds": 3, "TrainedEpochs": 6, "CostUsd": 0.000_096,
        })
    );
    assert_eq!(shown["Warnings"], json!([]));
}

#[test]
fn without_times_and_prices_the_plan_says_how_to_add_them() {
    let world = World::new(QUICK);
    let mut unpriced = request("t");
    unpriced["Controller"] = json!({});
    world.write_request("request.json", &unpriced);
    let mut command = world.command(&["plan", "-"]);
    command.stdin(File::open(world.path("request.json")).unwrap());
    let out = ended(command.spawn().unwrap()).with_code(0).out;
    assert!(out.contains("add --epoch-seconds for times"), "{out}");
    assert!(
        out.contains("set Controller.InstancePricesUsdPerHour to {\"ml.m5.large\": <USD per hour>}"),
        "{out}"
    );
    assert!(!out.contains('$'), "{out}");
}

#[test]
fn an_invalid_request_or_time_is_rejected() {
    let world = World::new(QUICK);
    let mut bad = request("t");
    bad["Controller"]["ReductionFactor"] = json!(1);
    world.write_request("bad.json", &bad);
    let ended = world.hyperband(&["plan", "bad.json"]).with_code(2);
    assert!(ended.err.contains("Controller.ReductionFactor"), "{ended:?}");
    for seconds in ["x", "1e9", "99999999"] {
        let ended = world.hyperband(&["plan", "request.json", "--epoch-seconds", seconds]).with_code(2);
        assert!(ended.err.contains("--epoch-seconds"), "{ended:?}");
    }
}

/// `plan` accepted what `check` refuses.
#[test]
fn regression_a_cap_that_no_job_fits_is_refused() {
    let world = World::new(QUICK);
    let mut poor = request("t");
    poor["Controller"]["MaxCostUsd"] = json!(0.0001);
    world.write_request("poor.json", &poor);
    let planned = world.hyperband(&["plan", "poor.json"]).with_code(2);
    assert!(planned.err.contains("Invalid MaxCostUsd 0.0001: expected at least"), "{planned:?}");
    assert_eq!(planned.err, world.hyperband(&["check", "poor.json"]).with_code(2).err);
}
