//! Converts the results of the use cases to log lines and metrics; one file per kind of function.
//!
//! Pure. Success is counted and not logged. Each failure is logged with the tuning, job or action that it concerns.

mod actions;
mod decided;
mod recorded;
mod swept;

use std::fmt::Display;

use crate::telemetry::metrics::EVENTS_UNREADABLE;
use crate::telemetry::{Entry, ErrorType, Report};
use use_cases::batch::{Batch, Part, Progress};
use use_cases::ports::table::TableError;
use use_cases::store::StoreError;
use wire::names::{parse_job_key, training_job_name};
use wire::stored::StoredError;

use crate::Failure;

pub use actions::acts;
pub use decided::decided;
pub use recorded::recorded;
pub use swept::swept;

/// Returns the type of an error of the table or of its rows.
pub fn type_of(error: &StoreError) -> ErrorType {
    match error {
        StoreError::Table(TableError::Refused(_)) => ErrorType::TableRefused,
        StoreError::Table(TableError::Conflict(_) | TableError::Throttled | TableError::Unavailable(_)) => {
            ErrorType::Table
        }
        StoreError::Stored(StoredError::Newer { .. } | StoredError::NewerFact { .. }) => ErrorType::RowNewer,
        StoreError::Stored(StoredError::Unreadable { .. }) => ErrorType::RowUnreadable,
    }
}

/// Logs and counts an unreadable event, and returns the failure of the invocation.
pub fn unreadable(error: &dyn Display, report: &mut Report) -> Failure {
    let failure = Failure::new(ErrorType::Unreadable, error);
    report.add(EVENTS_UNREADABLE, 1_u64);
    report.log(Entry::error("unreadable event").because(failure.error_type, &failure.message));
    failure
}

/// Logs and counts the unreadable records of a batch.
fn bad_records<D>(batch: &Batch<D>, report: &mut Report) {
    report.add(EVENTS_UNREADABLE, batch.unreadable.len());
    for record in &batch.unreadable {
        let place = record.sequence.as_deref().unwrap_or("without a sequence number");
        let error = format!("record {place}: {}", record.reason);
        let entry = Entry::error("unreadable record").because(ErrorType::Unreadable, &error);
        report.log(match &record.tuning {
            Some(id) => entry.tuning(id),
            None => entry,
        });
    }
}

/// Returns the log entry of an unfinished or failed part, or `None` for a finished one.
fn not_done<D>(part: &Part<D>, message: &str) -> Option<Entry> {
    let entry = Entry::error(message).tuning(&part.tuning);
    match &part.progress {
        Progress::Done => None,
        Progress::Open => Some(entry.because(
            ErrorType::Timeout,
            &format!("the invocation ran out of time; {} records are delivered again", part.sequences.len()),
        )),
        Progress::Failed(error) => Some(entry.because(type_of(error), &error.to_string())),
    }
}

/// Returns the log entry of a job that was concluded before its whole log was read.
fn log_cut() -> Entry {
    Entry::warn(
        "a job was concluded before its whole log could be read: values that were not delivered may be missing",
    )
}

/// Returns the log entry of a job that counts as started, since nothing showed for a day whether it exists.
fn assumed_started(why: &str) -> Entry {
    let message = "a training job counts as started: for a day its tags could not be read. Its maximum cost is booked \
                   unless it shows another bill. Allow sagemaker:ListTags";
    Entry::error(message).because(ErrorType::Unreadable, why)
}

/// Returns the name of the training job of an action such as `start-0-0-1`.
fn job_name(id: &str, action: &str) -> Option<String> {
    let (_, key) = action.split_once('-')?;
    parse_job_key(key).map(|job| training_job_name(id, job))
}
