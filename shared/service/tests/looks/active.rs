//! Which tunings are not over.

use service::active::{ActiveTuning, active};
use service::lookup;
use service::memory::MemoryTable;
use tuning::fact::{Fact, JobEnd, JobPhase};

use crate::world::{World, now, request};

#[test]
fn those_that_are_not_over_are_active_and_one_that_is_stopping_is_told() {
    let table = MemoryTable::new();
    let mut over = World::of(table.clone(), &request("over", 1));
    let stopping = World::of(table.clone(), &request("Stopping", 1));
    let ordered = World::of(table.clone(), &request("ordered", 1));
    let running = World::of(table.clone(), &request("running", 1));
    let names = || -> Vec<(String, bool)> {
        let all: Vec<ActiveTuning> = now(active(&running.store)).unwrap();
        all.into_iter().map(|tuning| (tuning.name, tuning.stopping)).collect()
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
