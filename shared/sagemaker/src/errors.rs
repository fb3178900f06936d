//! What the errors of SageMaker and CloudWatch Logs mean for the caller; every code and message that we know is here.
//!
//! Must never say of a call that may have been done that it was not, nor that a job is absent or ended unless the service
//! says so: money is freed by it.

use std::error::Error;

use aws_connection::Failure;
use aws_sdk_sagemaker::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use service::ports::training::TrainingJobsError;

/// What is said of a job that there is not, by operations whose code is `ValidationException`.
const NO_SUCH_JOB: &str = "Requested resource not found";
/// The code of what a role does not allow.
pub(crate) const ACCESS_DENIED: &str = "AccessDeniedException";
/// What is said when a job is to be stopped that has ended, before the word for how.
const IN_STATUS: &str = "in status ";
/// How a job is that need not be stopped. One that is stopping was stopped by somebody.
const STOPPED: [&str; 5] = ["Completed", "Failed", "Stopped", "Stopping", "Deleting"];

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Create,
    Stop,
    /// Something else of one job, or of its log.
    OfJob,
    /// Of no job in particular.
    List,
}

/// The error of `CreateTrainingJob`.
pub(crate) fn create<E>(error: &SdkError<E, HttpResponse>) -> TrainingJobsError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    meaning(Call::Create, Failure::of(error))
}

/// The error of `StopTrainingJob`.
pub(crate) fn stop<E>(error: &SdkError<E, HttpResponse>) -> TrainingJobsError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    meaning(Call::Stop, Failure::of(error))
}

/// The error of anything else of one job, or of its log: there is none before its first line.
pub(crate) fn of_job<E>(error: &SdkError<E, HttpResponse>) -> TrainingJobsError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    meaning(Call::OfJob, Failure::of(error))
}

/// The error of a listing.
pub(crate) fn of_list<E>(error: &SdkError<E, HttpResponse>) -> TrainingJobsError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    meaning(Call::List, Failure::of(error))
}

fn meaning(call: Call, failure: Failure) -> TrainingJobsError {
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
        // Among them: every other ValidationException, AccessDeniedException, UnrecognizedClientException, and what a new
        // job needs and is not there.
        _ => TrainingJobsError::Refused { code, message },
    }
}

/// Whether a job cannot be stopped because it has ended.
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
