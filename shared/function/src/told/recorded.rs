//! One delivery to ingest: a state change of a job, or a batch of its log.

use serde_json::{Value, json};
use service::job_events::{About, RecordError, Recorded};
use telemetry::metrics::{EVENTS_IGNORED, EVENTS_UNREADABLE, FACTS_RECORDED, LOG_LINES};
use telemetry::{Entry, ErrorType, Report};
use wire::names::training_job_name;

use super::type_of;
use crate::Failure;

/// Tells of a delivery (`None` = it was not done in time); the answer, or why it is delivered again.
pub fn recorded(
    result: Option<Result<Recorded, RecordError>>,
    about: &About,
    report: &mut Report,
) -> Result<Value, Failure> {
    report.add(FACTS_RECORDED, about.facts);
    let failure = match result {
        Some(Ok(recorded)) => {
            match recorded {
                Recorded::Stored => report.add(LOG_LINES, about.lines),
                Recorded::NotOurs => report.carry(EVENTS_IGNORED),
            }
            return Ok(json!({"recorded": format!("{recorded:?}")}));
        }
        Some(Err(error @ RecordError::Unreadable(_))) => {
            report.add(EVENTS_UNREADABLE, 1_u64);
            Failure::new(ErrorType::Unreadable, &error)
        }
        Some(Err(RecordError::Store(error))) => Failure::new(type_of(&error), &error),
        None => Failure::timeout(),
    };
    let mut entry = Entry::error("a delivery was not recorded").because(failure.error_type, &failure.message);
    if let Some(id) = &about.tuning {
        entry = entry.tuning(id);
        if let Some(job) = about.job {
            entry = entry.job(&training_job_name(id, job));
        }
    }
    report.log(entry);
    Err(failure)
}
