//! One sweeper at a time; one that died or froze does no harm.

use service::memory::Usage;
use service::ports::table::{Condition, Table, Write};
use service::sweep::Sort;
use wire::names::training_job_name;
use wire::stored::{self, SweepRow};

use crate::world::{MINUTE, World, now, poll, unpaced};

fn row(world: &World) -> SweepRow {
    let table = world.lock().table.clone();
    SweepRow::read(&now(table.get(&SweepRow::key())).unwrap().unwrap()).unwrap()
}

/// A world with one silent job, and a sweep that stalls after describing it.
fn silent(world: &World) {
    world.running("one", 1);
    world.pass(10 * MINUTE);
}

fn stall_at(world: &World, sort: Sort) {
    // Learned from a copy of this world: a sweep makes the same calls again.
    let first = world.lock().steps;
    let mut n = first;
    loop {
        n += 1;
        world.lock().stall_at = Some(n);
        world.lock().steps = first;
        let (sweeping, swept) = world.begin("probe", unpaced());
        drop(sweeping);
        world.lock().stalled = false;
        assert_eq!(swept, None, "the sweep never makes a call of sort {sort:?}");
        let found = world.calls().last().is_some_and(|call| call.sort == sort);
        let table = world.lock().table.clone();
        now(table.write(Write::Delete(SweepRow::key(), Condition::Always))).unwrap();
        if found {
            world.lock().steps = first;
            world.lock().stall_at = Some(n);
            return;
        }
    }
}

#[test]
fn a_second_sweep_returns_at_once_and_costs_one_request() {
    let world = World::new();
    silent(&world);
    stall_at(&world, Sort::Describe);
    let (mut first, swept) = world.begin("first", unpaced());
    assert_eq!(swept, None, "it stalls");
    let before = world.lock().table.usage();
    let second = world.begin("second", unpaced()).1.unwrap();
    assert!(second.busy);
    let after = world.lock().table.usage();
    assert_eq!(after, Usage { queries: before.queries + 1, read_units: after.read_units, ..before });
    world.lock().stalled = false;
    let first = poll(first.as_mut()).unwrap();
    assert_eq!((first.busy, first.lost, first.looked), (false, false, 1));
    assert_eq!(row(&world).expires, 0, "the lease is given back");
}

#[test]
fn a_lease_of_a_sweeper_that_died_runs_out() {
    let world = World::new();
    silent(&world);
    stall_at(&world, Sort::Describe);
    drop(world.begin("first", unpaced()));
    world.lock().stalled = false;
    world.pass(2 * MINUTE - 1);
    assert!(world.begin("second", unpaced()).1.unwrap().busy);
    world.pass(1);
    let second = world.begin("second", unpaced()).1.unwrap();
    assert_eq!((second.busy, second.looked), (false, 1));
}

#[test]
fn a_sweeper_that_was_restarted_does_not_wait_for_its_own_lease() {
    let world = World::new();
    silent(&world);
    stall_at(&world, Sort::Describe);
    drop(world.begin("first", unpaced()));
    world.lock().stalled = false;
    assert_eq!(world.begin("first", unpaced()).1.unwrap().looked, 1);
}

#[test]
fn of_two_that_find_the_lease_free_one_takes_it() {
    let world = World::new();
    silent(&world);
    // The first call is the query that shows the lease to be free.
    world.lock().steps = 0;
    world.lock().stall_at = Some(1);
    let (mut first, swept) = world.begin("first", unpaced());
    assert_eq!(swept, None);
    assert_eq!(world.begin("second", unpaced()).1.unwrap().looked, 1);
    world.calls();
    world.lock().stalled = false;
    assert!(poll(first.as_mut()).unwrap().busy);
    assert_eq!(world.calls(), [], "it does nothing");
}

#[test]
fn a_sweeper_that_thaws_after_its_lease_does_nothing_more() {
    let world = World::new();
    let id = world.running("one", 2);
    world.pass(10 * MINUTE);
    stall_at(&world, Sort::Describe);
    let (mut frozen, _) = world.begin("frozen", unpaced());
    world.pass(5 * MINUTE);
    // Its stall is its own.
    let swept = world.begin("other", unpaced()).1.unwrap();
    assert_eq!((swept.busy, swept.looked), (false, 2));
    let after = row(&world);
    world.calls();
    world.lock().stalled = false;
    let frozen = poll(frozen.as_mut()).unwrap();
    assert!(frozen.lost, "it learns that it has lost its lease");
    assert_eq!(world.calls(), [], "no call after its deadline");
    assert_eq!(row(&world), after, "nor does it touch the lease of another");
    assert_eq!(world.live(&id).len(), 2);
}

#[test]
fn a_damaged_row_of_the_sweeper_is_replaced_and_a_newer_one_is_left_alone() {
    let world = World::new();
    silent(&world);
    let table = world.lock().table.clone();
    let damaged = SweepRow::default().row().with("data", "{");
    now(table.write(Write::Put(damaged, Condition::Always))).unwrap();
    assert_eq!(world.sweep(unpaced()).looked, 1);
    assert_eq!(row(&world).fence, 1);
    let newer = SweepRow::default().row().with("version", stored::ROW_VERSION + 1);
    now(table.write(Write::Put(newer, Condition::Always))).unwrap();
    now(world.sweeper("sweeper", unpaced()).sweep()).unwrap_err();
}

/// A tuning whose state kills whoever loads it comes last after it has killed once.
#[test]
fn a_tuning_that_kills_its_sweeper_does_not_keep_the_others_from_their_turn() {
    let world = World::new();
    let ids: Vec<String> = ["a", "b", "c"].iter().map(|name| world.running(name, 1)).collect();
    for id in &ids {
        world.stop_tuning(id);
    }
    world.lock().stall_on = Some(stored::tuning_partition(&ids[0]));
    for _ in 0..2 {
        world.pass(3 * MINUTE);
        let (sweeping, swept) = world.begin("sweeper", unpaced());
        assert_eq!(swept, None, "it dies");
        drop(sweeping);
        world.lock().stalled = false;
    }
    let job = |id: &str| training_job_name(id, tuning::fact::JobKey { trial: 0, rung: 0, attempt: 1 });
    let states: Vec<&str> = ids.iter().map(|id| world.status(&job(id))).collect();
    assert_eq!(states, ["InProgress", "Stopped", "Stopped"]);
}
