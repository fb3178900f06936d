//! What a sweep reports about a decider or an actuator that never runs and therefore cannot report this itself.

use wire::names::training_job_name;

use super::world::{MINUTE, SECOND, World, request, unpaced};

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
