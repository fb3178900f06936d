//! Maps DynamoDB's errors to [`TableError`]. This file lists every error code that the program knows.
//!
//! `Conflict` and `Throttled` promise that nothing was written, so only DynamoDB's own statement maps to them. An error
//! that leaves the outcome of a write unknown maps to `Unavailable`.

use std::error::Error;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::CancellationReason;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use use_cases::ports::table::TableError;

/// The embedded engine's error code for an unreadable table file. Retries cannot help.
#[cfg(feature = "embedded")]
pub(crate) const DAMAGED: &str = "EmbeddedTableDamaged";

/// Maps the error of a read, a single write or a query.
#[expect(clippy::needless_pass_by_value, reason = "passed to map_err by name")]
pub(crate) fn request<E>(error: SdkError<E, HttpResponse>) -> TableError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    match &error {
        SdkError::ServiceError(answer) => by_code(
            answer.err().code().unwrap_or("no code"),
            answer.err().message().unwrap_or("no message"),
            answer.raw().status().as_u16(),
        ),
        SdkError::ConstructionFailure(_) => TableError::Refused(with_causes(&error)),
        // Timeouts, dispatch failures, unreadable answers, and any variant that the SDK adds later.
        _ => TableError::Unavailable(with_causes(&error)),
    }
}

/// Maps the error of a transaction.
pub(crate) fn transaction(error: SdkError<TransactWriteItemsError, HttpResponse>) -> TableError {
    match error.as_service_error() {
        Some(TransactWriteItemsError::TransactionCanceledException(canceled)) => {
            by_reasons(canceled.cancellation_reasons(), canceled.message().unwrap_or("no message"))
        }
        _ => request(error),
    }
}

fn by_code(code: &str, message: &str, status: u16) -> TableError {
    match code {
        "ConditionalCheckFailedException" => TableError::Conflict(vec![0]),
        "ProvisionedThroughputExceededException"
        | "ReplicatedWriteConflictException"
        | "RequestLimitExceeded"
        | "Throttling"
        | "ThrottlingException"
        | "TooManyRequestsException"
        | "TransactionConflictException"
        | "TransactionInProgressException" => TableError::Throttled,
        "InternalFailure" | "InternalServerError" | "RequestTimeout" | "ServiceUnavailable" => {
            TableError::Unavailable(format!("{code}: {message}"))
        }
        _ if status == 429 => TableError::Throttled,
        // Includes an unreadable success: the SDK reports it as a service error without a code.
        _ if !(400..500).contains(&status) => TableError::Unavailable(format!("{code}: {message}")),
        // For example ValidationException, IdempotentParameterMismatchException, ResourceNotFoundException,
        // AccessDeniedException, UnrecognizedClientException, ItemCollectionSizeLimitExceededException.
        _ => TableError::Refused(format!("{code}: {message}")),
    }
}

/// Maps the reasons of a canceled transaction, one for each write. A permanent reason outranks a failed condition,
/// which outranks contention: after a failed condition the caller reads the rows again anyway.
fn by_reasons(reasons: &[CancellationReason], message: &str) -> TableError {
    let mut failed = Vec::new();
    let (mut contended, mut refused) = (false, None);
    for (index, reason) in reasons.iter().enumerate() {
        match reason.code().unwrap_or("None") {
            "None" => {}
            "ConditionalCheckFailed" => failed.push(index),
            "ProvisionedThroughputExceeded"
            | "RequestLimitExceeded"
            | "ThrottlingError"
            | "TransactionConflict" => {
                contended = true;
            }
            code => {
                let text = reason.message().unwrap_or("no message");
                refused.get_or_insert_with(|| format!("write {index}: {code}: {text}"));
            }
        }
    }
    match refused {
        Some(reason) => TableError::Refused(reason),
        None if !failed.is_empty() => TableError::Conflict(failed),
        None if contended => TableError::Throttled,
        None => TableError::Refused(format!("TransactionCanceledException: {message}")),
    }
}

/// Formats the error and its causes on one line.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
