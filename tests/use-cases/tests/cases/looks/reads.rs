//! The rows that a description of a tuning reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use port_tests::memory::MemoryTable;
use serde_json::json;
use tuning::log::fact::{JobEnd, JobPhase};
use use_cases::decide::SNAPSHOT_EVERY;
use use_cases::describe::{Place, describe};
use use_cases::ports::table::{Condition, Page, Query, Table, TableError, Write};
use use_cases::store::Store;
use wire::item::{Item, Key};
use wire::{sample, stored};

use super::summaries::Between;
use super::world::{World, now, request};

/// The in-memory table, which counts the rows that it returns.
struct Counting {
    table: MemoryTable,
    rows: AtomicUsize,
}

impl Table for Counting {
    async fn get(&self, key: &Key) -> Result<Option<Item>, TableError> {
        let read = self.table.get(key).await?;
        self.rows.fetch_add(usize::from(read.is_some()), Ordering::Relaxed);
        Ok(read)
    }
    async fn write(&self, write: Write) -> Result<(), TableError> {
        self.table.write(write).await
    }
    async fn transact(&self, writes: Vec<Write>, token: &str) -> Result<(), TableError> {
        self.table.transact(writes, token).await
    }
    async fn query(&self, query: &Query) -> Result<Page, TableError> {
        let page = self.table.query(query).await?;
        self.rows.fetch_add(page.items.len(), Ordering::Relaxed);
        Ok(page)
    }
}

/// Returns the rows that a process without a cached state reads to describe the tuning.
fn rows_read(world: &World) -> usize {
    let counting = Arc::new(Counting { table: world.table.clone(), rows: AtomicUsize::new(0) });
    let shown = now(describe(&Store::new(Arc::clone(&counting)), &Place::of_arn(""), &world.id)).unwrap();
    assert_eq!(shown.unwrap().base.status, "InProgress");
    counting.rows.load(Ordering::Relaxed)
}

#[test]
fn a_description_reads_as_many_rows_after_a_thousand_trials_as_after_fifty() {
    const AT_ONCE: u32 = 10;
    let limits = json!({"MaxNumberOfTrainingJobs": 1_010, "MaxParallelTrainingJobs": AT_ONCE});
    let changes = json!({"HyperParameterTuningJobConfig": {"ResourceLimits": limits}});
    let mut world = World::of(MemoryTable::new(), &sample::with(request("t", AT_ONCE), changes));
    let mut read = Vec::new();
    for trial in 0..1_000 {
        world.phase(trial, JobPhase::Training);
        world.logged(trial, &[(9, f64::from(trial % 97))]);
        world.billed(trial, JobEnd::Completed, 5);
        read.push(rows_read(&world));
    }
    let most = |trials: &[usize]| trials.iter().max().copied().unwrap();
    let (early, late) = (most(&read[50..250]), most(&read[800..]));
    assert_eq!(early, late);
    // The head, the definition, the snapshot, and the steps since.
    assert!(late <= 3 + usize::try_from(SNAPSHOT_EVERY).unwrap(), "{late} rows");
}

/// A snapshot only saves time, so an unreadable one costs time and nothing else.
#[test]
fn regression_a_tuning_whose_snapshot_is_unreadable_has_the_state_of_its_steps() {
    let mut world = World::of(MemoryTable::new(), &request("t", 4));
    for trial in 0..4 {
        world.phase(trial, JobPhase::Training);
        for epoch in 0..u32::try_from(SNAPSHOT_EVERY).unwrap() {
            world.logged(trial, &[(u64::from(epoch), f64::from(trial + epoch))]);
        }
    }
    let state = || now(Store::new(Arc::new(world.table.clone())).load(&world.id)).unwrap().unwrap().state;
    let whole = state();
    let prefix = Query::prefix(stored::tuning_partition(&world.id), "SNAP#", 100);
    let chunks = now(world.table.query(&prefix)).unwrap().items;
    assert!(!chunks.is_empty());
    for chunk in chunks {
        let damaged = chunk.with("state", b"another release".to_vec());
        now(world.table.write(Write::Put(damaged, Condition::Always))).unwrap();
    }
    assert_eq!(state(), whole);
    // Also while steps are written: the head moves on and keeps its snapshot.
    let (table, id) = (world.table.clone(), world.id.clone());
    let between = Between::new(table, move || world.logged(0, &[(1_000, 0.5)]));
    let loaded = now(Store::new(Arc::new(between)).load(&id)).unwrap().unwrap();
    assert_eq!(loaded.state, whole);
}
