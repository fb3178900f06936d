//! The list of a tuning's training jobs while one of them leaves the state.

use std::sync::{Arc, Mutex};

use port_tests::memory::MemoryTable;
use tuning::log::fact::{JobEnd, JobPhase};
use use_cases::describe::summaries;
use use_cases::ports::table::{Page, Query, Table, TableError, Write};
use use_cases::store::Store;
use wire::item::{Item, Key};
use wire::stored::HEAD;

use super::world::{World, now};

/// An event between two reads, which happens once.
type Event = Box<dyn FnOnce() + Send>;

/// The in-memory table, which runs an event right after the first read of a head or of job summaries.
pub(super) struct Between {
    table: MemoryTable,
    act: Mutex<Option<Event>>,
}

impl Between {
    pub(super) fn new(table: MemoryTable, event: impl FnOnce() + Send + 'static) -> Self {
        Self { table, act: Mutex::new(Some(Box::new(event))) }
    }

    fn act(&self) {
        let act = self.act.lock().unwrap().take();
        if let Some(act) = act {
            act();
        }
    }
}

impl Table for Between {
    async fn get(&self, key: &Key) -> Result<Option<Item>, TableError> {
        let read = self.table.get(key).await;
        if key.sk == HEAD {
            self.act();
        }
        read
    }
    async fn write(&self, write: Write) -> Result<(), TableError> {
        self.table.write(write).await
    }
    async fn transact(&self, writes: Vec<Write>, token: &str) -> Result<(), TableError> {
        self.table.transact(writes, token).await
    }
    async fn query(&self, query: &Query) -> Result<Page, TableError> {
        let read = self.table.query(query).await;
        if query.prefix == "JOB#" {
            self.act();
        }
        read
    }
}

#[test]
fn a_job_that_leaves_the_state_between_two_reads_is_listed_once() {
    let mut world = World::new(3);
    world.phase(1, JobPhase::Training);
    world.logged(1, &[(9, 0.5)]);
    let (table, id) = (world.table.clone(), world.id.clone());
    let between = Between::new(table, move || world.billed(1, JobEnd::Completed, 5));
    let (_, jobs) = now(summaries(&Store::new(Arc::new(between)), &id)).unwrap().unwrap();
    let trials: Vec<u32> = jobs.iter().map(|job| job.job.trial.0).collect();
    assert_eq!(trials, [0, 1, 2]);
    // The row is newer than the state.
    assert_eq!(jobs[1].billable_seconds, Some(5));
}
