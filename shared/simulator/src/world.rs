//! The world: virtual time, the table and its stream, the training service, deliveries, and the checkers that watch it.
//!
//! Holds no code of the system under test but the in-memory table. Changes only inside [`Event`]s, which the runner takes
//! from the queue one by one.
//!
//! Reads of the table are strong, as they are in the cloud: the table has no secondary index (tunings are found by rows of
//! their own, in the table itself), and the port has no other read. So there is no eventually consistent read to play.

pub(crate) mod call;
mod capacity;
mod checkpoint;
#[cfg(test)]
mod contract;
pub(crate) mod deliver;
mod launched;
pub(crate) mod life;
mod pools;
pub(crate) mod ports;
pub(crate) mod program;
mod promoted;
pub(crate) mod queue;
pub(crate) mod stream;
pub(crate) mod training;
mod truth;
pub(crate) mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use service::memory::MemoryTable;
use service::ports::table::TableError;

use crate::access::{Accesses, Right};
use crate::case::Case;
use crate::check::Checker;
use crate::dice::Dice;
use crate::fault::Faults;
use crate::plan::Plan;
use crate::site::Function;
use crate::tally::{Tally, Teller, Told};
use crate::trace::Trace;
use queue::{Event, Queue};
use stream::{Consumer, Shard};
use training::Training;
use watch::Watch;

/// The world, as processes share it. One thread: the lock is never waited for.
pub(crate) type Shared = Arc<Mutex<World>>;

/// The time at which every history begins, ms since the epoch.
pub(crate) const START: i64 = 1_790_000_000_000;

/// The world.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) plan: Plan,
    pub(crate) cases: Vec<Case>,
    pub(crate) start: i64,
    pub(crate) now: i64,
    pub(crate) queue: Queue,
    pub(crate) table: MemoryTable,
    /// What the functions used until the checkers read it.
    pub(crate) tally_at_end: Tally,
    pub(crate) tally: Tally,
    /// Writes the functions' logs, if somebody wants them counted.
    pub(crate) teller: Option<Box<dyn Teller>>,
    pub(crate) shards: [Vec<Shard>; 2],
    pub(crate) training: Training,
    pub(crate) faults: Faults,
    pub(crate) faults_on: bool,
    /// Latencies, cuts and the like.
    pub(crate) dice: Dice,
    pub(crate) check: Checker,
    pub(crate) watch: Watch,
    pub(crate) trace: Trace,
    /// The process that runs, and which function it is.
    pub(crate) task: u64,
    pub(crate) function: Function,
    /// Set when it dies.
    pub(crate) dead: bool,
    /// For how long processes were frozen, by process, since their time limit last counted it.
    pub(crate) frozen_ms: BTreeMap<u64, i64>,
    /// Calls that killed their process once.
    pub(crate) crashed: BTreeSet<String>,
    /// What each function did to the table.
    pub(crate) accesses: Accesses,
    pub(crate) records_lost: u64,
    pub(crate) given_up: u64,
}

/// The world, for a moment.
pub(crate) fn lock(world: &Shared) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub(crate) fn new(seed: u64, plan: Plan, cases: Vec<Case>, trace: bool) -> Self {
        let faults = Faults::new(seed, &plan.rates, plan.focus);
        let shards = || (0..plan.shards.max(1)).map(|_| Shard::default()).collect();
        Self {
            seed,
            shards: [shards(), shards()],
            check: Checker::new(&cases, plan.monthly_cap),
            watch: Watch::default(),
            plan,
            cases,
            start: START,
            now: START,
            queue: Queue::default(),
            table: MemoryTable::recording(),
            tally_at_end: Tally::default(),
            tally: Tally::default(),
            teller: None,
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
            given_up: 0,
        }
    }

    /// The liveness phase begins.
    pub(crate) fn faults_end(&mut self) {
        self.faults_on = false;
        self.faults.end();
        // What was delayed for a day comes now.
        for consumer in [Consumer::Decider, Consumer::Actuator] {
            for shard in 0..self.shards[0].len() {
                self.queue.push(self.now + 100, Event::Pump(consumer, shard));
            }
        }
    }

    /// Does something to the table for the function that runs, and counts what that takes.
    pub(crate) fn on_table<R>(&mut self, act: impl FnOnce(&MemoryTable) -> R) -> R {
        let before = self.table.usage();
        let result = act(&self.table);
        let used = self.table.usage().since(before);
        self.tally.of(self.function).usage += used;
        result
    }

    /// The function that runs tells what came of its invocation.
    pub(crate) fn log_of(&mut self, told: Told<'_>) {
        let (function, now) = (self.function, self.now);
        let bytes = self.teller.as_mut().map_or(0, |teller| teller.bytes(function, now, told));
        self.tally.of(function).log_bytes += bytes;
    }

    /// The function that runs uses a right in a kind of partition.
    pub(crate) fn accessed(&mut self, right: Right, kind: String) {
        self.accesses.insert((self.function, right, kind));
    }

    /// A write was tried: what it changed is checked and enters the stream.
    pub(crate) fn table_written(&mut self, result: &Result<(), TableError>) {
        if let Err(TableError::Refused(reason)) = result {
            let message = format!("{:?} sent a write that the table refuses: {reason}", self.function);
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
