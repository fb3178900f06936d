//! Kept instances: deferred actions, and actions whose record never reached the actuator, are performed by sweeps.

use serde_json::json;
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, Recorded};
use tuning::state::State;
use tuning::unit::time::{Millis, Time};
use use_cases::store::Store;
use use_cases::sweep::{CallKind, Rate};
use wire::names::training_job_name;
use wire::stored::RING_PREFIX;

use super::world::{MINUTE, SECOND, World, now, request, unpaced};

fn state(world: &World, id: &str) -> State {
    (*now(Store::new(std::sync::Arc::new(world.clone())).load(id)).unwrap().unwrap().state).clone()
}

fn fact(world: &World, id: &str, key: &str, fact: Fact) {
    world.pass(SECOND);
    let at = world.lock().now;
    world.decide(id, &[Recorded { key: key.to_owned(), at: Time(at), fact }]);
}

fn began(world: &World, id: &str, job: JobKey) {
    world.create_job(&training_job_name(id, job), "ours");
    let started = Some(Time(world.lock().now + SECOND));
    let phase = JobPhase::Training;
    let began = Fact::JobStateChanged { job, phase, started, ended: None, message: None };
    fact(world, id, &format!("began#{job}"), began);
}

/// Creates a tuning of three jobs, one at a time. The first one has completed, and its instances are kept.
fn kept() -> (World, String, JobKey) {
    let world = World::new();
    let mut body = request("t", 1);
    body["TrainingJobDefinition"]["ResourceConfig"]["KeepAlivePeriodInSeconds"] = json!(600);
    body["TrainingJobDefinition"]["StoppingCondition"]["MaxRuntimeInSeconds"] = json!(600);
    body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(3);
    body["Controller"] = json!({"MaxCostUsd": 100});
    let id = world.submit_request(&body);
    let [first] = world.live(&id)[..] else { panic!("one at a time") };
    began(&world, &id, first);
    let at = world.lock().now + SECOND;
    let described = Fact::JobDescribed {
        job: first,
        end: JobEnd::Completed,
        started: Some(Time(at - SECOND)),
        ended: Some(Time(at)),
        billable_seconds: 1,
        message: None,
        interruptions: 0,
    };
    let name = training_job_name(&id, first);
    world.lock().jobs.get_mut(&name).unwrap().status = "Completed";
    world.lock().jobs.get_mut(&name).unwrap().kept = Some(true);
    fact(&world, &id, "described", described);
    fact(&world, &id, "read", Fact::RestRead { job: first });
    fact(&world, &id, "confirmed", Fact::BillsConfirmed { bills: vec![(first, 1)] });
    assert_eq!(state(&world, &id).money.pools.len(), 1);
    (world, id, first)
}

fn call_kinds(world: &World, name: &str) -> Vec<CallKind> {
    world.calls().into_iter().filter(|call| call.name == name).map(|call| call.sort).collect()
}

#[test]
fn a_release_is_performed_and_polled_until_it_is_done() {
    let (world, id, first) = kept();
    let name = training_job_name(&id, first);
    world.stop_tuning(&id);
    assert!(state(&world, &id).money.pools[0].released);
    world.sweep(unpaced());
    assert_eq!(call_kinds(&world, &name), [CallKind::Describe, CallKind::Stop]);
    world.sweep(unpaced());
    assert_eq!(call_kinds(&world, &name), [], "not before it is due");
    world.pass(MINUTE);
    assert_eq!(world.sweep(unpaced()).settled.reads, 1);
    assert_eq!(call_kinds(&world, &name), [CallKind::Describe]);
    world.decide(&id, &[]);
    assert!(state(&world, &id).money.pools.is_empty(), "its end was stored and booked");
    world.pass(MINUTE);
    world.sweep(unpaced());
    assert_eq!(call_kinds(&world, &name), []);
}

#[test]
fn a_possibly_reused_pool_is_read_and_a_lost_outcome_causes_a_ring() {
    let (world, id, first) = kept();
    let name = training_job_name(&id, first);
    let [second] = world.live(&id)[..] else { panic!("one at a time") };
    began(&world, &id, second);
    assert!(state(&world, &id).money.pools[0].reading);
    world.lock().jobs.get_mut(&name).unwrap().kept = Some(false);
    assert_eq!(world.sweep(unpaced()).settled.reads, 1);
    assert_eq!(call_kinds(&world, &name), [CallKind::Describe]);
    let rung = || world.lock().table.rows().iter().any(|row| row.key.pk.starts_with(RING_PREFIX));
    assert!(!rung());
    // The decider missed the outcome: the next sweep finds the action settled while the state still waits.
    world.pass(SECOND);
    world.sweep(unpaced());
    assert!(rung() && call_kinds(&world, &name).is_empty());
    world.decide(&id, &[]);
    assert!(state(&world, &id).money.pools.is_empty());
}

#[test]
fn a_release_without_calls_left_waits_for_the_next_sweep() {
    let (world, id, first) = kept();
    let name = training_job_name(&id, first);
    world.stop_tuning(&id);
    let mut limits = unpaced();
    limits.calls.stop = Rate { per_sweep: 0, every_ms: Millis(0) };
    assert!(world.sweep(limits).left >= 1);
    assert_eq!(call_kinds(&world, &name), []);
    world.sweep(unpaced());
    assert_eq!(call_kinds(&world, &name), [CallKind::Describe, CallKind::Stop]);
}
