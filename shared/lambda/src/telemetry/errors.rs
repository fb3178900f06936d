//! The error types that functions report, in one table: stable names for alarms, searches and failure queues.
//!
//! A type may be added but never renamed, since alarms outside this project depend on it.

use std::fmt;

use serde::Serialize;

/// Defines [`ErrorType`]. A row has the name, and the meaning with the consequence.
macro_rules! error_types {
    ($($name:ident = $meaning:literal;)*) => {
        /// A type of error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        pub enum ErrorType {
            $(#[doc = $meaning] $name,)*
        }

        impl ErrorType {
            /// All types.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the name, as in the field `errorType`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Returns the meaning and the consequence.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => $meaning,)*
                }
            }
        }
    };
}

error_types! {
    Unreadable = "an event or record is unreadable; the event goes to the failure queue, the record is skipped";
    Table = "the table did not respond, throttled, or reported a conflict; the record is delivered again";
    TableRefused = "the table rejected the request permanently: no access, no such table, or a row that is too large";
    RowUnreadable = "a stored row is damaged";
    RowNewer = "a stored row was written by newer code; deploy that version";
    Timeout = "the invocation ran out of time; unfinished records are delivered again";
    Deferred = "an action cannot be performed now; the sweeper retries it";
    StartRefused = "SageMaker rejected the training job permanently; `describe` has the message, `error` the code";
    TrainingService =
        "SageMaker failed to list, describe or stop a job; the next sweep retries. `api`: it did not return a parent tuning job";
    Prices = "the price list did not respond or rejected the request, and no price was cached; see `error`";
    RequestRefused = "a request was rejected, with this code";
    Bus = "a trial event was not published; it is not retried";
    HandOver = "starts were not handed over to another invocation; the same invocation performs them";
    Settings = "an environment variable is missing or invalid; the function does not start";
    Panic = "a bug ended the process; Lambda delivers the payload again";
    Runtime = "Lambda's runtime interface failed, and the process ended";
}

impl fmt::Display for ErrorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
