//! Calls whose rate limit all functions of a stack share.

use std::collections::BTreeMap;

use tuning::log::fact::JobKey;
use tuning::unit::time::Time;
use use_cases::pace::Pace;
use use_cases::perform::{ActionBatch, Performed};
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::sweep::{CallKind, Limits};
use wire::events::stream::{RecordKind, encode_payload, encode_record};
use wire::names::{parse_training_job_name, training_job_name};
use wire::stored::{self, ActionRow, PaceRow};

use super::world::{BEGIN, HOUR, MINUTE, SECOND, World, now, unpaced};

/// Returns the times of the calls of this kind, in order.
fn times(world: &World, sort: CallKind) -> Vec<i64> {
    world.calls().iter().filter(|call| call.sort == sort).map(|call| call.at).collect()
}

/// Returns the largest number of calls by which any time exceeds one call per `every_ms`.
fn burst(times: &[i64], every_ms: i64) -> i64 {
    let windows = (0..times.len()).flat_map(|from| (from..times.len()).map(move |to| (from, to)));
    let excess = windows.map(|(from, to)| {
        let calls = i64::try_from(to - from).unwrap() + 1;
        calls - (times[to] - times[from]) / every_ms
    });
    excess.max().unwrap_or(0)
}

fn start_row(world: &World, id: &str, job: JobKey) -> ActionRow {
    let row = now(world.lock().table.get(&stored::action_key(id, &format!("start-{job}"))));
    ActionRow::read(&row.unwrap().unwrap()).unwrap()
}

/// Performs the new starts of a tuning, as the stream brings them to the actuator.
fn deliver(world: &World, id: &str) -> ActionBatch {
    let mut acts = ActionBatch::default();
    let rows = world.live(id).into_iter().map(|job| start_row(world, id, job).row(id));
    let records = (1..).zip(rows).map(|(n, row)| encode_record(n, RecordKind::Insert, &row.key, Some(&row)));
    let event = encode_payload(records);
    now(world.actuator(Some(Pace::default())).handle(&event, || true, &mut acts));
    acts
}

#[test]
fn starts_of_actuators_and_sweepers_share_one_rate() {
    let world = World::new();
    let (first, _) = (world.submit("a", 30), world.submit("b", 60));
    deliver(&world, &first);
    for _ in 0..3 {
        let begun = world.lock().now;
        world.paced_sweep();
        // The next sweeper starts at once.
        assert!(world.lock().now < begun + MINUTE);
    }
    let creates = times(&world, CallKind::Create);
    assert_eq!((creates.len(), burst(&creates, 1_250)), (90, 3));
}

#[test]
fn log_pages_use_half_of_the_accounts_rate() {
    let world = World::new();
    world.running("one", 3);
    world.lock().jobs.values_mut().for_each(|job| job.log_pages = 10);
    world.pass(5 * MINUTE);
    // The second sweeper starts at once.
    for _ in 0..2 {
        assert_eq!(world.paced_sweep().looked, 3);
    }
    let pages = times(&world, CallKind::Log);
    assert_eq!((pages.len(), burst(&pages, 400)), (60, 1));
}

/// A sweep takes the starts of all tunings in turns, so that a large tuning does not keep a small one waiting.
#[test]
fn starts_are_fair_between_tunings() {
    let world = World::new();
    for (name, parallel) in [("large", 60), ("small", 3)] {
        world.submit(name, parallel);
    }
    world.pass(2 * MINUTE);
    world.sweep(Limits::CLOUD);
    let calls = world.calls();
    let names = calls.iter().filter(|call| call.sort == CallKind::Create).map(|call| call.name.as_str());
    let names: Vec<String> =
        names.map(|name| parse_training_job_name(name).unwrap().0[..5].to_owned()).collect();
    assert_eq!(names[..6], ["large", "small", "large", "small", "large", "small"]);
}

/// Stores a row whose next free turn is in so many ms.
fn taken(world: &World, next: i64, taken: BTreeMap<String, Vec<Time>>) {
    let row = PaceRow { next: Time(BEGIN + next), taken, revision: 1, ..PaceRow::new("starts") };
    now(world.write(Write::Put(row.row(), Condition::Always))).unwrap();
}

/// A tuning with many starts gets no turn until one of its two has come, so the next turns belong to the others.
#[test]
fn a_tuning_takes_at_most_two_turns_ahead() {
    let world = World::new();
    let (large, small) = (world.submit("large", 2), world.submit("small", 1));
    let turns = (1..=2).map(|n| Time(BEGIN + n * SECOND)).collect();
    taken(&world, 3 * SECOND, BTreeMap::from([(large.clone(), turns)]));
    let started = |id: &str| deliver(&world, id).parts[0].done.performed.as_ref().unwrap().is_done();
    assert!(!started(&large));
    assert!(started(&small));
    assert_eq!(times(&world, CallKind::Create), [BEGIN + 3 * SECOND]);
    assert!(started(&large));
    assert_eq!(times(&world, CallKind::Create)[0], BEGIN + 4_250);
    // One that has a single turn ahead takes a second one.
    let world = World::new();
    let large = world.submit("large", 1);
    taken(&world, 2 * SECOND, BTreeMap::from([(large.clone(), vec![Time(BEGIN + SECOND)])]));
    assert!(deliver(&world, &large).parts[0].done.performed.as_ref().unwrap().is_done());
    assert_eq!(times(&world, CallKind::Create), [BEGIN + 2 * SECOND]);
}

#[test]
fn a_start_without_a_turn_is_left_to_the_sweeper_and_its_row_does_not_change() {
    let world = World::new();
    let id = world.submit("one", 1);
    let job = world.live(&id)[0];
    taken(&world, 6 * SECOND, BTreeMap::new());
    let before = start_row(&world, &id, job);
    let acts = deliver(&world, &id);
    let Some(Performed::Deferred(why)) = &acts.parts[0].done.performed else { panic!("{acts:?}") };
    assert!(why.starts_with("all tunings share the account's rate"), "{why}");
    assert_eq!(start_row(&world, &id, job), before);
    world.pass(6 * SECOND);
    let swept = world.sweep(unpaced());
    assert_eq!((swept.settled.starts, swept.missed), (1, 0));
}

/// The first start may wait for its turn. The rest of a batch is left to the sweeper, before the function's time ends.
#[test]
fn a_batch_makes_starts_for_a_minute() {
    let world = World::new();
    let id = world.submit("one", 100);
    let acts = deliver(&world, &id);
    let done = acts.parts.iter().filter(|part| part.done.performed.as_ref().is_some_and(Performed::is_done));
    assert_eq!(done.count(), 51);
    assert!(acts.parts.iter().all(|part| part.done.performed.is_some()));
    let left = world.sweep(Limits::CLOUD);
    assert_eq!((left.settled.starts, left.missed), (49, 0));
}

#[test]
fn a_row_from_a_wrong_clock_is_ignored() {
    let world = World::new();
    let id = world.submit("one", 1);
    taken(&world, 24 * HOUR, BTreeMap::new());
    deliver(&world, &id);
    assert_eq!(times(&world, CallKind::Create), [BEGIN]);
    // The last turn within the longest wait leaves this row behind, so its clock is right.
    let world = World::new();
    let id = world.submit("one", 1);
    taken(&world, 6_250, BTreeMap::new());
    deliver(&world, &id);
    assert!(times(&world, CallKind::Create).is_empty());
}

#[test]
fn an_order_without_a_rate_limit_needs_no_turn() {
    let world = World::new();
    let id = world.running("one", 1);
    world.stop_tuning(&id);
    let job = world.live(&id)[0];
    let actuator = world.actuator(Some(Pace::default()));
    let stopped = now(actuator.perform(&id, &format!("stop-{job}"))).unwrap();
    assert!(stopped.is_done());
    assert!(now(world.get(&PaceRow::key("starts"))).unwrap().is_none());
}

/// A sweep waits for turns that the actuators have taken, rather than giving up its starts.
#[test]
fn a_sweep_waits_until_turns_are_free() {
    let world = World::new();
    world.submit("one", 20);
    taken(&world, 6 * SECOND, BTreeMap::new());
    let swept = world.paced_sweep();
    assert_eq!((swept.settled.starts, swept.left, swept.performed.deferred), (20, 0, 0));
}

/// The pages of a log wait for their turns too, and a sweep must still read the longest log to its end.
#[test]
fn a_log_of_the_longest_length_is_read_in_one_sweep() {
    let world = World::new();
    let id = world.running("one", 1);
    let name = training_job_name(&id, world.live(&id)[0]);
    if let Some(job) = world.lock().jobs.get_mut(&name) {
        job.log_pages = 80;
        job.status = "Failed";
    }
    world.pass(3 * MINUTE);
    let mut cut = Vec::new();
    for _ in 0..4 {
        cut.extend(world.paced_sweep().logs_cut);
        world.decide(&id, &[]);
        world.pass(MINUTE);
    }
    assert_eq!(cut, []);
    assert!(!world.live(&id).iter().any(|job| training_job_name(&id, *job) == name), "the job is concluded");
}
