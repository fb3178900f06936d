//! Which tunings are not over.

use service::active::{ActiveTuning, ActiveTunings, active};
use service::lookup;
use service::memory::MemoryTable;
use service::ports::table::{Condition, Table, Write};
use tuning::fact::{Fact, JobEnd, JobPhase};
use wire::item::Item;
use wire::stored::head_key;

use crate::world::{World, now, request};

#[test]
fn those_that_are_not_over_are_active_and_one_that_is_stopping_is_told() {
    let table = MemoryTable::new();
    let mut over = World::of(table.clone(), &request("over", 1));
    let stopping = World::of(table.clone(), &request("Stopping", 1));
    let ordered = World::of(table.clone(), &request("ordered", 1));
    let running = World::of(table.clone(), &request("running", 1));
    let names = || -> Vec<(String, bool)> {
        let ActiveTunings { tunings, unread } = now(active(&running.store)).unwrap();
        assert_eq!(unread, []);
        tunings.into_iter().map(|ActiveTuning { name, stopping, .. }| (name, stopping)).collect()
    };
    let list = |names: &[(&str, bool)]| -> Vec<(String, bool)> {
        names.iter().map(|(name, stopping)| ((*name).to_owned(), *stopping)).collect()
    };
    assert_eq!(
        names(),
        list(&[("Stopping", false), ("ordered", false), ("over", false), ("running", false)])
    );
    over.phase(0, JobPhase::Training);
    over.logged(0, &[(9, 0.5)]);
    over.billed(0, JobEnd::Completed, 5);
    let mut stopping = stopping;
    stopping.phase(0, JobPhase::Training);
    stopping.fact(Fact::StopRequested);
    // Its decider has not heard of it yet.
    now(lookup::stop(&ordered.store, "ordered", ordered.now)).unwrap();
    assert_eq!(names(), list(&[("Stopping", true), ("ordered", true), ("running", false)]));
}

#[test]
fn regression_one_that_cannot_be_read_does_not_hide_the_others() {
    let table = MemoryTable::new();
    let [first, damaged, last] = ["a", "b-c", "d"].map(|name| World::of(table.clone(), &request(name, 1)));
    let head = Item::new(head_key(&damaged.id));
    now(table.write(Write::Put(head, Condition::Always))).unwrap();
    let ActiveTunings { tunings, unread } = now(active(&first.store)).unwrap();
    assert_eq!(tunings.iter().map(|one| &one.id).collect::<Vec<_>>(), [&first.id, &last.id]);
    assert_eq!(unread.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["b-c"]);
}
