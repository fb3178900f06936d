//! Each known code and message, for each call.

use super::*;

const TAKEN: &str = "Training job names must be unique within an AWS account and region, and a training job with this \
                     name already exists (arn:aws:sagemaker:us-east-1:123456789012:training-job/hb1)";
const QUOTA: &str = "The account-level service limit 'ml.p3.2xlarge for training job usage' is 0 Instances, with current \
                     utilization of 0 Instances and a request delta of 1 Instances.";
const ENDED: &str = "The request was rejected because the training job is in status Completed.";
const ABSENT: &str = "Requested resource not found.";

#[track_caller]
fn check(call: Call, (status, code, message): (u16, &str, &str), expected: &TrainingJobsError) {
    let found = classify(call, Failure::by_code(code, message, status));
    assert_eq!(found, *expected, "{call:?} {status} {code}: {message}");
}

fn refused(code: &str, message: &str) -> TrainingJobsError {
    TrainingJobsError::Refused { code: code.to_owned(), message: message.to_owned() }
}

#[test]
fn a_create_distinguishes_a_taken_name_and_a_quota_from_other_refusals() {
    use TrainingJobsError::{LimitExceeded, NameTaken};
    check(Call::Create, (400, "ResourceInUse", TAKEN), &NameTaken(TAKEN.to_owned()));
    check(Call::Create, (400, "ResourceLimitExceeded", QUOTA), &LimitExceeded(QUOTA.to_owned()));
    for (status, code, message) in [
        (400, "ValidationException", "1 validation error detected"),
        (400, "AccessDeniedException", "User is not authorized to perform: sagemaker:CreateTrainingJob"),
        // A resource that the job needs is missing, not the job.
        (400, "ResourceNotFound", "Experiment e does not exist"),
        (400, "ValidationException", ABSENT),
        // The status is that of the data, not of the job.
        (400, "ValidationException", "the data set is in status Failed"),
    ] {
        check(Call::Create, (status, code, message), &refused(code, message));
    }
}

#[test]
fn a_stop_of_an_ended_job_differs_from_a_refused_stop() {
    for message in [
        ENDED,
        "The request was rejected because the training job is in status Failed.",
        "the training job is in status Stopped",
        "the training job is in status Stopping, which cannot be stopped",
        "The training job hb1 is already in terminal state.",
    ] {
        let ended = TrainingJobsError::AlreadyEnded(message.to_owned());
        check(Call::Stop, (400, "ValidationException", message), &ended);
        // For another call, the message is a refusal.
        check(Call::OfJob, (400, "ValidationException", message), &refused("ValidationException", message));
    }
    for message in ["the training job is in status InProgress", "is in status ", "CompletedJob is no name"] {
        check(Call::Stop, (400, "ValidationException", message), &refused("ValidationException", message));
    }
}

#[test]
fn a_missing_job_has_two_codes_and_a_message() {
    let absent = TrainingJobsError::NotFound(ABSENT.to_owned());
    for call in [Call::Stop, Call::OfJob] {
        check(call, (400, "ValidationException", ABSENT), &absent);
        check(call, (400, "ResourceNotFound", ABSENT), &absent);
        check(call, (400, "ResourceNotFoundException", ABSENT), &absent);
        check(call, (400, "ResourceInUse", TAKEN), &refused("ResourceInUse", TAKEN));
    }
    check(Call::List, (400, "ResourceNotFound", ABSENT), &refused("ResourceNotFound", ABSENT));
}

#[test]
fn throttling_and_server_errors_are_the_same_for_every_call() {
    for call in [Call::Create, Call::Stop, Call::OfJob, Call::List] {
        check(call, (400, "ThrottlingException", "Rate exceeded"), &TrainingJobsError::Throttled);
        let text = |code: &str| TrainingJobsError::Unavailable(format!("{code}: {ABSENT}"));
        check(call, (500, "InternalFailure", ABSENT), &text("InternalFailure"));
        check(call, (503, "ServiceUnavailable", ABSENT), &text("ServiceUnavailable"));
        // After a server error the effect of the call is unknown with any code.
        check(call, (500, "ValidationException", ABSENT), &text("ValidationException"));
        check(call, (500, "ResourceNotFound", ABSENT), &text("ResourceNotFound"));
    }
}
