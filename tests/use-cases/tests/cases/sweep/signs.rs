//! Signs of life: while a job waits for its instances, sweeps report that it still exists.

use std::sync::Arc;

use serde_json::json;
use tuning::log::fact::{Fact, JobPhase, MetricLine, Recorded};
use tuning::unit::time::Time;
use use_cases::store::Store;
use use_cases::sweep::{CallKind, Limits, Silence};
use wire::events::logs::lines_to_facts;
use wire::names::training_job_name;

use super::world::{HOUR, MINUTE, SECOND, World, now, request, unpaced};

/// Returns the number of facts that report a job as seen.
fn signs(world: &World) -> usize {
    world.lock().table.rows().iter().filter(|row| row.key.sk.contains("seen#")).count()
}

/// Sweeps once a minute, and runs the decider after each sweep.
fn watch(world: &World, id: &str, ms: i64) {
    for _ in 0..ms / MINUTE {
        world.sweep(unpaced());
        world.decide(id, &[]);
        world.pass(MINUTE);
    }
}

#[test]
fn regression_a_job_that_waits_for_instances_is_kept_until_it_is_deleted() {
    let world = World::new();
    let mut request = request("one", 1);
    // Ten minutes of running time, none of which has started yet.
    request["TrainingJobDefinition"]["StoppingCondition"]["MaxRuntimeInSeconds"] = 600.into();
    let id = world.submit_request(&request);
    let job = world.live(&id)[0];
    let name = training_job_name(&id, job);
    world.create_job(&name, "ours");
    let at = world.lock().now;
    world.decide(
        &id,
        &[Recorded { key: format!("started#{job}"), at: Time(at), fact: Fact::JobStarted { job } }],
    );
    watch(&world, &id, 6 * HOUR);
    assert_eq!(world.live(&id), [job], "the decider still waits for it");
    // The time limit, the grace period, the upload and an hour are 75 minutes. A sign of life is reported after half of
    // it.
    let seen = signs(&world);
    assert_eq!(seen, 6 * 60 / 38);
    // The user deletes the job.
    world.lock().jobs.remove(&name);
    watch(&world, &id, HOUR / 2);
    assert_eq!(world.live(&id), [job], "not at once: the answers of the service may be stale");
    watch(&world, &id, HOUR);
    assert!(world.live(&id).is_empty() && signs(&world) == seen);
}

/// An event without `TrainingStartTime`, or lines alone, show that a job runs but not since when. Its reservation counts
/// from its start.
#[test]
fn a_running_job_without_a_known_start_is_described_in_the_next_sweep() {
    let world = World::new();
    let id = world.submit_request(&request("one", 1));
    let job = world.live(&id)[0];
    let name = training_job_name(&id, job);
    world.create_job(&name, "ours");
    let at = Time(world.lock().now);
    let phase = JobPhase::Training;
    let fact = Fact::JobStateChanged { job, phase, started: None, ended: None, message: None };
    world.decide(&id, &[Recorded { key: format!("trains#{job}"), at, fact }]);
    if let Some(job) = world.lock().jobs.get_mut(&name) {
        job.trains = true;
    }
    watch(&world, &id, 2 * MINUTE);
    let described = world.lock().calls.iter().filter(|call| call.sort == CallKind::Describe).count();
    assert_eq!(described, 1, "its start is known then");
    let loaded = now(Store::new(Arc::new(world)).load(&id)).unwrap().unwrap();
    assert_eq!(loaded.state.job(job).and_then(tuning::job::Job::started), Some(at));
}

/// Sweeps for `minutes` where the log is delivered. The job logs a value every `every` minutes until minute `until`.
/// Returns the minutes at which it was checked.
fn checks(world: &World, id: &str, minutes: i64, every: i64, until: i64) -> Vec<i64> {
    let job = world.live(id)[0];
    let phase = JobPhase::Training;
    let at = Time(world.lock().now);
    let fact = Fact::JobStateChanged { job, phase, started: Some(at), ended: None, message: None };
    world.decide(id, &[Recorded { key: format!("trains#{job}"), at, fact }]);
    if let Some(job) = world.lock().jobs.get_mut(&training_job_name(id, job)) {
        job.trains = true;
    }
    let mut checked = Vec::new();
    for minute in 1..=minutes {
        world.pass(MINUTE);
        if minute <= until && minute % every == 0 {
            let at = Time(world.lock().now);
            let line = MetricLine { id: format!("{at:020}"), at, index: None, value: Some(0.5) };
            world.decide(id, &lines_to_facts("logs", job, "one/algo-1-1", vec![line]));
        }
        world.calls();
        world.sweep(Limits { silence: Silence::Delivered, ..unpaced() });
        world.decide(id, &[]);
        let described = world.calls().iter().any(|call| call.sort == CallKind::Describe);
        checked.extend(described.then_some(minute));
    }
    checked
}

#[test]
fn a_job_with_long_epochs_is_not_silent_where_its_log_is_delivered() {
    let world = World::new();
    let id = world.running("one", 1);
    // Before its second value, nothing shows how long an epoch takes.
    assert_eq!(checks(&world, &id, 120, 6, 120), [4, 5, 10, 11]);
}

#[test]
fn a_job_whose_log_is_lost_is_checked_less_and_less_often_where_logs_are_delivered() {
    let world = World::new();
    let mut request = request("one", 1);
    request["Controller"] = json!({"NoObjectiveSeconds": 86_400});
    let id = world.submit_request(&request);
    world.create_job(&training_job_name(&id, world.live(&id)[0]), "ours");
    let times = checks(&world, &id, 80, 1, 5);
    // Every check is repeated by the next sweep, since a sweep may come a little too early or too late.
    assert_eq!(times, [10, 11, 15, 16, 25, 26, 40, 41, 55, 56, 70, 71]);
}

#[test]
fn a_job_past_its_reservation_is_seen_in_time_where_logs_are_delivered() {
    let world = World::new();
    let mut request = request("one", 1);
    request["TrainingJobDefinition"]["StoppingCondition"]["MaxRuntimeInSeconds"] = 600.into();
    request["Controller"] = json!({"MaxCostUsd": 100, "NoObjectiveSeconds": 86_400});
    let id = world.submit_request(&request);
    let job = world.live(&id)[0];
    let name = training_job_name(&id, job);
    world.create_job(&name, "ours");
    world.lock().jobs.get_mut(&name).unwrap().uploads = true;
    let times = checks(&world, &id, 30, 1, 0);
    // Fifteen minutes are reserved, and each sign of life reserves four more.
    let late: Vec<i64> = times.into_iter().filter(|minute| *minute >= 15).collect();
    assert_eq!(late, [15, 19, 23, 27]);
}

/// A dead subscription must show, whatever an epoch takes.
#[test]
fn regression_lost_lines_count_as_missed_deliveries_where_logs_are_delivered() {
    for epoch in [30, 60, 90, 120, 180, 300] {
        let world = World::new();
        let id = world.running("one", 1);
        let (job, begun) = (world.live(&id)[0], world.lock().now);
        let name = training_job_name(&id, job);
        let mut missed = 0;
        for minute in 1..=30 {
            world.pass(MINUTE);
            if let Some(job) = world.lock().jobs.get_mut(&name) {
                job.trains = true;
                let printed = (1..=3).map(|n| begun + n * epoch * SECOND);
                let printed = printed.filter(|at| *at <= begun + minute * MINUTE);
                job.lines = printed.map(|at| (at, "auc=0.5".to_owned())).collect();
            }
            missed += world.sweep(Limits { silence: Silence::Delivered, ..unpaced() }).deliveries_missed;
            world.decide(&id, &[]);
        }
        assert!(missed > 0, "epochs of {epoch} s");
    }
}
