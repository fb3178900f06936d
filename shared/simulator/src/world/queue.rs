//! What happens next, in order of virtual time; what is due at one time comes in the order it was scheduled.

use std::collections::BTreeMap;

use serde_json::Value;
use wire::events::logs::LogBatch;

use super::life::Tick;
use super::stream::{Consumer, Record};
use crate::site::Function;

/// Something that is due.
#[derive(Debug)]
pub(crate) enum Event {
    /// A process goes on.
    Wake(u64),
    /// A process has run for as long as its function may.
    TimeOver(u64),
    /// A create whose caller gave up, or died, arrives.
    CreateLands(Function, Value),
    /// A training job goes on.
    Tick { job: usize, generation: u32, tick: Tick },
    /// Lines of a job's log stream are sent to the subscriber.
    Flush { job: usize, stream: usize },
    /// A shard of the table's stream is read for a consumer.
    Pump(Consumer, usize),
    /// A batch of stream records comes again.
    Redeliver(Consumer, Vec<Record>),
    /// A function gets an event from outside.
    Deliver(Delivery),
    /// It is time to sweep.
    Sweep,
    /// A sweep that is late, or a second one.
    SweepNow,
    /// A tuning is submitted.
    Submit(usize),
    /// A user looks at a tuning and at its training jobs.
    Look(usize),
    /// A user stops a tuning.
    UserStop(usize),
    /// A user makes a change of a tuning, or ends the pause that was made with it.
    UserChange(usize, usize, bool),
    /// The liveness phase begins.
    FaultsEnd,
}

/// An event from outside on its way to a function.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) what: What,
    /// Deliveries that failed.
    pub(crate) failures: u32,
}

/// What is delivered.
#[derive(Debug, Clone)]
pub(crate) enum What {
    /// A state change, as EventBridge sends it.
    JobEvent(Value),
    /// Lines of a log.
    Logs(LogBatch),
    /// What nobody can read, for `job_events` or else for `job_logs`.
    Junk(Value, bool),
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    due: BTreeMap<(i64, u64), Event>,
    scheduled: u64,
}

impl Queue {
    /// `event` is due at `at`.
    pub(crate) fn push(&mut self, at: i64, event: Event) {
        self.scheduled += 1;
        self.due.insert((at, self.scheduled), event);
    }

    /// What is due first, and when.
    pub(crate) fn pop(&mut self) -> Option<(i64, Event)> {
        self.due.pop_first().map(|((at, _), event)| (at, event))
    }
}
