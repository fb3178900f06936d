//! One delivery to the ingest functions: a job state change or a log batch.

use crate::telemetry::metrics::{EVENTS_IGNORED, EVENTS_UNREADABLE, FACTS_RECORDED, LOG_LINES};
use crate::telemetry::{Entry, ErrorType, Report};
use serde_json::{Value, json};
use use_cases::job_events::{About, RecordError, Recorded};
use wire::names::training_job_name;

use super::type_of;
use crate::Failure;

/// Reports a delivery, and returns the response to Lambda. `None`: the invocation ran out of time. After an error Lambda
/// delivers again.
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
