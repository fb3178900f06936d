//! The world: virtual time, the table and its stream, the training service, deliveries, and the checkers.
//!
//! Contains no code of the system under test except the in-memory table. The world changes only inside [`Event`]s,
//! which the runner takes from the queue one by one.
//!
//! Table reads are strongly consistent, as in the cloud: the port has no other reads, and the table has no secondary
//! index. Index rows in the same table map names to tunings.

pub(crate) mod call;
mod capacity;
mod checkpoint;
#[cfg(test)]
mod contract;
pub(crate) mod deliver;
mod fate;
mod launched;
pub(crate) mod life;
mod pools;
pub(crate) mod ports;
pub(crate) mod program;
mod promoted;
pub(crate) mod queue;
mod rates;
pub(crate) mod stream;
pub(crate) mod training;
mod truth;
pub(crate) mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use port_tests::memory::MemoryTable;
use use_cases::ports::table::TableError;

use crate::access::{Accesses, Right};
use crate::case::Case;
use crate::check::Checker;
use crate::dice::Dice;
use crate::fault::Faults;
use crate::plan::Plan;
use crate::site::Function;
use crate::tally::{InvocationResult, LogWriter, Tally};
use crate::trace::Trace;
use queue::{Consumer, Event, Queue};
use stream::Shard;
use training::Training;
use watch::Watch;

/// The world, shared by all processes. There is one thread, so locking never blocks.
pub(crate) type Shared = Arc<Mutex<World>>;

/// The world of one history.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) plan: Plan,
    pub(crate) cases: Vec<Case>,
    pub(crate) start: i64,
    pub(crate) now: i64,
    pub(crate) queue: Queue,
    pub(crate) table: MemoryTable,
    /// The tally without the use of the checkers at the end.
    pub(crate) tally_at_end: Tally,
    pub(crate) tally: Tally,
    /// Writes the logs of the functions, if log bytes are counted.
    pub(crate) log_writer: Option<Box<dyn LogWriter>>,
    pub(crate) shards: [Vec<Shard>; 2],
    pub(crate) training: Training,
    pub(crate) faults: Faults,
    pub(crate) faults_on: bool,
    /// Draws latencies, batch boundaries and similar values.
    pub(crate) dice: Dice,
    pub(crate) check: Checker,
    pub(crate) watch: Watch,
    pub(crate) trace: Trace,
    /// The running process.
    pub(crate) task: u64,
    /// The function of the running process.
    pub(crate) function: Function,
    /// Whether the running process has crashed.
    pub(crate) dead: bool,
    /// Time that each process was frozen since its time limit was last extended by it, in ms.
    pub(crate) frozen_ms: BTreeMap<u64, i64>,
    /// Calls that have already killed their process once.
    pub(crate) crashed: BTreeSet<String>,
    /// Table accesses of each function.
    pub(crate) accesses: Accesses,
    pub(crate) records_lost: u64,
    pub(crate) deliveries_dropped: u64,
}

/// Locks the world.
pub(crate) fn lock(world: &Shared) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub(crate) fn new(seed: u64, plan: Plan, cases: Vec<Case>, trace: bool) -> Self {
        let faults = Faults::new(seed, &plan.rates, plan.focus);
        let start = plan.start();
        let shards = || (0..plan.shards.max(1)).map(|_| Shard::default()).collect();
        Self {
            seed,
            shards: [shards(), shards()],
            check: Checker::new(&cases, plan.monthly_cap),
            watch: Watch::default(),
            plan,
            cases,
            start,
            now: start,
            queue: Queue::default(),
            table: MemoryTable::recording(),
            tally_at_end: Tally::default(),
            tally: Tally::default(),
            log_writer: None,
            training: Training::default(),
            faults,
            faults_on: true,
            dice: Dice::new(seed, "world", 0),
            trace: Trace::new(trace),
            task: 0,
            function: Function::Api,
            dead: false,
            frozen_ms: BTreeMap::new(),
            crashed: BTreeSet::new(),
            accesses: Accesses::new(),
            records_lost: 0,
            deliveries_dropped: 0,
        }
    }

    /// Ends all faults: the liveness phase begins.
    pub(crate) fn faults_end(&mut self) {
        self.faults_on = false;
        self.faults.end();
        // Long-delayed batches arrive now.
        for consumer in [Consumer::Decider, Consumer::Actuator] {
            for shard in 0..self.shards[0].len() {
                self.queue.push(self.now + 100, Event::Pump(consumer, shard));
            }
        }
    }

    /// Runs a table operation for the running function and counts its use.
    pub(crate) fn on_table<R>(&mut self, act: impl FnOnce(&MemoryTable) -> R) -> R {
        let before = self.table.usage();
        let result = act(&self.table);
        let used = self.table.usage().since(before);
        self.tally.of(self.function).usage += used;
        result
    }

    /// Counts the log bytes of the running function's invocation.
    pub(crate) fn count_log(&mut self, result: InvocationResult<'_>) {
        let (function, now) = (self.function, self.now);
        let bytes = self.log_writer.as_mut().map_or(0, |writer| writer.write(function, now, result));
        self.tally.of(function).log_bytes += bytes;
    }

    /// Records that the running function used a right in a kind of partition.
    pub(crate) fn accessed(&mut self, right: Right, kind: String) {
        self.accesses.insert((self.function, right, kind));
    }

    /// Handles the result of a write: its changes are checked and enter the stream.
    pub(crate) fn table_written(&mut self, result: &Result<(), TableError>) {
        if let Err(TableError::Refused(reason)) = result {
            let message = format!("{:?} sent an invalid write: {reason}", self.function);
            self.check.violation(self.now, &message);
        }
        let changes = self.table.changes();
        if changes.is_empty() {
            return;
        }
        self.check.committed(self.now, &changes);
        self.check_against_truth(&changes);
        for change in &changes {
            let (now, key) = (self.now, &change.key);
            self.trace.line(now, || {
                let new = change.new.as_ref().map(|item| item.attributes.clone());
                format!("  {}/{} = {new:?}", key.pk, key.sk)
            });
            self.stream_change(change);
        }
    }
}
