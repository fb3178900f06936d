//! The rungs and the completion in the description of a tuning.

use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use tuning::log::fact::{JobEnd, JobPhase};
use tuning::log::reasons::EndReason;
use tuning::state::Status;
use use_cases::describe::{Place, describe};

use super::world::{World, now, request};

fn place() -> Place {
    Place::of_arn("arn:aws:lambda:us-east-1:1:function:f")
}

fn brackets(world: &World) -> Value {
    let shown = now(describe(&world.store, &place(), &world.id)).unwrap().unwrap();
    json!(shown.controller.brackets)
}

/// Trials 0 and 2 are in bracket 0, trial 1 in bracket 1.
#[test]
fn the_last_rung_of_a_bracket_has_no_comparison() {
    let mut world = World::new(17);
    for trial in 0..3 {
        world.phase(trial, JobPhase::Training);
        world.logged(trial, &[(1, 0.1), (3, 0.3), (9, 0.9)]);
        world.billed(trial, JobEnd::Completed, 9);
    }
    let compared =
        |resource, arrived, went_on| json!({"Resource": resource, "Arrived": arrived, "WentOn": went_on});
    let end = json!({"Resource": 9});
    let expected = json!([
        {"TrialsStarted": 9, "Rungs": [compared(1, 2, 1), compared(3, 1, 1), end]},
        // Its trial has a rival of bracket 0, with the same value.
        {"TrialsStarted": 5, "Rungs": [compared(3, 1, 0), end]},
        {"TrialsStarted": 3, "Rungs": [end]},
    ]);
    assert_eq!(brackets(&world), expected);
}

#[test]
fn with_promotion_the_last_rung_has_no_comparison_either() {
    let mut body = request("t", 22);
    body["Controller"]["RungExecution"] = json!("Promote");
    body["Controller"]["ResourceHyperParameter"] = json!("epochs");
    let shown = brackets(&World::of(MemoryTable::new(), &body));
    let open = json!({"Resource": 1, "Arrived": 0, "WentOn": 0, "Waiting": 0});
    assert_eq!(shown[0]["Rungs"][0], open);
    assert_eq!(shown[0]["Rungs"][2], json!({"Resource": 9}));
}

/// `CompleteOnConvergence`: 50 results in a row did not improve the best value.
#[test]
fn a_tuning_that_converged_shows_when() {
    let mut body = request("t", 60);
    let config = &mut body["HyperParameterTuningJobConfig"];
    config.as_object_mut().unwrap().remove("StrategyConfig");
    config["Strategy"] = "Random".into();
    config["ResourceLimits"]["MaxParallelTrainingJobs"] = 1.into();
    config["TuningJobCompletionCriteria"] =
        json!({"ConvergenceDetected": {"CompleteOnConvergence": "Enabled"}});
    let mut world = World::of(MemoryTable::new(), &body);
    let details = |world: &World| {
        let shown = now(describe(&world.store, &place(), &world.id)).unwrap().unwrap();
        shown.tuning_job_completion_details.map(|details| (details.not_improving, details.converged_ms))
    };
    for trial in 0..51 {
        assert_eq!(details(&world), Some((u32::max(trial, 1) - 1, None)));
        world.phase(trial, JobPhase::Training);
        world.logged(trial, &[(1, 0.5)]);
        world.billed(trial, JobEnd::Completed, 5);
    }
    let Status::Ended { why: EndReason::NotImproving, at } = world.state().status else {
        panic!("{:?}", world.state().status)
    };
    assert_eq!(details(&world), Some((50, Some(at.0))));
}

/// The user's limit of trials without an improvement is no sign of convergence.
#[test]
fn a_tuning_that_ended_by_the_limit_of_the_user_has_not_converged() {
    let mut body = request("t", 9);
    let config = &mut body["HyperParameterTuningJobConfig"];
    config.as_object_mut().unwrap().remove("StrategyConfig");
    config["Strategy"] = "Random".into();
    config["ResourceLimits"]["MaxParallelTrainingJobs"] = 1.into();
    config["TuningJobCompletionCriteria"] =
        json!({"BestObjectiveNotImproving": {"MaxNumberOfTrainingJobsNotImproving": 3}});
    let mut world = World::of(MemoryTable::new(), &body);
    for trial in 0..4 {
        world.phase(trial, JobPhase::Training);
        world.logged(trial, &[(1, 0.5)]);
        world.billed(trial, JobEnd::Completed, 5);
    }
    let Status::Ended { why: EndReason::NotImproving, .. } = world.state().status else {
        panic!("{:?}", world.state().status)
    };
    let shown = now(describe(&world.store, &place(), &world.id)).unwrap().unwrap();
    let details = shown.tuning_job_completion_details.unwrap();
    assert_eq!((details.not_improving, details.converged_ms), (3, None));
}
