//! The training jobs of a tuning as List and Describe show them.

use std::collections::BTreeMap;
use std::sync::Arc;

use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase};
use tuning::log::reasons::StopWhy;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use use_cases::describe::{describe, jobs, jobs_after, stop_word, training_job};
use wire::describe::{JobCounters, ObjectiveCounters, TrainingJobSummary};
use wire::sample;

use super::world::{World, now, request};
use crate::support::{Script, Service, TestClock, actuator, place};

fn listed(world: &World) -> Vec<TrainingJobSummary> {
    now(jobs(&world.store, &place(), &world.id)).unwrap().unwrap()
}

fn described(world: &World, job: JobKey) -> Value {
    now(training_job(&world.store, &world.id, job)).unwrap().unwrap().described(&place(), "prod")
}

/// Creates a tuning of nine jobs, each in another state.
fn nine() -> World {
    let mut world = World::new(9);
    let (cancelled, refused, stopping) = (world.job(2), world.job(3), world.job(6));
    // No further trial starts.
    world.fact(Fact::LimitsChanged { cap: None, max_parallel: None, paused: Some(true) });
    for trial in [0, 1, 4, 6, 7, 8] {
        world.phase(trial, JobPhase::Training);
    }
    for (trial, value) in [(0, 0.5), (6, 0.6), (7, 0.7)] {
        world.logged(trial, &[(1, value)]);
    }
    world.billed(0, JobEnd::Completed, 10);
    world.billed(1, JobEnd::AlgorithmError, 4);
    world.fact(Fact::JobNeverStarted { job: cancelled });
    world.fact(Fact::StartRefused { job: refused, message: "no role".to_owned(), name_is_foreign: false });
    world.phase(4, JobPhase::Downloading);
    world.fact(Fact::JobStopRequested { job: stopping });
    world.billed(7, JobEnd::MaxRuntime, 600);
    world.billed(8, JobEnd::MaxWait, 0);
    world
}

#[test]
fn each_job_is_listed_with_its_state_and_its_money() {
    let world = nine();
    let shown = listed(&world);
    let of = |job: &TrainingJobSummary| {
        let controller = &job.controller;
        let words = [&*job.status, &*controller.state, &*job.objective_status].map(str::to_owned);
        (words, controller.stop_reason.clone(), controller.reserved_usd, controller.cost_usd)
    };
    let reserved = Some(MicroUsd(9_000_000));
    let cents = |count: u64| Some(MicroUsd(10_000 * count));
    let expected = [
        (["Completed", "Completed", "Succeeded"], None, None, cents(10)),
        (["Failed", "Failed", "Failed"], None, None, cents(4)),
        (["Stopped", "NotStarted", "Failed"], None, None, None),
        (["Failed", "Refused", "Failed"], None, None, None),
        (["InProgress", "Downloading", "Pending"], None, reserved, None),
        (["InProgress", "Starting", "Pending"], None, reserved, None),
        (["Stopping", "Stopping", "Pending"], Some("Requested".to_owned()), reserved, None),
        (["Stopped", "MaxRuntime", "Succeeded"], None, None, cents(600)),
        (["Stopped", "MaxWait", "Failed"], None, None, cents(0)),
    ];
    for (job, (words, stop, reserved, cost)) in shown.iter().zip(expected) {
        assert_eq!(of(job), (words.map(str::to_owned), stop, reserved, cost), "{}", job.name);
    }
    let trials: Vec<u32> = shown.iter().map(|job| job.controller.trial).collect();
    assert_eq!(trials, (0..9).collect::<Vec<_>>());
    let secondary = |job| described(&world, job)["SecondaryStatus"].clone();
    assert_eq!(secondary(JobKey::new(7, 0, 1)), "MaxRuntimeExceeded");
    assert_eq!(secondary(JobKey::new(8, 0, 1)), "MaxWaitTimeExceeded");
    assert_eq!(secondary(JobKey::new(0, 0, 1)), "Completed");
    assert_eq!(secondary(JobKey::new(2, 0, 1)), "Stopped");
}

#[test]
fn a_description_counts_the_jobs_by_status() {
    let world = nine();
    let base = now(describe(&world.store, &place(), &world.id)).unwrap().unwrap().base;
    let counters =
        JobCounters { completed: 1, in_progress: 3, retryable_error: 0, non_retryable_error: 2, stopped: 2 };
    assert_eq!(base.counters, Some(counters));
    let objectives = ObjectiveCounters { succeeded: 2, pending: 3, failed: 3 };
    assert_eq!(base.objectives, Some(objectives));
}

/// The rows of concluded jobs and the state with the others are read apart.
#[test]
fn the_pages_of_jobs_have_each_job_once_in_both_directions() {
    let world = nine();
    let all = listed(&world);
    for descending in [false, true] {
        let mut expected = all.clone();
        if descending {
            expected.reverse();
        }
        for limit in 1..=10 {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let page = now(jobs_after(&world.store, &place(), &world.id, after, descending, limit));
                let page = page.unwrap().unwrap();
                assert!(page.jobs.len() <= limit);
                after = page.jobs.last().map(|(key, _)| *key).or(after);
                found.extend(page.jobs.into_iter().map(|(_, job)| job));
                assert!(found.len() <= expected.len(), "a job is repeated");
                if !page.more {
                    break;
                }
            }
            assert_eq!(found, expected, "pages of {limit}, descending: {descending}");
        }
        let whole = now(jobs_after(&world.store, &place(), &world.id, None, descending, 9)).unwrap().unwrap();
        assert_eq!((whole.jobs.len(), whole.more), (9, false), "no empty page follows");
    }
}

/// The bill is known, but the rest of the log may still have a later value.
#[test]
fn the_objective_of_a_job_is_final_with_its_bill_or_its_conclusion() {
    let mut body = request("t", 4);
    let config = &mut body["HyperParameterTuningJobConfig"];
    config["StrategyConfig"]["HyperbandStrategyConfig"]["MinResource"] = json!(4);
    let controller =
        json!({"ReductionFactor": 2, "RungExecution": "Promote", "ResourceHyperParameter": "epochs"});
    let mut world = World::of(MemoryTable::new(), &sample::with(body, json!({"Controller": controller})));
    let keys = [0, 2].map(|trial| world.job(trial));
    // The second one ends below its level: its log may have more.
    for (trial, epoch) in [(0, 4), (2, 3)] {
        world.phase(trial, JobPhase::Training);
        world.logged(trial, &[(epoch, 0.5)]);
    }
    let [unbilled, unread] = keys;
    world.fact(Fact::JobStateChanged {
        job: unbilled,
        phase: JobPhase::Ended(JobEnd::Completed),
        started: None,
        ended: None,
        message: None,
    });
    world.fact(Fact::RestRead { job: unbilled });
    world.fact(Fact::JobDescribed {
        job: unread,
        end: JobEnd::Completed,
        started: Some(Time(world.now)),
        ended: Some(Time(world.now + 5_000)),
        billable_seconds: 5,
        message: None,
        interruptions: 0,
    });
    assert!(world.state().job(unbilled).is_none() && world.state().job(unread).is_some());
    let shown = listed(&world);
    let of = |trial: u32| shown.iter().find(|job| job.controller.trial == trial).unwrap();
    assert_eq!((of(0).controller.cost_usd, &*of(0).objective_status), (None, "Succeeded"));
    let cost = Some(MicroUsd(50_000));
    assert_eq!((of(2).controller.cost_usd, &*of(2).objective_status), (cost, "Succeeded"));
}

#[test]
fn a_completed_job_is_described_with_its_times_and_its_metrics() {
    let mut world = World::new(1);
    let job = world.job(0);
    world.phase(0, JobPhase::Training);
    assert!(described(&world, job).get("FinalMetricDataList").is_none(), "no value yet");
    world.logged(0, &[(9, 0.5)]);
    world.billed(0, JobEnd::Completed, 10);
    let shown = described(&world, job);
    let seconds = |ms: i64| wire::describe::seconds_of(Time(ms));
    let (ordered, started) = (seconds(super::world::BEGIN), seconds(super::world::BEGIN + 1_000));
    let ended = seconds(super::world::BEGIN + 2_000);
    let entry =
        |status: &str, from: f64| json!({"Status": status, "StartTime": from, "StatusMessage": status});
    let until = |mut entry: Value, to: f64| {
        entry["EndTime"] = json!(to);
        entry
    };
    let transitions = json!([
        until(entry("Starting", ordered), started),
        until(entry("Training", started), ended),
        entry("Completed", ended),
    ]);
    assert_eq!(shown["SecondaryStatusTransitions"], transitions);
    assert_eq!(
        shown["FinalMetricDataList"],
        json!([{"MetricName": "auc", "Value": 0.5, "Timestamp": ended}])
    );
    assert_eq!((&shown["BillableTimeInSeconds"], &shown["TrainingTimeInSeconds"]), (&json!(10), &json!(1)));
}

/// An operator finds the job of a decision by its tags.
#[test]
fn the_tags_of_a_job_are_those_with_which_it_was_created() {
    let changes = json!({
        "Tags": [{"Key": "team", "Value": "a"}],
        "Controller": {"RungExecution": "Promote", "ResourceHyperParameter": "epochs"},
    });
    let world = World::of(MemoryTable::recording(), &sample::with(request("t", 22), changes));
    let job = world.job(0);
    let service =
        Service::new(&TestClock::at(world.now), Script { create: Some(Ok(())), ..Script::default() });
    let actuator = actuator(&Arc::new(world.table.clone()), &service);
    now(actuator.perform(&world.id, &format!("start-{job}"))).unwrap();
    let created = service.lock().created[0]["Tags"].clone();
    let pair = |tag: &Value| ["Key", "Value"].map(|member| tag[member].as_str().unwrap().to_owned());
    let sent: BTreeMap<String, String> =
        created.as_array().unwrap().iter().map(pair).map(|[key, value]| (key, value)).collect();
    assert_eq!((sent.len(), sent["team"].as_str()), (4, "a"));
    let found = now(training_job(&world.store, &world.id, job)).unwrap().unwrap();
    assert_eq!(found.tags("prod"), sent);
}

#[test]
fn the_reason_of_a_stop_is_one_word() {
    let words = [
        (StopWhy::Rung { rung: tuning::unit::ids::RungId(2) }, "Rung2"),
        (StopWhy::MaxResource, "MaxResource"),
        (StopWhy::TuningEnding, "TuningEnding"),
        (StopWhy::OutOfReach, "OutOfReach"),
        (StopWhy::NoObjective { seconds: 600 }, "NoObjective"),
        (StopWhy::ReservationUsed { seconds: 600 }, "ReservationUsed"),
    ];
    for (why, word) in words {
        assert_eq!(stop_word(why), word);
    }
}
