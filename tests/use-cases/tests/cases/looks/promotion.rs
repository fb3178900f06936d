//! The explanation of trials that are promoted.

use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use tuning::log::fact::{JobEnd, JobPhase};
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::TrialId;
use use_cases::explain::explain;
use wire::explain::{Explanation, Kind};

use super::world::{World, now, request};

/// Trials 0 and 2 of bracket 0 (rungs at 4 and 9), trials 1 and 3 of bracket 1 (at 9).
fn promoting() -> World {
    World::of(MemoryTable::new(), &promoting_request())
}

fn promoting_request() -> Value {
    let mut body = request("t", 4);
    let config = &mut body["HyperParameterTuningJobConfig"];
    config["StrategyConfig"]["HyperbandStrategyConfig"]["MinResource"] = json!(4);
    config["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(5);
    let controller = &mut body["Controller"];
    controller["ReductionFactor"] = json!(2);
    controller["RungExecution"] = json!("Promote");
    controller["Scheduling"] = json!("Synchronous");
    controller["ResourceHyperParameter"] = json!("epochs");
    body
}

fn trained(world: &mut World, trial: u32, epoch: u64, value: f64, seconds: u64) {
    world.phase(trial, JobPhase::Training);
    world.logged(trial, &[(epoch, value)]);
    world.billed(trial, JobEnd::Completed, seconds);
}

fn explained(world: &World, trial: u32) -> Explanation {
    let explanation = now(explain(&world.store, &world.id, &trial.to_string())).unwrap().unwrap();
    let own = format!("{}-{trial}-", world.id);
    let mut names = explanation.entries.iter().filter_map(|entry| entry.training_job_name.as_ref());
    assert!(names.all(|name| name.starts_with(&own)), "another trial's entry: {explanation:#?}");
    explanation
}

fn said(explanation: &Explanation, kind: Kind) -> Vec<&str> {
    let entries = explanation.entries.iter().filter(|entry| entry.kind == kind);
    entries.map(|entry| entry.says.as_str()).collect()
}

#[test]
fn the_choice_of_auto_is_explained() {
    let mut body = request("t", 4);
    let config = &mut body["HyperParameterTuningJobConfig"];
    config["StrategyConfig"]["HyperbandStrategyConfig"]["MaxResource"] = json!(81);
    config["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(100);
    body["TrainingJobDefinition"]["CheckpointConfig"] = json!({"S3Uri": "s3://example-bucket/checkpoints"});
    body["Controller"]["ResourceHyperParameter"] = json!("epochs");
    body["Controller"]["MaxCostUsd"] = json!(300);
    let world = World::of(MemoryTable::new(), &body);
    let explanation = explained(&world, 0);
    let execution = explanation.rung_execution.unwrap();
    let expect = "Promote, because with 180 s per start-up and 60 s per epoch, MaxCostUsd and the training jobs pay for about ";
    assert!(execution.starts_with(expect), "{execution}");
}

#[test]
fn a_promotion_is_explained_with_the_other_trials_of_the_rung() {
    let mut world = promoting();
    trained(&mut world, 0, 4, 0.5, 10);
    let waiting = explained(&world, 0);
    assert_eq!(waiting.now.as_deref(), Some("it waits at rung 0 for a promotion"));
    trained(&mut world, 2, 4, 0.6, 20);
    let promoted = explained(&world, 2);
    let rung = promoted.entries.iter().find(|entry| entry.kind == Kind::Promoted).unwrap();
    let compared = rung.rung.as_ref().unwrap();
    assert_eq!(
        (compared.level, compared.value, compared.rank, compared.arrived),
        (Epochs(4), Some(0.6), 1, 2)
    );
    assert_eq!(compared.rule, "rank 1 of 2 trials that ended there; the best 1 may continue");
    let others: Vec<_> =
        compared.arrivals.iter().map(|other| (other.trial, other.value, other.went_on)).collect();
    assert_eq!(others, [(TrialId(2), Some(0.6), true), (TrialId(0), Some(0.5), false)]);
    assert!(promoted.training_jobs[1].why.contains("promoted to rung 1"), "{:?}", promoted.training_jobs);
    assert_eq!(
        said(&promoted, Kind::RungReached),
        ["reached rung 0 at epoch 4 and waits for a promotion; 20 s billed, $0.2000"]
    );
    assert_eq!(rung.says, format!("promoted from rung 0 to train to epoch 9: {}", compared.rule));
    let jobs = promoted.training_jobs.iter().map(|job| (job.rung.0, job.attempt));
    assert_eq!(jobs.collect::<Vec<_>>(), [(0, 1), (1, 2)]);
}

#[test]
fn a_trial_that_was_not_promoted_is_explained() {
    let mut world = promoting();
    trained(&mut world, 0, 4, 0.5, 10);
    trained(&mut world, 2, 4, 0.6, 20);
    let out = explained(&world, 0);
    let says = said(&out, Kind::TrialFinished);
    assert_eq!(
        says,
        [
            "the trial is over: not promoted from rung 0: rank 2 of 2 trials that ended there; the best 1 may continue"
        ]
    );
}

#[test]
fn repeated_epochs_are_explained() {
    let mut world = promoting();
    trained(&mut world, 0, 4, 0.5, 10);
    trained(&mut world, 2, 4, 0.6, 20);
    world.phase(2, JobPhase::Training);
    world.logged(2, &[(1, 0.3)]);
    let says = explained(&world, 2);
    let repeated = said(&says, Kind::ResourceRepeated);
    assert!(
        repeated[0].contains("it started at epoch 0 although the trial had reached epoch 4"),
        "{repeated:?}"
    );
    assert_eq!(said(&explained(&world, 0), Kind::ResourceRepeated), Vec::<&str>::new());
}

#[test]
fn the_promotion_of_the_trial_that_reached_the_target_is_explained() {
    let mut body = promoting_request();
    body["HyperParameterTuningJobConfig"]["TuningJobCompletionCriteria"] =
        json!({"TargetObjectiveMetricValue": 0.55});
    let mut world = World::of(MemoryTable::new(), &body);
    trained(&mut world, 0, 4, 0.6, 10);
    let expected =
        "promoted from rung 0 to train to epoch 9: it reached the target value, so it trains to its end";
    assert_eq!(said(&explained(&world, 0), Kind::Promoted), [expected]);
    let stopped = "stop ordered: trial 0 reached the target value and trains to its end";
    assert_eq!(said(&explained(&world, 1), Kind::StopOrdered), [stopped]);
}
