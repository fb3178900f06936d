//! The resources that each function uses in a history: invocations, their duration, table requests, published events,
//! log bytes.
//!
//! `tests/cost` multiplies these counts by prices. Use after the end of all tunings is counted separately, as the use
//! of an idle stack.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::AddAssign;

use use_cases::decide::Decided;
use use_cases::job_events::{About, RecordError, Recorded};
use use_cases::perform::ActionBatch;
use use_cases::ports::usage::Usage;
use use_cases::store::StoreError;
use use_cases::sweep::Swept;

use crate::site::Function;

/// The resources that a function used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Number of invocations.
    pub invocations: u64,
    /// Total duration of the invocations, in ms: the time of their calls. Computing takes no virtual time.
    pub ms: u64,
    /// Requests to the table.
    pub usage: Usage,
    /// Calls to the training service, to its logs and to the price list.
    pub calls: u64,
    /// Number of published events.
    pub published: u64,
    /// Bytes that its [`LogWriter`] wrote.
    pub log_bytes: u64,
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.invocations += other.invocations;
        self.ms += other.ms;
        self.usage += other.usage;
        self.calls += other.calls;
        self.published += other.published;
        self.log_bytes += other.log_bytes;
    }
}

/// Table rows at the end of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoredRows {
    /// Number of rows.
    pub rows: u64,
    /// Their size in bytes, without the overhead that DynamoDB adds to each row.
    pub bytes: u64,
}

/// The resources that all functions used in a history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// Use until the stack was idle.
    pub busy: BTreeMap<Function, Work>,
    /// Use of the idle stack.
    pub idle: BTreeMap<Function, Work>,
    /// Time until the stack was idle, in ms.
    pub busy_ms: i64,
    /// Delivered log lines of training jobs, of all hosts.
    pub lines: u64,
    /// Number of deliveries of log lines.
    pub batches: u64,
    /// Rows at the end, by kind of partition and by whether they expire.
    pub stored: BTreeMap<(String, bool), StoredRows>,
    pub(crate) is_idle: bool,
}

impl Tally {
    /// Returns the counts of `function` for the current phase.
    pub(crate) fn of(&mut self, function: Function) -> &mut Work {
        let side = if self.is_idle { &mut self.idle } else { &mut self.busy };
        side.entry(function).or_default()
    }

    /// Counts from now on as idle; `ms` is the time until then.
    pub(crate) fn begin_idle(&mut self, ms: i64) {
        (self.is_idle, self.busy_ms) = (true, ms);
    }
}

/// The result of an invocation, as a function logs it.
#[derive(Debug)]
pub enum InvocationResult<'a> {
    /// Of a state change of a job, or of a batch of log lines.
    Recorded(&'a Result<Recorded, RecordError>, &'a About),
    /// Of a batch of facts.
    Decided(&'a Decided),
    /// Of a batch of actions.
    ActionBatch(&'a ActionBatch),
    /// Of a sweep, with its duration in ms.
    Swept(&'a Result<Swept, StoreError>, i64),
}

/// Writes the logs of the functions, as the deployed functions do.
pub trait LogWriter: Debug + Send {
    /// Writes the log of an invocation and returns its size in bytes; `now` in ms since the epoch.
    fn write(&mut self, function: Function, now: i64, result: InvocationResult<'_>) -> u64;

    /// Called when the stack becomes idle.
    fn begin_idle(&mut self) {}
}
