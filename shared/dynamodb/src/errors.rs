//! What DynamoDB's errors mean for the caller; every error code that we know is in this file.
//!
//! Whoever cannot tell whether a write was done must get `Unavailable`. An error must never become `Conflict` or
//! `Throttled`, which promise that nothing was written, unless DynamoDB says so.

use std::error::Error;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::CancellationReason;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use service::ports::table::TableError;

/// The embedded engine's code for a table file that cannot be read: to try again is of no use.
#[cfg(feature = "embedded")]
pub(crate) const DAMAGED: &str = "EmbeddedTableDamaged";

/// The error of a read, a single write or a query.
#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
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
        SdkError::ConstructionFailure(_) => TableError::Refused(chain(&error)),
        // Timeouts, dispatch failures, answers that cannot be read, and whatever else the SDK may come to say.
        _ => TableError::Unavailable(chain(&error)),
    }
}

/// The error of a transaction.
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
        // Also a success that the SDK cannot read, which comes as an error of the service without a code.
        _ if !(400..500).contains(&status) => TableError::Unavailable(format!("{code}: {message}")),
        // Among them: ValidationException, IdempotentParameterMismatchException, ResourceNotFoundException,
        // AccessDeniedException, UnrecognizedClientException, ItemCollectionSizeLimitExceededException.
        _ => TableError::Refused(format!("{code}: {message}")),
    }
}

/// A canceled transaction tells one reason per write. A reason that will never go away outranks a failed condition, and
/// that outranks contention: the caller reads again anyhow.
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

/// The error and what caused it, in one line.
fn chain(error: &dyn Error) -> String {
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
