//! Tests the mapping of each error of DynamoDB and of the SDK.

use aws_sdk_dynamodb::error::ErrorMetadata;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::error::TransactionCanceledException;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;

use super::*;

fn answer(status: u16) -> HttpResponse {
    HttpResponse::new(StatusCode::try_from(status).unwrap(), SdkBody::empty())
}

fn service(code: &str, status: u16) -> TableError {
    let metadata = ErrorMetadata::builder().code(code).message("why").build();
    let put = request(SdkError::service_error(PutItemError::generic(metadata.clone()), answer(status)));
    let transact = SdkError::service_error(TransactWriteItemsError::generic(metadata), answer(status));
    assert_eq!(transaction(transact), put, "a transaction maps to the same error");
    put
}

fn canceled(codes: &[&str]) -> TableError {
    let reason = |code: &&str| CancellationReason::builder().code(*code).message("why").build();
    let reasons = codes.iter().map(reason).collect();
    let error = TransactionCanceledException::builder().set_cancellation_reasons(Some(reasons)).build();
    let error = TransactWriteItemsError::TransactionCanceledException(error);
    transaction(SdkError::service_error(error, answer(400)))
}

#[test]
fn a_failed_condition_is_a_conflict() {
    assert_eq!(service("ConditionalCheckFailedException", 400), TableError::Conflict(vec![0]));
}

#[test]
fn throttling_and_contention_are_throttled() {
    for code in [
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflictException",
        "TransactionInProgressException",
    ] {
        assert_eq!(service(code, 400), TableError::Throttled, "{code}");
    }
    assert_eq!(service("UnknownCode", 429), TableError::Throttled);
}

#[test]
fn server_faults_are_unavailable() {
    for (code, status) in [("InternalServerError", 500), ("ServiceUnavailable", 503), ("UnknownCode", 502)] {
        assert_eq!(service(code, status), TableError::Unavailable(format!("{code}: why")));
    }
}

#[test]
fn an_unreadable_success_is_unavailable() {
    assert_eq!(service("no code", 200), TableError::Unavailable("no code: why".to_owned()));
}

#[test]
fn permanent_errors_are_refused_with_code_and_message() {
    for code in [
        "AccessDeniedException",
        "IdempotentParameterMismatchException",
        "ResourceNotFoundException",
        "UnrecognizedClientException",
        "ValidationException",
        DAMAGED,
        "UnknownCode",
    ] {
        assert_eq!(service(code, 400), TableError::Refused(format!("{code}: why")));
    }
}

#[test]
fn a_missing_answer_is_unavailable_and_the_message_has_its_cause() {
    let dispatch = ConnectorError::io("connection reset".into());
    let errors: [SdkError<PutItemError, HttpResponse>; 4] = [
        SdkError::timeout_error("after 2 s"),
        SdkError::dispatch_failure(dispatch),
        SdkError::dispatch_failure(ConnectorError::timeout("no connection".into())),
        SdkError::response_error("cut off", answer(200)),
    ];
    for (error, cause) in
        errors.into_iter().zip(["after 2 s", "connection reset", "no connection", "cut off"])
    {
        let classified = request(error);
        assert!(
            matches!(&classified, TableError::Unavailable(text) if text.contains(cause)),
            "{classified:?}"
        );
    }
    let unsent: SdkError<PutItemError, HttpResponse> = SdkError::construction_failure("no region");
    assert!(matches!(request(unsent), TableError::Refused(text) if text.contains("no region")));
}

#[test]
fn a_canceled_transaction_lists_the_failed_conditions() {
    assert_eq!(
        canceled(&["None", "ConditionalCheckFailed", "None", "ConditionalCheckFailed"]),
        TableError::Conflict(vec![1, 3])
    );
    assert_eq!(canceled(&["TransactionConflict", "ConditionalCheckFailed"]), TableError::Conflict(vec![1]));
}

#[test]
fn a_transaction_canceled_by_contention_is_throttled() {
    for code in
        ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded"]
    {
        assert_eq!(canceled(&["None", code]), TableError::Throttled, "{code}");
    }
}

#[test]
fn a_transaction_canceled_for_a_permanent_reason_is_refused() {
    for code in ["ValidationError", "ItemCollectionSizeLimitExceeded", "AccessDenied"] {
        let refused = TableError::Refused(format!("write 1: {code}: why"));
        assert_eq!(canceled(&["ConditionalCheckFailed", code, "TransactionConflict"]), refused);
    }
    assert!(matches!(canceled(&[]), TableError::Refused(_)), "no reasons at all");
}
