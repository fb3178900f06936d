//! What each function used in a history: invocations, their time, requests to the table, events published, bytes logged.
//!
//! For whoever works out what the controller itself costs. Counts only, knows no price. What is used once everything is at
//! rest is counted apart, so that an idle stack can be told from a busy one.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::AddAssign;

use service::decide::Decided;
use service::job_events::{About, RecordError, Recorded};
use service::memory::Usage;
use service::perform::Acts;
use service::store::StoreError;
use service::sweep::Swept;

use crate::site::Function;

/// What a function used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Invocations.
    pub invocations: u64,
    /// Their time, ms: what the calls they made took. They compute in no time.
    pub ms: u64,
    /// Asked of the table.
    pub usage: Usage,
    /// Calls of the training service, its logs and the price list.
    pub calls: u64,
    /// Events published.
    pub published: u64,
    /// Bytes that its [`Teller`] wrote.
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

/// Rows that are left at the end of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kept {
    /// Rows.
    pub rows: u64,
    /// Their bytes, without what DynamoDB adds to each.
    pub bytes: u64,
}

/// What all functions used in a history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// Until everything was at rest.
    pub busy: BTreeMap<Function, Work>,
    /// From then on.
    pub idle: BTreeMap<Function, Work>,
    /// Time until everything was at rest, ms.
    pub busy_ms: i64,
    /// Log lines of training jobs that were delivered, other hosts' too, and deliveries of them.
    pub lines: u64,
    /// Deliveries of log lines.
    pub batches: u64,
    /// Rows left, by kind of partition, those that expire apart.
    pub kept: BTreeMap<(String, bool), Kept>,
    pub(crate) at_rest: bool,
}

impl Tally {
    /// The counts of `function`, now.
    pub(crate) fn of(&mut self, function: Function) -> &mut Work {
        let side = if self.at_rest { &mut self.idle } else { &mut self.busy };
        side.entry(function).or_default()
    }

    /// From now on everything is at rest; it took so long.
    pub(crate) fn rests(&mut self, ms: i64) {
        (self.at_rest, self.busy_ms) = (true, ms);
    }
}

/// What an invocation came to.
#[derive(Debug)]
pub enum Told<'a> {
    /// A state change of a job or a batch of its log.
    Recorded(&'a Result<Recorded, RecordError>, &'a About),
    /// A batch of facts.
    Decided(&'a Decided),
    /// A batch of actions.
    Acts(&'a Acts),
    /// A sweep, and how long it took, ms.
    Swept(&'a Result<Swept, StoreError>, i64),
}

/// Writes what functions tell, as it is deployed.
pub trait Teller: Debug + Send {
    /// The bytes that the log of an invocation of `function` takes; `now` in ms since the epoch.
    fn bytes(&mut self, function: Function, now: i64, told: Told<'_>) -> u64;

    /// From now on everything is at rest.
    fn rests(&mut self) {}
}
