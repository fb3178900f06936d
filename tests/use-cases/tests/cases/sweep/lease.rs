//! One sweeper runs at a time, and one that died or froze does no harm.

use tuning::unit::time::Time;
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::ports::usage::Usage;
use use_cases::sweep::CallKind;
use wire::names::training_job_name;
use wire::stored::{self, SweepRow};

use super::world::{MINUTE, World, now, poll, unpaced};

fn row(world: &World) -> SweepRow {
    let table = world.lock().table.clone();
    SweepRow::read(&now(table.get(&SweepRow::key())).unwrap().unwrap()).unwrap()
}

/// A world with one silent job, and a sweep that stalls after describing it.
fn silent(world: &World) {
    world.running("one", 1);
    world.pass(10 * MINUTE);
}

fn stall_at(world: &World, sort: CallKind) {
    // The call is found with a copy of this world, because a sweep repeats the same calls.
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
fn a_second_sweep_returns_at_once_after_one_request() {
    let world = World::new();
    silent(&world);
    stall_at(&world, CallKind::Describe);
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
    assert_eq!(row(&world).expires, Time(0), "the lease is released");
}

#[test]
fn the_lease_of_a_dead_sweeper_expires() {
    let world = World::new();
    silent(&world);
    stall_at(&world, CallKind::Describe);
    drop(world.begin("first", unpaced()));
    world.lock().stalled = false;
    world.pass(2 * MINUTE - 1);
    assert!(world.begin("second", unpaced()).1.unwrap().busy);
    world.pass(1);
    let second = world.begin("second", unpaced()).1.unwrap();
    assert_eq!((second.busy, second.looked), (false, 1));
}

#[test]
fn a_restarted_sweeper_does_not_wait_for_its_own_lease() {
    let world = World::new();
    silent(&world);
    stall_at(&world, CallKind::Describe);
    drop(world.begin("first", unpaced()));
    world.lock().stalled = false;
    assert_eq!(world.begin("first", unpaced()).1.unwrap().looked, 1);
}

#[test]
fn one_of_two_concurrent_sweepers_takes_a_free_lease() {
    let world = World::new();
    silent(&world);
    // The first call is the query that shows the free lease.
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
fn a_sweeper_that_resumes_after_its_lease_does_nothing_more() {
    let world = World::new();
    let id = world.running("one", 2);
    world.pass(10 * MINUTE);
    stall_at(&world, CallKind::Describe);
    let (mut frozen, _) = world.begin("frozen", unpaced());
    world.pass(5 * MINUTE);
    // Only this sweeper stalls.
    let swept = world.begin("other", unpaced()).1.unwrap();
    assert_eq!((swept.busy, swept.looked), (false, 2));
    let after = row(&world);
    world.calls();
    world.lock().stalled = false;
    let frozen = poll(frozen.as_mut()).unwrap();
    assert!(frozen.lost, "it detects the lost lease");
    assert_eq!(world.calls(), [], "no call after its deadline");
    assert_eq!(row(&world), after, "it does not change another sweeper's lease");
    assert_eq!(world.live(&id).len(), 2);
}

#[test]
fn a_damaged_lease_row_is_replaced_and_a_newer_one_is_kept() {
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

/// A tuning that crashes every sweeper that loads it is visited last after the first crash.
#[test]
fn a_tuning_that_crashes_the_sweeper_does_not_block_the_others() {
    let world = World::new();
    let ids: Vec<String> = ["a", "b", "c"].iter().map(|name| world.running(name, 1)).collect();
    for id in &ids {
        world.stop_tuning(id);
    }
    world.lock().stall_on = Some(stored::tuning_partition(&ids[0]));
    for _ in 0..2 {
        world.pass(3 * MINUTE);
        let (sweeping, swept) = world.begin("sweeper", unpaced());
        assert_eq!(swept, None, "it crashes");
        drop(sweeping);
        world.lock().stalled = false;
    }
    let job = |id: &str| training_job_name(id, tuning::log::fact::JobKey::new(0, 0, 1));
    let states: Vec<&str> = ids.iter().map(|id| world.status(&job(id))).collect();
    assert_eq!(states, ["InProgress", "Stopped", "Stopped"]);
}
