//! The stored record of one training job, and the only functions that change it.
//!
//! Pure: time is an argument. The caller saves the record after each change. The record of an ended job changes only
//! when its warm pool is released or tags are added.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tuning::unit::time::{Millis, Time};

use super::region::Region;

pub(crate) const VERSION: u32 = 1;

/// Defines a status whose values have the names that SageMaker shows.
macro_rules! status {
    ($status:ident { $($(#[$default:meta])? $value:ident,)* }) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        pub(crate) enum $status {
            $($(#[$default])? $value,)*
        }

        impl $status {
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$value => stringify!($value),)*
                }
            }
        }
    };
}

status! {
    Status {
        #[default]
        InProgress,
        Completed,
        Failed,
        Stopping,
        Stopped,
    }
}

status! {
    Secondary {
        #[default]
        Starting,
        Downloading,
        Training,
        Uploading,
        Interrupted,
        Stopping,
        Completed,
        Failed,
        Stopped,
        MaxRuntimeExceeded,
        MaxWaitTimeExceeded,
    }
}

impl Status {
    pub(crate) fn ended(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Stopped => true,
            Self::InProgress | Self::Stopping => false,
        }
    }
}

impl Secondary {
    fn message(self) -> &'static str {
        match self {
            Self::Starting => "Launching requested ML instances",
            Self::Downloading => "Downloading input data",
            Self::Training => "Training image download completed. Training in progress.",
            Self::Uploading => "Uploading generated training model",
            Self::Interrupted => "Training job interrupted; waiting for spot capacity",
            Self::Stopping => "Stopping the training job",
            Self::Completed => "Training job completed",
            Self::Failed => "Training job failed",
            Self::Stopped => "Training job stopped",
            Self::MaxRuntimeExceeded => "Training job runtime exceeded MaxRuntimeInSeconds provided",
            Self::MaxWaitTimeExceeded => "Maximum wait time exceeded",
        }
    }
}

/// One entry of `SecondaryStatusTransitions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Transition {
    pub(crate) status: Secondary,
    pub(crate) start: Time,
    pub(crate) end: Option<Time>,
    pub(crate) message: String,
}

/// Why a job is being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StopCause {
    User,
    MaxRuntime,
    MaxWait,
}

/// One run of the job's processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// `SM_ATTEMPT_ID` of its processes.
    pub(crate) attempt: String,
    /// The digits in the names of its log streams: its start, made unique.
    pub(crate) stream: Time,
    /// The start of billing, when the download began.
    pub(crate) started: Option<Time>,
    pub(crate) ended: Option<Time>,
}

/// How a job ends, unless a stop was requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    Failed(String),
    /// Spot capacity did not return in time.
    MaxWait,
}

/// The release of a warm pool before its expiry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Release {
    pub(crate) at: Time,
    /// The job that reuses the instances; `None` if they were given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
}

/// The stored state of a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) version: u32,
    /// The number of changes so far. Identifies events.
    pub(crate) sequence: u64,
    pub(crate) status: Status,
    pub(crate) secondary: Secondary,
    pub(crate) created: Time,
    pub(crate) modified: Time,
    pub(crate) started: Option<Time>,
    pub(crate) ended: Option<Time>,
    pub(crate) billable_seconds: Option<u64>,
    pub(crate) failure_reason: Option<String>,
    pub(crate) stop_cause: Option<StopCause>,
    pub(crate) spot: bool,
    pub(crate) transitions: Vec<Transition>,
    pub(crate) runs: Vec<Run>,
    pub(crate) request: Value,
    /// The Region of the client that created the job; `None` if it named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) region: Option<Region>,
    /// The release of the warm pool; `None` if it was not released before its expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pool_release: Option<Release>,
    /// Tags added after the creation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) added_tags: BTreeMap<String, String>,
    /// For how long no service was open since the creation of the job. That is no wait for capacity.
    #[serde(default, skip_serializing_if = "Millis::is_zero")]
    pub(crate) closed: Millis,
}

impl Record {
    pub(crate) fn new(request: Value, region: Option<Region>, spot: bool, now: Time) -> Self {
        let new = Self { created: now, modified: now, ..Self::default() };
        let mut record = Self { version: VERSION, spot, request, region, ..new };
        record.enter(Secondary::Starting, now);
        record
    }

    pub(crate) fn enter(&mut self, secondary: Secondary, now: Time) {
        let now = now.max(self.modified);
        if let Some(last) = self.transitions.last_mut() {
            last.end = Some(now);
            if last.status == Secondary::Starting {
                "Preparing the instances for training".clone_into(&mut last.message);
            }
        }
        if secondary == Secondary::Downloading {
            self.started.get_or_insert(now);
            if let Some(run) = self.runs.last_mut() {
                run.started = Some(now);
            }
        }
        let message = secondary.message().to_owned();
        self.transitions.push(Transition { status: secondary, start: now, end: None, message });
        self.secondary = secondary;
        self.modified = now;
        self.sequence = self.sequence.saturating_add(1);
    }

    /// Starts a run. `attempt` returns the attempt ID for the number of the run and its stream digits.
    pub(crate) fn begin_run(&mut self, attempt: impl FnOnce(usize, Time) -> String, now: Time) -> &Run {
        let stream = self.runs.last().map_or(now, |last| now.max(last.stream + Millis(1)));
        let number = self.runs.len().saturating_add(1);
        let run = Run { attempt: attempt(number, stream), stream, started: None, ended: None };
        self.runs.push(run);
        self.runs.last().expect("just pushed")
    }

    /// Ends the current run: no process of the job is left.
    pub(crate) fn end_run(&mut self, at: Time) {
        if let Some(run) = self.runs.last_mut() {
            let at = at.max(run.started.unwrap_or(run.stream));
            run.ended.get_or_insert(at);
        }
    }

    /// Interrupts the job: it waits for capacity.
    pub(crate) fn interrupt(&mut self, now: Time) {
        self.end_run(now);
        self.enter(Secondary::Interrupted, now);
    }

    pub(crate) fn request_stop(&mut self, cause: StopCause, now: Time) {
        self.status = Status::Stopping;
        self.stop_cause = Some(cause);
        self.enter(Secondary::Stopping, now);
        if let (StopCause::MaxRuntime, Some(last)) = (cause, self.transitions.last_mut()) {
            last.message.clear();
        }
    }

    /// Ends the job. A requested stop decides the status, otherwise `end` does.
    pub(crate) fn finish(&mut self, end: End, now: Time) {
        let now = now.max(self.modified);
        self.end_run(now);
        let (status, secondary) = match (self.stop_cause, end) {
            (Some(StopCause::User), _) => (Status::Stopped, Secondary::Stopped),
            (Some(StopCause::MaxRuntime), _) => (Status::Stopped, Secondary::MaxRuntimeExceeded),
            (Some(StopCause::MaxWait), _) | (None, End::MaxWait) => {
                (Status::Stopped, Secondary::MaxWaitTimeExceeded)
            }
            (None, End::Completed) => (Status::Completed, Secondary::Completed),
            (None, End::Failed(reason)) => {
                self.failure_reason = Some(reason);
                (Status::Failed, Secondary::Failed)
            }
        };
        self.status = status;
        if self.started.is_some() {
            // The instances of an interrupted job ended with its last run.
            let last_run = self.runs.last().and_then(|run| run.ended).unwrap_or(now);
            self.ended = Some(last_run);
            self.billable_seconds = Some(self.billable(last_run));
        } else if status == Status::Failed {
            // Such a job was refused. Without a bill, its reservation would stay.
            self.billable_seconds = Some(0);
        }
        let never_got_capacity = secondary == Secondary::MaxWaitTimeExceeded && self.started.is_none();
        if let (true, Some(last)) = (never_got_capacity, self.transitions.last_mut()) {
            "Insufficient capacity error while launching instances, retrying!".clone_into(&mut last.message);
        }
        self.enter(secondary, now);
        if let Some(last) = self.transitions.last_mut() {
            last.end = Some(now);
        }
    }

    /// Returns the total duration of all ended runs.
    pub(crate) fn ran(&self) -> Millis {
        let lengths = self.runs.iter().filter_map(|run| Some((run.ended? - run.started?).or_zero()));
        lengths.fold(Millis::ZERO, |sum, length| sum + length)
    }

    /// Returns `TrainingTimeInSeconds`, or `None` before the end.
    pub(crate) fn training_seconds(&self) -> Option<u64> {
        Some((self.ended? - self.started?).seconds_rounded_up())
    }

    pub(crate) fn interruptions(&self) -> usize {
        self.transitions.iter().filter(|transition| transition.status == Secondary::Interrupted).count()
    }

    /// Returns the billable seconds: the time of all runs for a spot or interrupted job, the time from start to end for
    /// another job.
    fn billable(&self, ended: Time) -> u64 {
        let whole = ended - self.started.unwrap_or(ended);
        if self.spot || self.interruptions() > 0 { self.ran() } else { whole }.seconds_rounded_up()
    }
}
