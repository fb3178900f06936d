//! What a sweep reports about a decider or an actuator that never runs and therefore cannot report this itself.

use std::sync::Arc;

use serde_json::json;
use tuning::log::fact::{Fact, JobEnd, JobPhase, Recorded};
use tuning::unit::time::Time;
use use_cases::decide::Decider;
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::store::Store;
use use_cases::sweep::{CallKind, Counts};
use wire::names::training_job_name;
use wire::stored::{self, ActionRow, ActionStatus, RING_PREFIX};

use super::world::{MINUTE, SECOND, World, now, request, unpaced};

#[test]
fn regression_a_tuning_is_reported_as_stuck_until_the_decider_runs() {
    let world = World::new();
    let id = world.running("one", 2);
    for key in world.live(&id) {
        world.lock().jobs.get_mut(&training_job_name(&id, key)).unwrap().status = "Completed";
    }
    // The sweeper sees the ends of the jobs and stores them as facts, but no decider reads them.
    let stuck: Vec<usize> = (0..15)
        .map(|_| {
            world.pass(MINUTE);
            world.sweep(unpaced()).stuck
        })
        .collect();
    assert_eq!(stuck, [vec![0; 9], vec![1; 6]].concat());
    world.decide(&id, &[]);
    world.pass(MINUTE);
    assert_eq!(world.sweep(unpaced()).stuck, 0);
}

#[test]
fn regression_a_tuning_without_its_first_step_is_reported_as_stuck() {
    let world = World::new();
    world.store_undecided(&request("one", 3));
    world.pass(9 * MINUTE);
    assert_eq!(world.sweep(unpaced()).stuck, 0);
    world.pass(MINUTE);
    assert_eq!(world.sweep(unpaced()).stuck, 1);
}

#[test]
fn a_long_silent_training_is_not_reported_as_stuck() {
    let world = World::new();
    let id = world.running("one", 3);
    for _ in 0..180 {
        world.pass(MINUTE);
        let swept = world.sweep(unpaced());
        assert_eq!((swept.tunings, swept.stuck, swept.deliveries_missed), (1, 0, 0));
        world.decide(&id, &[]);
    }
}

#[test]
fn regression_actions_that_no_actuator_tried_are_reported_as_missed() {
    let world = World::new();
    let id = world.running("one", 3);
    world.stop_tuning(&id);
    world.pass(15 * SECOND);
    let swept = world.sweep(unpaced());
    assert_eq!((swept.missed, swept.settled.stops), (3, 3));
    world.pass(MINUTE);
    assert_eq!(world.sweep(unpaced()).missed, 0);
}

#[test]
fn ends_that_no_event_brought_are_reported_once_as_missed_deliveries() {
    let world = World::new();
    let id = world.running("one", 2);
    for key in world.live(&id) {
        world.lock().jobs.get_mut(&training_job_name(&id, key)).unwrap().status = "Completed";
    }
    let missed = || {
        world.pass(MINUTE);
        let swept = world.sweep(unpaced());
        (swept.events_missed, swept.deliveries_missed)
    };
    // The jobs are silent after two minutes. Later checks find the stored facts.
    assert_eq!((0..5).map(|_| missed()).collect::<Vec<_>>(), [(0, 0), (2, 2), (0, 0), (0, 0), (0, 0)]);
}

#[test]
fn values_that_no_log_batch_brought_in_four_minutes_are_missed_deliveries() {
    let world = World::new();
    let id = world.running("one", 1);
    let job = world.live(&id)[0];
    let found = |seconds_ago: i64| {
        world.pass(5 * MINUTE);
        let at = world.lock().now - seconds_ago * SECOND;
        let name = training_job_name(&id, job);
        world.lock().jobs.get_mut(&name).unwrap().lines.push((at, "auc=0.5".to_owned()));
        let swept = world.sweep(unpaced());
        world.decide(&id, &[]);
        (swept.events_missed, swept.deliveries_missed)
    };
    assert_eq!(found(239), (0, 0), "this line may still be on its way");
    assert_eq!(found(240), (0, 1));
}

#[test]
fn a_recent_action_is_not_reported_as_missed() {
    let world = World::new();
    let id = world.running("one", 3);
    world.stop_tuning(&id);
    world.pass(14 * SECOND);
    let swept = world.sweep(unpaced());
    assert_eq!((swept.missed, swept.settled.stops), (0, 3));
}

#[test]
fn a_sweep_counts_what_it_performed_and_publishes_the_events() {
    let world = World::new();
    let id = world.submit("one", 2);
    let started = world.sweep(unpaced()).performed;
    assert_eq!(started, Counts { done: 2, started: 2, ..Counts::default() });
    assert_eq!(world.lock().statuses, ["InProgress"], "the first start begins the tuning");
    world.decide(&id, &[]);
    world.stop_tuning(&id);
    let stopped = world.sweep(unpaced()).performed;
    assert_eq!(stopped, Counts { done: 2, stopped: 2, ..Counts::default() });
    assert_eq!(world.lock().statuses, ["InProgress", "Stopping"]);
}

/// Returns the orders that no actuator has performed.
fn pending(world: &World, id: &str) -> Vec<String> {
    let rows = world.lock().table.rows();
    let of_tuning = rows.iter().filter(|row| row.key.pk == stored::action_partition(id));
    let read = of_tuning.map(|row| (row.key.sk.clone(), ActionRow::read(row).unwrap()));
    read.filter(|(_, row)| row.status == ActionStatus::Pending).map(|(key, _)| key).collect()
}

/// Creates a tuning with a running job, whose decider has then folded `fact`.
fn after(fact: impl Fn(&World, &str) -> Vec<Fact>) -> (World, String) {
    let world = World::new();
    let mut request = request("one", 2);
    request["Controller"] = json!({"NoObjectiveSeconds": 60});
    let id = world.submit_request(&request);
    let at = Time(world.lock().now);
    for job in world.live(&id) {
        now(world.actuator(None).perform(&id, &format!("start-{job}"))).unwrap();
        let phase = JobPhase::Training;
        let running = Fact::JobStateChanged { job, phase, started: Some(at), ended: None, message: None };
        world.decide(&id, &[Recorded { key: format!("trains#{job}"), at, fact: running }]);
    }
    for (n, fact) in fact(&world, &id).into_iter().enumerate() {
        let at = Time(world.lock().now);
        world.decide(&id, &[Recorded { key: format!("fact#{n}"), at, fact }]);
    }
    (world, id)
}

/// The user has stopped the tuning.
fn stopping() -> (World, String) {
    after(|_, _| vec![Fact::StopRequested])
}

/// The first job has ended.
fn ending() -> (World, String) {
    after(|world, id| {
        let job = world.live(id)[0];
        world.lock().jobs.get_mut(&training_job_name(id, job)).unwrap().status = "Completed";
        let (phase, at) = (JobPhase::Ended(JobEnd::Completed), Some(Time(world.lock().now)));
        vec![Fact::JobStateChanged { job, phase, started: at, ended: at, message: None }]
    })
}

/// The jobs have logged no value for long.
fn silent() -> (World, String) {
    after(|world, _| {
        world.pass(10 * MINUTE);
        vec![Fact::TimePassed]
    })
}

/// The outcome is stored, but its stream record was lost. The tuning would wait for it.
#[test]
fn the_outcome_of_an_action_that_no_decider_has_read_is_rung() {
    let mut kinds = Vec::new();
    for begin in [stopping, ending, silent] {
        let (world, id) = begin();
        for action in pending(&world, &id) {
            let (world, id) = begin();
            now(world.actuator(None).perform(&id, &action)).unwrap();
            if pending(&world, &id).contains(&action) {
                continue;
            }
            world.pass(SECOND);
            now(world.write(Write::Delete(stored::ring_key(&id), Condition::Always))).unwrap();
            world.sweep(unpaced());
            let rung = world.lock().table.rows().iter().any(|row| row.key.pk.starts_with(RING_PREFIX));
            assert!(rung, "{action}");
            kinds.extend(action.split('-').next().map(str::to_owned));
        }
    }
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds, ["bill", "look", "rest", "stop"]);
}

/// The decider does not read the fact that a deadline has passed, so the next sweep rings.
#[test]
fn a_deadline_that_no_decider_has_read_is_rung_by_the_next_sweep() {
    let (world, id) = after(|_, _| Vec::new());
    world.pass(MINUTE + SECOND);
    let seen = Fact::JobSeen { job: world.live(&id)[0] };
    let rung = || {
        let at = Time(world.lock().now);
        let seen = Recorded { key: format!("seen#{at}"), at, fact: seen.clone() };
        // It reads no other stored fact.
        let store = Arc::new(Store::new(Arc::new(world.clone())));
        now(Decider { store }.decide(&id, &[seen], false)).unwrap();
        now(world.write(Write::Delete(stored::ring_key(&id), Condition::Always))).unwrap();
        world.sweep(unpaced());
        world.lock().table.rows().iter().any(|row| row.key.pk.starts_with(RING_PREFIX))
    };
    assert_eq!([rung(), rung()], [false, true]);
}

#[test]
fn a_check_that_the_service_throttles_is_made_by_the_next_sweep() {
    let world = World::new();
    let id = world.running("one", 3);
    world.pass(5 * MINUTE);
    let first = training_job_name(&id, world.live(&id)[0]);
    let checked = |unreadable: bool| {
        world.lock().jobs.get_mut(&first).unwrap().is_unreadable = unreadable;
        world.calls();
        let swept = world.sweep(unpaced());
        let described = world.calls().iter().filter(|call| call.sort == CallKind::Describe).count();
        (swept.looked, described)
    };
    assert_eq!(checked(true), (0, 1), "the others wait, so that the rate of calls falls");
    assert_eq!(checked(false), (3, 3));
}
