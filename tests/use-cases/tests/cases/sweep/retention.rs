//! Deleted tunings, and tunings that ended longer ago than the retention.

use tuning::log::fact::{Fact, Recorded};
use tuning::unit::time::{Millis, Time};
use use_cases::active::name_in;
use use_cases::delete::{DeleteError, delete_found};
use use_cases::lookup::{self, LookupError};
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::ports::usage::Usage;
use use_cases::record;
use use_cases::store::Store;
use use_cases::sweep::{Limits, Swept};
use wire::stored::{self, DELETED};

use super::world::{HOUR, MINUTE, World, now, unpaced};

/// Returns the rows that belong to tuning `id`, as partition and sort key.
fn rows_of(world: &World, id: &str) -> Vec<String> {
    let rows = world.lock().table.rows();
    let keys = rows.into_iter().map(|row| format!("{}/{}", row.key.pk, row.key.sk));
    let name = format!("INDEX/{}", name_in(id));
    keys.filter(|key| key.contains(id) || *key == name).collect()
}

fn sweep_for(world: &World, minutes: i64, limits: Limits) -> Vec<Swept> {
    let sweep = |_| {
        world.pass(MINUTE);
        world.sweep(limits)
    };
    (0..minutes).map(sweep).collect()
}

/// Submits a tuning, runs its first job, and ends it.
fn ended(world: &World, name: &str) -> String {
    let id = world.running(name, 1);
    world.stop_tuning(&id);
    for _ in 0..10 {
        world.pass(MINUTE);
        world.sweep(unpaced());
        world.decide(&id, &[]);
    }
    world.pass(MINUTE);
    world.sweep(unpaced());
    id
}

fn delete(world: &World, id: &str) -> Result<(), DeleteError> {
    let at = Time(world.lock().now);
    now(delete_found(&Store::new(world.clone().into()), id, at))
}

#[test]
fn a_deleted_tuning_is_missing_at_once_and_its_rows_are_removed_within_two_hours() {
    let world = World::new();
    let id = ended(&world, "one");
    let other = ended(&world, "another");
    let rows_of_other = rows_of(&world, &other);
    delete(&world, &id).unwrap();
    let store = Store::new(world.clone().into());
    assert!(matches!(now(lookup::find(&store, "one")), Err(LookupError::NotFound(_))));
    assert!(now(store.load(&id)).unwrap().is_none() && now(store.tuning(&id)).unwrap().is_none());
    assert!(rows_of(&world, &id).len() > 3, "its steps, jobs and actions are left");
    assert!(matches!(delete(&world, &id), Err(DeleteError::Lookup(LookupError::NotFound(_)))));

    sweep_for(&world, 125, unpaced());
    assert_eq!(rows_of(&world, &id), [""; 0]);
    assert_eq!(rows_of(&world, &other), rows_of_other);
    assert!(world.lock().table.rows().iter().all(|row| row.key.pk != DELETED));
}

#[test]
fn a_tuning_that_runs_or_is_not_settled_is_not_deleted() {
    let world = World::new();
    let id = world.running("one", 1);
    assert_eq!(delete(&world, &id), Err(DeleteError::NotEnded("InProgress".to_owned())));
    world.stop_tuning(&id);
    assert_eq!(delete(&world, &id), Err(DeleteError::NotEnded("Stopping".to_owned())));
    let id = ended(&world, "two");
    now(world.write(Write::Put(stored::active_row(&id), Condition::Always))).unwrap();
    assert_eq!(delete(&world, &id), Err(DeleteError::Unsettled));
    assert!(now(Store::new(world.clone().into()).load(&id)).unwrap().is_some());
}

/// A delivery that arrives after the deletion must not bring the tuning back.
#[test]
fn late_deliveries_do_not_restore_a_deleted_tuning() {
    let world = World::new();
    let id = ended(&world, "one");
    // The decider has the state in its cache.
    world.decide(&id, &[]);
    delete(&world, &id).unwrap();
    let at = Time(world.lock().now);
    let late = Recorded { key: "late".to_owned(), at, fact: Fact::TimePassed };
    now(record::deliver(&world, &id, &[late], at)).unwrap();
    world.decide(&id, &[]);
    assert!(now(Store::new(world.clone().into()).head(&id)).unwrap().is_none());
    sweep_for(&world, 125, unpaced());
    assert_eq!(rows_of(&world, &id), [""; 0]);
}

/// P4 for deletions: a sweep that dies between any two calls leaves nothing that a later sweep does not remove.
#[test]
fn p4_a_sweep_that_dies_during_the_removal_is_continued() {
    for calls in 1..12 {
        let world = World::new();
        let id = ended(&world, "one");
        delete(&world, &id).unwrap();
        world.pass(HOUR);
        let steps = world.lock().steps;
        world.lock().stall_at = Some(steps + calls);
        let (sweeping, _) = world.begin("dies", unpaced());
        drop(sweeping);
        world.lock().stall_at = None;
        sweep_for(&world, 125, unpaced());
        assert_eq!(rows_of(&world, &id), [""; 0], "after {calls} calls");
    }
}

#[test]
fn ended_tunings_are_deleted_after_the_retention_and_others_never() {
    let world = World::new();
    let id = ended(&world, "one");
    let running = world.running("endless", 1);
    let limits = Limits { retention: Some(Millis(24 * HOUR)), ..unpaced() };
    let retired: usize = sweep_for(&world, 23 * 60, limits).iter().map(|swept| swept.retired).sum();
    assert_eq!(retired, 0);
    assert!(rows_of(&world, &id).len() > 3);
    let retired: usize = sweep_for(&world, 4 * 60, limits).iter().map(|swept| swept.retired).sum();
    assert_eq!(retired, 1);
    assert_eq!(rows_of(&world, &id), [""; 0]);
    sweep_for(&world, 48 * 60, limits);
    assert!(now(Store::new(world.clone().into()).load(&running)).unwrap().is_some());
}

/// P8 with a retention: one more query an hour.
#[test]
fn p8_a_retention_costs_one_query_an_hour() {
    let world = World::new();
    sweep_for(&world, 24 * 60, Limits { retention: Some(Millis(24 * HOUR)), ..unpaced() });
    let Usage { queries, reads, transactions, .. } = world.lock().table.usage();
    assert_eq!((queries, reads, transactions), (24 * 60 + 2 * 24, 0, 0));
}

#[test]
fn an_unreadable_tuning_does_not_keep_the_others_from_their_retention() {
    let world = World::new();
    let damaged = ended(&world, "a-damaged");
    let id = ended(&world, "one");
    let index = world.lock().table.rows().into_iter().find(|row| row.key.sk == "a-damaged").unwrap();
    now(world.write(Write::Put(index.clone().with("type", "nonsense"), Condition::Always))).unwrap();
    let head = now(world.get(&stored::head_key(&damaged))).unwrap().unwrap();
    let limits = Limits { retention: Some(Millis(24 * HOUR)), ..unpaced() };
    let failed: usize = sweep_for(&world, 28 * 60, limits).iter().map(|swept| swept.failed).sum();
    assert!(failed > 0);
    assert_eq!(rows_of(&world, &id), [""; 0]);
    // The same with an unreadable head.
    now(world.write(Write::Put(index, Condition::Always))).unwrap();
    now(world.write(Write::Put(head.with("type", "nonsense"), Condition::Always))).unwrap();
    let id = ended(&world, "one");
    sweep_for(&world, 28 * 60, limits);
    assert_eq!(rows_of(&world, &id), [""; 0]);
    assert!(rows_of(&world, &damaged).len() > 3);
}
