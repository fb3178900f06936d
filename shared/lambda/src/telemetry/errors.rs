//! The error types that functions report, in one table: stable names for alarms, searches and failure queues.
//!
//! A type may be added but never renamed, since alarms outside this project depend on it.

use std::fmt;

use serde::{Serialize, Serializer};

/// A type of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorType {
    /// An unreadable event or record. [`ErrorType::meaning`] describes every type.
    Unreadable,
    /// A transient error of the table.
    Table,
    /// A permanent error of the table.
    TableRefused,
    /// A damaged row.
    RowUnreadable,
    /// A row that newer code wrote.
    RowNewer,
    /// The invocation ran out of time.
    Timeout,
    /// A deferred action.
    Deferred,
    /// A rejected training job.
    StartRefused,
    /// An error of the training service in a sweep.
    TrainingService,
    /// An error of the price list.
    Prices,
    /// A rejected request.
    RequestRefused,
    /// An error of the event bus.
    Bus,
    /// Starts that no other invocation took.
    HandOver,
    /// A missing or invalid environment variable.
    Settings,
    /// A panic.
    Panic,
    /// An error of Lambda's runtime interface.
    Runtime,
}

impl ErrorType {
    /// All types.
    pub const ALL: [Self; 16] = [
        Self::Unreadable,
        Self::Table,
        Self::TableRefused,
        Self::RowUnreadable,
        Self::RowNewer,
        Self::Timeout,
        Self::Deferred,
        Self::StartRefused,
        Self::TrainingService,
        Self::Prices,
        Self::RequestRefused,
        Self::Bus,
        Self::HandOver,
        Self::Settings,
        Self::Panic,
        Self::Runtime,
    ];

    /// Returns the name, as in the field `errorType`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "Unreadable",
            Self::Table => "Table",
            Self::TableRefused => "TableRefused",
            Self::RowUnreadable => "RowUnreadable",
            Self::RowNewer => "RowNewer",
            Self::Timeout => "Timeout",
            Self::Deferred => "Deferred",
            Self::StartRefused => "StartRefused",
            Self::TrainingService => "TrainingService",
            Self::Prices => "Prices",
            Self::RequestRefused => "RequestRefused",
            Self::Bus => "Bus",
            Self::HandOver => "HandOver",
            Self::Settings => "Settings",
            Self::Panic => "Panic",
            Self::Runtime => "Runtime",
        }
    }

    /// Returns the meaning and the consequence.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Unreadable => {
                "an event or record is unreadable; the event goes to the failure queue, the record is skipped"
            }
            Self::Table => {
                "the table did not respond, throttled, or reported a conflict; the record is delivered again"
            }
            Self::TableRefused => {
                "the table rejected the request permanently: no access, no such table, or a row that is too large"
            }
            Self::RowUnreadable => "a stored row is damaged",
            Self::RowNewer => "a stored row was written by newer code; deploy that version",
            Self::Timeout => "the invocation ran out of time; unfinished records are delivered again",
            Self::Deferred => "an action cannot be performed now; the sweeper retries it",
            Self::StartRefused => {
                "SageMaker rejected the training job permanently; `describe` has the message, `error` the code"
            }
            Self::TrainingService => {
                "SageMaker failed to list, describe or stop a job; the next sweep retries. `api`: it did not return a parent tuning job"
            }
            Self::Prices => {
                "the price list did not respond or rejected the request, and no price was cached; see `error`"
            }
            Self::RequestRefused => "a request was rejected, with this code",
            Self::Bus => "a trial event was not published; it is not retried",
            Self::HandOver => {
                "starts were not handed over to another invocation; the same invocation performs them"
            }
            Self::Settings => "an environment variable is missing or invalid; the function does not start",
            Self::Panic => "a bug ended the process; Lambda delivers the payload again",
            Self::Runtime => "Lambda's runtime interface failed, and the process ended",
        }
    }
}

impl fmt::Display for ErrorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for ErrorType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
