//! P7: a training job of this stack that is unknown to the table runs for at most the sweep interval + 10 minutes while
//! a tuning is active, and for at most an hour otherwise.

use tuning::log::fact::{Fact, JobEnd, JobPhase, Recorded};
use tuning::unit::time::Time;
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::sweep::{CallKind, Limits};
use wire::names::{TAG_DECISION, TAG_TUNING, training_job_name};
use wire::stored::{self, ActionRow};

use super::world::{BEGIN, HOUR, MINUTE, SECOND, STACK, World, now, unpaced};

/// Sweeps every minute until orphan `name` is stopped. Returns the time from its creation to its stop.
fn found_after(world: &World, name: &str, limits: Limits) -> i64 {
    let created = world.lock().jobs[name].created;
    for _ in 0..200 {
        let begun = world.lock().now;
        world.sweep(limits);
        if let Some(call) = world.calls().iter().find(|call| call.sort == CallKind::Stop && call.name == name)
        {
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
fn p7_an_orphan_is_stopped_within_eleven_minutes_while_a_tuning_is_active() {
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
fn p7_an_orphan_is_stopped_within_an_hour_while_no_tuning_is_active() {
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

/// An orphan below the minimum age when the last tuning ends is found by the hourly listing at the latest.
#[test]
fn p7_an_orphan_is_stopped_within_an_hour_after_the_last_tuning() {
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

/// However many jobs run, a sweep lists only jobs that have reached the minimum age. The orphan is the youngest job.
#[test]
fn p7_holds_with_ten_thousand_running_jobs_at_the_pace_of_the_cloud() {
    let world = World::new();
    let id = world.running("active", 1);
    for n in 0..10_000 {
        // Four a second, faster than an account can create them.
        world.lock().now = BEGIN + n * 250;
        world.create_job(&format!("a-foreign-job-{n}"), "none");
    }
    sweep_for(&world, 2, Limits::CLOUD);
    world.create_job("gone-abc123-0-0-1", "ours");
    let after = found_after(&world, "gone-abc123-0-0-1", Limits::CLOUD);
    assert!((10 * MINUTE..=11 * MINUTE).contains(&after), "{after} ms");
    assert_eq!(world.live(&id).len(), 1);
}

#[test]
fn the_hourly_listing_continues_over_several_sweeps() {
    let world = World::new();
    for n in 0..1_000 {
        world.pass(1);
        world.create_job(&format!("a-foreign-job-{n}"), "none");
    }
    world.pass(1);
    world.create_job("gone-abc123-0-0-1", "ours");
    world.pass(15 * MINUTE);
    let mut limits = unpaced();
    limits.calls.list.per_sweep = 3;
    // There are eleven pages. Each sweep starts with the last job of the previous sweep.
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
    assert_eq!(world.calls(), [], "the listing of this hour is complete");
}

#[test]
fn known_jobs_and_foreign_jobs_are_not_stopped() {
    let world = World::new();
    let id = world.running("active", 3);
    world.create_job("theirs-abc123-0-0-1", "theirs");
    world.create_job("theirs-abc123-1-0-1", "theirs");
    world.create_job("anything", "ours");
    sweep_for(&world, 100, unpaced());
    let calls = world.calls();
    assert!(calls.iter().all(|call| call.sort != CallKind::Stop));
    let tags = calls.iter().filter(|call| call.sort == CallKind::Tags).count();
    assert!(tags <= 5, "one job per tuning is checked in each listing: {tags}");
    assert_eq!(world.live(&id).len(), 3);
}

/// The table has an action row for the job, but the tuning has already settled it.
#[test]
fn a_concluded_job_that_still_runs_is_stopped_by_the_hourly_listing() {
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
    world.decide(&id, &[Recorded { key: "described".to_owned(), at: Time(BEGIN + HOUR), fact }]);
    let after = found_after(&world, &training_job_name(&id, job), unpaced());
    assert!(after <= HOUR + MINUTE, "{after} ms");
}

/// A job is not skipped while the table does not answer whether it is known.
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
fn without_calls_left_the_next_sweep_continues_with_the_same_job() {
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

/// A foreign job under the ID of a tuning of ours hid every orphan under that ID. Found by the simulator.
#[test]
fn regression_a_foreign_job_under_our_tuning_id_hides_no_orphan() {
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

/// Gives the running job `name` the tag of another decision.
fn of_another_decision(world: &World, name: &str) {
    world.create_job(name, STACK);
    let id = name.strip_suffix("-0-0-1").unwrap();
    let tags = [(TAG_TUNING, id), (TAG_DECISION, "0-0-1.0123456789abcdef0123456789abcdef")];
    let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned()));
    world.lock().jobs.get_mut(name).unwrap().tags.extend(tags);
}

/// The table was restored to a time before the job was ordered, and then another job was ordered under its name.
#[test]
fn regression_a_job_of_another_decision_is_refused_and_then_stopped() {
    let world = World::new();
    let id = world.submit("active", 1);
    let job = world.live(&id)[0];
    let name = training_job_name(&id, job);
    of_another_decision(&world, &name);
    // Its own facts do not show that the ordered job runs.
    let at = Time(world.lock().now);
    let running = Fact::JobStateChanged {
        job,
        phase: JobPhase::Training,
        started: Some(at),
        ended: None,
        message: None,
    };
    let running = Recorded { key: "running".to_owned(), at, fact: running };
    now(world.lock().table.write(Write::Put(stored::fact_row(&id, &running), Condition::Always))).unwrap();
    world.sweep(unpaced());
    world.decide(&id, &[]);
    let message = world.row_of_job(&id, job).message.unwrap();
    assert!(message.contains("another decision of this tuning started"), "{message}");
    let after = found_after(&world, &name, unpaced());
    assert!(after <= HOUR + MINUTE, "{after} ms");
}

/// The start waits, for example for a quota, so nothing has compared the job with its decision yet.
#[test]
fn a_job_of_another_decision_is_stopped_while_its_start_waits() {
    let world = World::new();
    let id = world.submit("active", 1);
    let job = world.live(&id)[0];
    let name = training_job_name(&id, job);
    let key = stored::action_key(&id, &format!("start-{job}"));
    let row = now(world.lock().table.get(&key)).unwrap().unwrap();
    let row = ActionRow { not_before: Time(BEGIN + 24 * HOUR), ..ActionRow::read(&row).unwrap() };
    now(world.lock().table.write(Write::Put(row.row(&id), Condition::Always))).unwrap();
    of_another_decision(&world, &name);
    let after = found_after(&world, &name, unpaced());
    assert!(after <= HOUR + MINUTE, "{after} ms");
}

/// The actuator died between the creation of the job and the note that it was created, and the start now waits.
#[test]
fn the_job_of_a_start_that_is_not_yet_recorded_is_no_orphan() {
    let world = World::new();
    let id = world.submit("active", 1);
    let job = world.live(&id)[0];
    let key = stored::action_key(&id, &format!("start-{job}"));
    let row = now(world.lock().table.get(&key)).unwrap().unwrap();
    let waits = ActionRow { not_before: Time(BEGIN + 24 * HOUR), ..ActionRow::read(&row).unwrap() };
    now(world.actuator(None).perform(&id, &format!("start-{job}"))).unwrap();
    now(world.lock().table.write(Write::Put(waits.row(&id), Condition::Always))).unwrap();
    sweep_for(&world, 70, unpaced());
    assert_eq!(world.status(&training_job_name(&id, job)), "InProgress");
}
