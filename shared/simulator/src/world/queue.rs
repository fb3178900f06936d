//! The event queue, in the order of virtual time. Events of the same time come in the order in which they were
//! scheduled.

use std::collections::BTreeMap;

use serde_json::Value;
use wire::events::logs::LogBatch;

use crate::site::Function;

/// A scheduled event.
#[derive(Debug)]
pub(crate) enum Event {
    /// A process continues.
    Wake(u64),
    /// A process reaches the time limit of its function.
    TimeOut(u64),
    /// A create arrives whose caller timed out or crashed.
    CreateLands(Function, Value),
    /// An event in the life of a training job.
    Tick { job: usize, generation: u32, tick: Tick },
    /// Lines of a job's log stream are sent to the subscription.
    Flush { job: usize, stream: usize },
    /// A consumer reads a shard of the table's stream.
    Pump(Consumer, usize),
    /// A batch of stream records is delivered again.
    Redeliver(Consumer, Vec<Record>),
    /// A function receives an event from outside.
    Deliver(Delivery),
    /// The minute's sweep is due.
    Sweep,
    /// A sweep starts: the one due, a late one or a second one.
    SweepNow,
    /// A user submits a tuning.
    Submit(usize),
    /// A user describes a tuning and lists its training jobs.
    Look(usize),
    /// A user stops a tuning.
    UserStop(usize),
    /// A user stops a running job of a tuning.
    UserStopJob(usize),
    /// A user changes limits of a tuning: (case, number of the change, whether this ends its pause).
    UserChange(usize, usize, bool),
    /// Faults end; the liveness phase begins.
    FaultsEnd,
}

/// An event in the life of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tick {
    /// It begins to wait for its instances.
    Pends,
    /// Its instances are available.
    Launched,
    /// Its program starts.
    Trains,
    /// An epoch ends.
    Epoch,
    /// Its program has saved its model and ends.
    Saved,
    /// Its model is uploaded.
    Uploaded,
    /// It is stopped; the secondary status has the reason.
    Stopped(&'static str),
    /// It reaches its running-time limit.
    RuntimeOver,
    /// It reaches its waiting-time limit.
    WaitOver,
    /// It is deleted outside the controller.
    Deleted,
}

/// A consumer of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Consumer {
    /// Receives facts and rings.
    Decider,
    /// Receives new actions.
    Actuator,
}

/// A stream record.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) at: i64,
    pub(crate) value: Value,
}

/// An event on its way to a function.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) what: What,
    /// Number of failed deliveries so far.
    pub(crate) failures: u32,
}

/// The content of a delivery.
#[derive(Debug, Clone)]
pub(crate) enum What {
    /// A state change of a training job, as EventBridge sends it.
    JobEvent(Value),
    /// Log lines of a training job.
    Logs(LogBatch),
    /// Starts that an invocation of the actuator handed over to another.
    Starts(Value),
    /// An invalid or foreign event, for `job_events` (true) or for `job_logs` (false).
    Junk(Value, bool),
}

/// The event queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    due: BTreeMap<(i64, u64), Event>,
    scheduled: u64,
}

impl Queue {
    /// Schedules `event` at `at`.
    pub(crate) fn push(&mut self, at: i64, event: Event) {
        self.scheduled += 1;
        self.due.insert((at, self.scheduled), event);
    }

    /// Removes and returns the first event and its time.
    pub(crate) fn pop(&mut self) -> Option<(i64, Event)> {
        self.due.pop_first().map(|((at, _), event)| (at, event))
    }
}
