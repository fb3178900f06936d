//! Classifies the errors of SageMaker and CloudWatch Logs, with all known codes and messages.
//!
//! Must never classify a call that may have taken effect as rejected. Must never classify a job as absent or ended
//! unless the service reports it, because that would release the job's reservation.

use std::error::Error;

use aws::Failure;
use aws_sdk_sagemaker::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use use_cases::ports::training::TrainingJobsError;

/// The message for a missing job, from operations that use `ValidationException`.
const NO_SUCH_JOB: &str = "Requested resource not found";
pub(crate) const ACCESS_DENIED: &str = "AccessDeniedException";
/// The message of a stop of an ended job, up to its status.
const IN_STATUS: &str = "in status ";
/// The statuses of a job that needs no stop. A job in `Stopping` has a stop already.
const STOPPED: [&str; 5] = ["Completed", "Failed", "Stopped", "Stopping", "Deleting"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Create,
    Stop,
    /// Another call for one job or its log. A log does not exist before its first line.
    OfJob,
    /// A call for no particular job.
    List,
}

/// Classifies an error of a call.
pub(crate) fn of<E>(call: Call, error: &SdkError<E, HttpResponse>) -> TrainingJobsError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    classify(call, Failure::of(error))
}

fn classify(call: Call, failure: Failure) -> TrainingJobsError {
    let (code, message) = match failure {
        Failure::Unavailable(reason) => return TrainingJobsError::Unavailable(reason),
        Failure::Throttled => return TrainingJobsError::Throttled,
        Failure::Refused { code, message } => (code, message),
    };
    match (call, code.as_str()) {
        (Call::Create, "ResourceInUse") => TrainingJobsError::NameTaken(message),
        (_, "ResourceLimitExceeded") => TrainingJobsError::LimitExceeded(message),
        (Call::Stop | Call::OfJob, "ResourceNotFound" | "ResourceNotFoundException") => {
            TrainingJobsError::NotFound(message)
        }
        (Call::Stop | Call::OfJob, "ValidationException") if message.contains(NO_SUCH_JOB) => {
            TrainingJobsError::NotFound(message)
        }
        (Call::Stop, "ValidationException" | "ConflictException") if has_ended(&message) => {
            TrainingJobsError::AlreadyEnded(message)
        }
        // Among them: every other ValidationException, AccessDeniedException, UnrecognizedClientException, and missing
        // resources that a new job needs.
        _ => TrainingJobsError::Refused { code, message },
    }
}

/// Returns whether the message says that the job has ended.
fn has_ended(message: &str) -> bool {
    let status = message.split_once(IN_STATUS).map(|(_, rest)| rest);
    status.is_some_and(|rest| {
        let word = rest.split(|next: char| !next.is_ascii_alphabetic()).next();
        word.is_some_and(|word| STOPPED.contains(&word))
    }) || message.contains("already in terminal")
        || message.contains("already in a terminal")
}

#[cfg(test)]
mod tests;
