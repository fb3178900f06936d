//! The list of tunings that are not over.

use tuning::log::fact::{Fact, JobEnd, JobPhase};
use tuning::unit::time::Time;
use use_cases::active::{ActiveTuning, ActiveTunings, active};
use use_cases::lookup;
use use_cases::memory::MemoryTable;
use use_cases::ports::table::{Condition, Table, Write};
use wire::item::Item;
use wire::stored::head_key;

use super::world::{World, now, request};

#[test]
fn active_tunings_are_listed_with_their_stop_requests() {
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
    // Its decider has not seen the stop request yet.
    now(lookup::stop(&ordered.store, "ordered", Time(ordered.now))).unwrap();
    assert_eq!(names(), list(&[("Stopping", true), ("ordered", true), ("running", false)]));
}

#[test]
fn regression_an_unreadable_tuning_does_not_hide_the_others() {
    let table = MemoryTable::new();
    let [first, damaged, last] = ["a", "b-c", "d"].map(|name| World::of(table.clone(), &request(name, 1)));
    let head = Item::new(head_key(&damaged.id));
    now(table.write(Write::Put(head, Condition::Always))).unwrap();
    let ActiveTunings { tunings, unread } = now(active(&first.store)).unwrap();
    assert_eq!(tunings.iter().map(|one| &one.id).collect::<Vec<_>>(), [&first.id, &last.id]);
    assert_eq!(unread.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["b-c"]);
}
