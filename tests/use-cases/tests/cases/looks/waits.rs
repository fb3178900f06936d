//! What a tuning waits for, and its best model and best training job, as Describe shows them.

use std::sync::Arc;

use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase};
use tuning::unit::ids::TrialId;
use tuning::unit::time::Time;
use use_cases::describe::describe;
use use_cases::explain::explain;
use use_cases::lookup;
use use_cases::store::Store;
use wire::describe::{TuningJob, WaitingFor};
use wire::explain::Kind;
use wire::sample;
use wire::stored::IndexRow;

use super::world::{BEGIN, World, now, request};
use crate::support::{place, put};

fn described(world: &World) -> TuningJob {
    now(describe(&world.store, &place(), &world.id)).unwrap().unwrap()
}

fn waiting(world: &World) -> Option<WaitingFor> {
    described(world).controller.waiting_for
}

fn deferred(job: JobKey, until: i64, reason: &str, quota_exceeded: bool) -> Fact {
    Fact::ActionDeferred { job, not_before: Time(until), reason: reason.to_owned(), quota_exceeded }
}

#[test]
fn a_start_that_is_not_performed_for_long_is_shown() {
    let mut world = World::new(2);
    world.phase(1, JobPhase::Training);
    assert_eq!(waiting(&world), None, "it was ordered a second ago");
    world.now += 20_000;
    world.fact(Fact::TimePassed);
    let (reason, since_ms) = ("Starts".to_owned(), BEGIN);
    let expected = WaitingFor { reason, since_ms, next_attempt_ms: None, message: None };
    assert_eq!(waiting(&world), Some(expected));
    world.phase(0, JobPhase::Training);
    assert_eq!(waiting(&world), None, "both jobs run");
}

#[test]
fn a_deferred_start_is_shown_at_once_with_its_reason() {
    let mut world = World::new(1);
    world.fact(deferred(world.job(0), BEGIN + 40_000, "the service is busy", false));
    let expected = WaitingFor {
        reason: "Starts".to_owned(),
        since_ms: BEGIN,
        next_attempt_ms: Some(BEGIN + 40_000),
        message: Some("the service is busy".to_owned()),
    };
    assert_eq!(waiting(&world), Some(expected));
}

#[test]
fn a_tuning_that_is_stopped_does_not_wait_for_a_quota() {
    let mut world = World::new(1);
    world.fact(deferred(world.job(0), BEGIN + 40_000, "no more instances of this type", true));
    let expected = WaitingFor {
        reason: "Quota".to_owned(),
        since_ms: BEGIN + 1_000,
        next_attempt_ms: None,
        message: Some("no more instances of this type".to_owned()),
    };
    assert_eq!(waiting(&world), Some(expected));
    world.fact(Fact::StopRequested);
    assert_eq!(waiting(&world), None);
}

/// Ends the trial's job. Its first bill is known, but not confirmed.
fn billed_once(world: &mut World, trial: u32, seconds: u64) {
    let job = world.job(trial);
    let (started, phase) = (world.state().job(job).unwrap().started(), JobPhase::Ended(JobEnd::Completed));
    let ended = Some(Time(world.now + 1_000));
    world.fact(Fact::JobStateChanged { job, phase, started: None, ended, message: None });
    world.fact(Fact::JobDescribed {
        job,
        end: JobEnd::Completed,
        started,
        ended,
        billable_seconds: seconds,
        message: None,
        interruptions: 0,
    });
    world.fact(Fact::RestRead { job });
}

#[test]
fn the_last_bills_delay_the_end_of_a_tuning_only_after_its_last_trial() {
    let mut world = World::new(2);
    for trial in 0..2 {
        world.phase(trial, JobPhase::Training);
        world.logged(trial, &[(9, 0.5)]);
    }
    let first_read = world.now + 1_000;
    billed_once(&mut world, 0, 5);
    assert_eq!(waiting(&world), None, "a trial trains");
    billed_once(&mut world, 1, 5);
    let (reason, since_ms) = ("Bills".to_owned(), first_read);
    let expected = WaitingFor { reason, since_ms, next_attempt_ms: None, message: None };
    assert_eq!(waiting(&world), Some(expected));
}

/// A bill can rise after its trial has ended. The explanation of another trial does not have it.
#[test]
fn a_higher_bill_of_an_ended_trial_is_explained_and_replaces_the_first_one() {
    let mut world = World::new(2);
    let job = world.job(0);
    world.phase(0, JobPhase::Training);
    world.logged(0, &[(9, 0.5)]);
    let started = world.state().job(job).unwrap().started();
    billed_once(&mut world, 0, 5);
    world.fact(Fact::JobDescribed {
        job,
        end: JobEnd::Completed,
        started,
        ended: Some(Time(world.now)),
        billable_seconds: 8,
        message: None,
        interruptions: 0,
    });
    let said = |trial: &str| {
        let explanation = now(explain(&world.store, &world.id, trial)).unwrap().unwrap();
        let booked = explanation.entries.iter().filter(|entry| entry.kind == Kind::BillBooked);
        let says: Vec<String> = booked.map(|entry| entry.says.clone()).collect();
        let costs = explanation.training_jobs.iter().map(|job| (job.billable_seconds, job.cost_usd));
        (says, costs.collect::<Vec<_>>())
    };
    let cost = Some(tuning::unit::money::MicroUsd(80_000));
    assert_eq!(said("0"), (vec!["its bill shows 8 billed s ($0.0800)".to_owned()], vec![(Some(8), cost)]));
    assert_eq!(said("1"), (Vec::new(), vec![(None, None)]));
}

/// Creates a tuning with a refit, which is ordered: its only trial has completed.
fn refitting() -> World {
    let mut body = sample::with(request("t", 2), json!({"Controller": {"Refit": "Best"}}));
    body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxParallelTrainingJobs"] = 1.into();
    let mut world = World::of(MemoryTable::new(), &body);
    world.phase(0, JobPhase::Training);
    world.logged(0, &[(9, 0.9)]);
    world.billed(0, JobEnd::Completed, 10);
    world
}

#[test]
fn the_best_model_is_that_of_the_completed_refit() {
    let mut world = refitting();
    let refit = world.state().refit.unwrap();
    let model = |world: &World| {
        let model = described(world).controller.best_model.unwrap();
        (TrialId(model.trial), model.training_job_name)
    };
    let first = JobKey::new(0, 0, 1);
    assert_eq!(model(&world), (first.trial, world.name(first)));
    world.phase(refit.trial.0, JobPhase::Training);
    world.logged(refit.trial.0, &[(9, 0.8)]);
    world.billed(refit.trial.0, JobEnd::Completed, 10);
    assert_eq!(model(&world), (refit.trial, world.name(refit)));
}

#[test]
fn the_best_model_is_that_of_the_best_job_if_the_refit_failed() {
    let mut world = refitting();
    let refit = world.state().refit.unwrap().trial;
    world.phase(refit.0, JobPhase::Training);
    world.billed(refit.0, JobEnd::AlgorithmError, 10);
    assert_eq!(described(&world).controller.best_model.unwrap().trial, 0);
}

#[test]
fn a_refit_that_trains_too_long_is_explained() {
    let mut world = refitting();
    let refit = world.state().refit.unwrap().trial;
    world.phase(refit.0, JobPhase::Training);
    world.logged(refit.0, &[(10, 0.8)]);
    let explanation = now(explain(&world.store, &world.id, &refit.to_string())).unwrap().unwrap();
    let stop = explanation.entries.iter().find(|entry| entry.kind == Kind::StopOrdered).unwrap();
    assert_eq!(
        stop.says,
        "stop ordered: the training job trained beyond its last epoch, or did not end in time after it, so its model may \
         be missing"
    );
}

fn trained(world: &mut World, value: f64) {
    world.phase(0, JobPhase::Training);
    world.logged(0, &[(9, value)]);
    world.billed(0, JobEnd::Completed, 5);
}

fn child(name: &str) -> Value {
    let changes = json!({"WarmStartConfig": {
        "ParentHyperParameterTuningJobs": [{"HyperParameterTuningJobName": "parent"}],
        "WarmStartType": "IdenticalDataAndAlgorithm",
    }});
    sample::with(request(name, 1), changes)
}

#[test]
fn the_overall_best_job_is_the_better_one_of_a_tuning_and_its_parent() {
    let mut parent = World::of(MemoryTable::new(), &request("parent", 1));
    trained(&mut parent, 0.7);
    parent.fact(Fact::TimePassed);
    for (name, value, expected) in [("worse", 0.5, "parent"), ("better", 0.9, "better")] {
        let mut world = World::of(parent.table.clone(), &child(name));
        let overall = |world: &World| {
            let best = described(world).overall_best_training_job.unwrap();
            (best.tuning_job_name.unwrap(), best.final_objective.unwrap().value)
        };
        assert_eq!(overall(&world), ("parent".to_owned(), 0.7), "before its first result");
        trained(&mut world, value);
        assert_eq!(overall(&world), (expected.to_owned(), f64::max(value, 0.7)));
    }
}

/// The name of a deleted parent is free for another tuning.
#[test]
fn a_later_tuning_with_the_name_of_a_parent_is_no_parent() {
    let mut parent = World::of(MemoryTable::new(), &request("parent", 1));
    trained(&mut parent, 0.7);
    parent.fact(Fact::TimePassed);
    let world = World::of(parent.table.clone(), &child("child"));
    let table = world.table.copy();
    let row = now(lookup::find(&world.store, "parent")).unwrap();
    put(&table, IndexRow { created: Time(BEGIN + 1), ..row }.row());
    let shown = now(describe(&Store::new(Arc::new(table)), &place(), &world.id)).unwrap().unwrap();
    assert_eq!(shown.overall_best_training_job, None);
}
