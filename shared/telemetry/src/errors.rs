//! The types of errors that functions report: one table, stable, for alarms, searches and failure queues.
//!
//! A type may be added; none is ever renamed, since alarms outside hang on it.

use std::fmt;

use serde::{Serialize, Serializer};

/// A type of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorType {
    /// See [`ErrorType::meaning`], for this and all others.
    Unreadable,
    /// The table, for now.
    Table,
    /// The table, for good.
    TableRefused,
    /// A damaged row.
    RowUnreadable,
    /// A row of newer code.
    RowNewer,
    /// No time.
    Timeout,
    /// An action was put off.
    Deferred,
    /// A start was refused.
    StartRefused,
    /// The training service, for what a sweep looks up.
    TrainingService,
    /// The price list.
    Prices,
    /// A request of a user.
    RequestRefused,
    /// The event bus.
    Bus,
    /// The environment.
    Settings,
    /// A fault of the program.
    Panic,
    /// Lambda's runtime.
    Runtime,
}

impl ErrorType {
    /// All of them.
    pub const ALL: [Self; 15] = [
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
        Self::Settings,
        Self::Panic,
        Self::Runtime,
    ];

    /// Its name, as it stands in `errorType`.
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
            Self::Settings => "Settings",
            Self::Panic => "Panic",
            Self::Runtime => "Runtime",
        }
    }

    /// What it means, and what follows.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Unreadable => {
                "an event or record cannot be read, now or later; an event ends in the failure queue, a record is passed over"
            }
            Self::Table => "the table did not answer, throttled, or lost a race; it is delivered again",
            Self::TableRefused => "the table will never do it: no access, no such table, a row too large",
            Self::RowUnreadable => "a stored row is damaged",
            Self::RowNewer => "a stored row was written by newer code; deploy that code",
            Self::Timeout => "the function's time was nearly over; what was not done is delivered again",
            Self::Deferred => "an action cannot be performed now; the sweeper tries again",
            Self::StartRefused => {
                "SageMaker will never take this training job; `describe` has its message, `error` its code"
            }
            Self::TrainingService => {
                "SageMaker did not list, describe or stop a job; the next sweep tries again"
            }
            Self::Prices => {
                "the price list did not answer, or refused, and no price was kept; `error` says which"
            }
            Self::RequestRefused => "a request was refused, with this code",
            Self::Bus => "the event bus was not told of a trial; it is not tried again",
            Self::Settings => "an environment variable is missing or wrong; the function does not start",
            Self::Panic => "a fault of the program ended the process; what it was given is delivered again",
            Self::Runtime => "Lambda's runtime interface failed; the process ends",
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
