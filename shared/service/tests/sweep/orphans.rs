//! P7: no training job of this stack runs unknown to the table for longer than the sweep interval + 10 minutes while a
//! tuning is active, an hour otherwise.

use service::ports::table::{Condition, Table, Write};
use service::sweep::{Limits, Sort};
use tuning::fact::{Fact, JobEnd, Recorded};
use wire::names::training_job_name;
use wire::stored;

use crate::world::{BEGIN, HOUR, MINUTE, SECOND, World, now, unpaced};

/// When orphan `name` was stopped, with a sweep every minute; how long after its creation.
fn found_after(world: &World, name: &str, limits: Limits) -> i64 {
    let created = world.lock().jobs[name].created;
    for _ in 0..200 {
        let begun = world.lock().now;
        world.sweep(limits);
        if let Some(call) = world.calls().iter().find(|call| call.sort == Sort::Stop && call.name == name) {
            return call.at - created;
        }
        world.lock().now = begun + MINUTE;
    }
    panic!("{name} is never stopped");
}

fn sweep_for(world: &World, minutes: i64, limits: Limits) {
    for _ in 0..minutes {
        let begun = world.lock().now;
        world.sweep(limits);
        world.lock().now = begun + MINUTE;
    }
}

#[test]
fn p7_an_unknown_job_is_stopped_within_a_sweep_of_its_tenth_minute_while_a_tuning_is_active() {
    for minutes in [0, 1, 7, 30, 59, 61, 90] {
        for seconds in [1, 30, 59] {
            let world = World::new();
            world.running("active", 1);
            sweep_for(&world, minutes, unpaced());
            let next = world.lock().now;
            world.pass(seconds * SECOND - MINUTE);
            world.create_job("gone-abc123-0-0-1", "ours");
            world.lock().now = next;
            let after = found_after(&world, "gone-abc123-0-0-1", unpaced());
            assert!((10 * MINUTE..=11 * MINUTE).contains(&after), "{minutes} min {seconds} s: {after} ms");
        }
    }
}

#[test]
fn p7_an_unknown_job_is_stopped_within_an_hour_while_nothing_is_active() {
    for minutes in [0, 1, 45, 50, 51, 55, 59, 60, 61, 119] {
        let world = World::new();
        sweep_for(&world, minutes, unpaced());
        let next = world.lock().now;
        world.pass(30 * SECOND - MINUTE);
        world.create_job("gone-abc123-0-0-1", "ours");
        world.lock().now = next;
        let after = found_after(&world, "gone-abc123-0-0-1", unpaced());
        assert!((10 * MINUTE..=HOUR).contains(&after), "{minutes} min: {after} ms");
    }
}

/// A job that is not of age when the last tuning ends is known at the latest by the hourly listing.
#[test]
fn p7_an_unknown_job_outlives_the_last_tuning_by_an_hour_at_most() {
    for minutes in (1..70).step_by(3) {
        let world = World::new();
        let id = world.running("active", 1);
        sweep_for(&world, minutes, unpaced());
        world.create_job("gone-abc123-0-0-1", "ours");
        let table = world.lock().table.clone();
        now(table.write(Write::Delete(stored::active_row(&id).key, Condition::Always))).unwrap();
        let after = found_after(&world, "gone-abc123-0-0-1", unpaced());
        assert!((10 * MINUTE..=HOUR).contains(&after), "{minutes} min: {after} ms");
    }
}

/// However many jobs run, a sweep lists those that have come of age; the orphan is the youngest of all.
#[test]
fn p7_holds_with_ten_thousand_running_jobs_at_the_pace_of_the_cloud() {
    let world = World::new();
    let id = world.running("active", 1);
    for n in 0..10_000 {
        // Four a second, as no account can create them.
        world.lock().now = BEGIN + n * 250;
        world.create_job(&format!("a-job-of-somebody-{n}"), "none");
    }
    sweep_for(&world, 2, Limits::CLOUD);
    world.create_job("gone-abc123-0-0-1", "ours");
    let after = found_after(&world, "gone-abc123-0-0-1", Limits::CLOUD);
    assert!((10 * MINUTE..=11 * MINUTE).contains(&after), "{after} ms");
    assert_eq!(world.live(&id).len(), 1);
}

#[test]
fn the_hourly_listing_goes_on_over_several_sweeps() {
    let world = World::new();
    for n in 0..1_000 {
        world.pass(1);
        world.create_job(&format!("a-job-of-somebody-{n}"), "none");
    }
    world.pass(1);
    world.create_job("gone-abc123-0-0-1", "ours");
    world.pass(15 * MINUTE);
    let mut limits = unpaced();
    limits.calls.list.per_sweep = 3;
    // Eleven pages; where one sweep ends the next one begins, with its last job again.
    let stopped: Vec<usize> = (0..4)
        .map(|_| {
            world.pass(MINUTE);
            world.sweep(limits).orphans_stopped
        })
        .collect();
    assert_eq!(stopped, [0, 0, 0, 1]);
    world.calls();
    world.pass(MINUTE);
    world.sweep(limits);
    assert_eq!(world.calls(), [], "it is done for this hour");
}

#[test]
fn jobs_that_are_ours_and_awaited_or_not_ours_are_left_alone() {
    let world = World::new();
    let id = world.running("active", 3);
    world.create_job("theirs-abc123-0-0-1", "theirs");
    world.create_job("theirs-abc123-1-0-1", "theirs");
    world.create_job("anything", "ours");
    sweep_for(&world, 100, unpaced());
    let calls = world.calls();
    assert!(calls.iter().all(|call| call.sort != Sort::Stop));
    let tags = calls.iter().filter(|call| call.sort == Sort::Tags).count();
    assert!(tags <= 5, "one job tells for its tuning, once for each listing: {tags}");
    assert_eq!(world.live(&id).len(), 3);
}

/// Its name is in the table, yet its tuning has closed its books over it.
#[test]
fn a_job_that_was_concluded_and_runs_is_stopped_by_the_hourly_listing() {
    let world = World::new();
    let id = world.running("active", 2);
    let job = world.live(&id)[0];
    sweep_for(&world, 30, unpaced());
    let fact = Fact::JobDescribed {
        job,
        end: JobEnd::Completed,
        started: None,
        ended: None,
        billable_seconds: 0,
        message: None,
        interruptions: 0,
    };
    world.decide(&id, &[Recorded { key: "described".to_owned(), at: BEGIN + HOUR, fact }]);
    let after = found_after(&world, &training_job_name(&id, job), unpaced());
    assert!(after <= HOUR + MINUTE, "{after} ms");
}

/// While the table does not tell whether a job is known, it is not passed over.
#[test]
fn a_job_that_could_not_be_checked_is_checked_by_the_next_sweep() {
    for active in [true, false] {
        let world = World::new();
        if active {
            world.running("active", 1);
        }
        world.create_job("gone-abc123-0-0-1", "ours");
        world.pass(10 * MINUTE);
        world.lock().withheld = Some(stored::action_partition("gone-abc123"));
        let swept = world.sweep(unpaced());
        assert!(swept.failed > 0 && swept.orphans_stopped == 0);
        world.lock().withheld = None;
        world.pass(MINUTE);
        assert_eq!(world.sweep(unpaced()).orphans_stopped, 1, "active: {active}");
    }
}

#[test]
fn without_calls_left_the_next_sweep_goes_on_with_the_same_job() {
    let world = World::new();
    for n in 0..5 {
        world.pass(1);
        world.create_job(&format!("gone-abc123-{n}-0-1"), "ours");
    }
    world.pass(10 * MINUTE);
    let mut limits = unpaced();
    limits.calls.stop.per_sweep = 2;
    let stopped: Vec<usize> = (0..4)
        .map(|_| {
            world.pass(MINUTE);
            world.sweep(limits).orphans_stopped
        })
        .collect();
    assert_eq!(stopped, [2, 2, 1, 0]);
}

/// Somebody's job under the id of a tuning of ours hid every orphan under that id. Found by the simulator.
#[test]
fn regression_a_foreign_job_under_our_tuning_s_id_hides_no_orphan() {
    let world = World::new();
    let id = world.running("active", 1);
    world.create_job(&format!("{id}-9001-0-1"), "theirs");
    world.pass(1);
    let orphan = format!("{id}-9002-0-1");
    world.create_job(&orphan, "ours");
    let after = found_after(&world, &orphan, unpaced());
    assert!((10 * MINUTE..=11 * MINUTE).contains(&after), "{after} ms");
    assert_eq!(world.status(&format!("{id}-9001-0-1")), "InProgress");
}
