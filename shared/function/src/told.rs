//! What the use cases brought about, as lines and metrics: one file per kind of function.
//!
//! Pure. Says nothing of what went as it should but its numbers, and of each thing that failed what it was about.

mod acts;
mod decided;
mod recorded;
mod swept;

use std::fmt::Display;

use service::batch::{Batch, Part, Progress};
use service::ports::table::TableError;
use service::store::StoreError;
use telemetry::metrics::EVENTS_UNREADABLE;
use telemetry::{Entry, ErrorType, Report};
use wire::names::{parse_job_key, training_job_name};
use wire::stored::StoredError;

use crate::Failure;

pub use acts::acts;
pub use decided::decided;
pub use recorded::recorded;
pub use swept::swept;

/// The type of an error of the table or its rows.
pub fn type_of(error: &StoreError) -> ErrorType {
    match error {
        StoreError::Table(TableError::Refused(_)) => ErrorType::TableRefused,
        StoreError::Table(TableError::Conflict(_) | TableError::Throttled | TableError::Unavailable(_)) => {
            ErrorType::Table
        }
        StoreError::Stored(StoredError::Newer { .. }) => ErrorType::RowNewer,
        StoreError::Stored(StoredError::Unreadable { .. }) => ErrorType::RowUnreadable,
    }
}

/// Tells of an event that cannot be read.
pub fn unreadable(error: &dyn Display, report: &mut Report) -> Failure {
    let failure = Failure::new(ErrorType::Unreadable, error);
    report.add(EVENTS_UNREADABLE, 1_u64);
    report.log(Entry::error("an event cannot be read").because(failure.error_type, &failure.message));
    failure
}

/// Tells of records that cannot be read.
fn bad_records<D>(batch: &Batch<D>, report: &mut Report) {
    report.add(EVENTS_UNREADABLE, batch.unreadable.len());
    for record in &batch.unreadable {
        let place = record.sequence.as_deref().unwrap_or("without number");
        let error = format!("record {place}: {}", record.reason);
        let entry = Entry::error("a record cannot be read").because(ErrorType::Unreadable, &error);
        report.log(match &record.tuning {
            Some(id) => entry.tuning(id),
            None => entry,
        });
    }
}

/// The line of a part that was not done; `None` if it was.
fn not_done<D>(part: &Part<D>, message: &str) -> Option<Entry> {
    let entry = Entry::error(message).tuning(&part.tuning);
    match &part.progress {
        Progress::Done => None,
        Progress::Open => Some(entry.because(
            ErrorType::Timeout,
            &format!("the time was nearly over; {} records are delivered again", part.sequences.len()),
        )),
        Progress::Failed(error) => Some(entry.because(type_of(error), &error.to_string())),
    }
}

/// Tells of a bill that was booked without all of its job's log.
fn log_cut() -> Entry {
    Entry::warn(
        "a bill was booked before all of its job's log could be read: values that were not delivered may be missing",
    )
}

/// The name of the training job that an action concerns, such as `start-0-0-1`.
fn job_name(id: &str, action: &str) -> Option<String> {
    let (_, key) = action.split_once('-')?;
    parse_job_key(key).map(|job| training_job_name(id, job))
}
