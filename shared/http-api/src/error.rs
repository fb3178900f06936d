//! Errors of the API, with AWS's codes.
//!
//! A message describes only the caller's request. The cause of an internal failure goes only to the log.

use thiserror::Error;
use use_cases::change::ChangeError;
use use_cases::delete::DeleteError;
use use_cases::lookup::LookupError;
use use_cases::ports::table::TableError;
use use_cases::ports::{OtherTuningsError, PricesError};
use use_cases::store::StoreError;
use use_cases::submit::SubmitError;
use wire::events::EventError;
use wire::request::{RequestError, Violation};

/// An error with its code.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// Error code of AWS.
    pub code: &'static str,
    /// HTTP status over AWS JSON.
    pub status: u16,
    /// HTTP status over REST.
    pub rest_status: u16,
    /// Message for the caller.
    pub message: String,
    /// The violations in the message, for programs.
    pub violations: Vec<Violation>,
    /// The methods of the path, if the request had another one.
    pub allow: Option<&'static str>,
    /// The internal cause, only for the log; `None` = the request is invalid.
    pub cause: Option<Box<Cause>>,
}

/// The cause of an internal failure.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// The table or a row.
    Store(StoreError),
    /// The price list.
    Prices(PricesError),
    /// A parent tuning job of another controller.
    OtherTunings(OtherTuningsError),
    /// The request exceeded its time limit.
    Time,
}

impl ApiError {
    /// Returns the error for a time-out. The request may have taken effect.
    pub fn timed_out() -> Self {
        let message = "the request timed out: check whether it took effect before you retry it";
        Self::new("ServiceUnavailable", 503, 503, message).because(Cause::Time)
    }

    /// Returns the error for a request that this host may not or cannot perform. Both protocols use `status`.
    pub fn of_host(code: &'static str, status: u16, message: impl Into<String>) -> Self {
        Self::new(code, status, status, message)
    }

    /// Returns the error for a parent that the training service did not return.
    fn parent(name: &str, why: OtherTuningsError) -> Self {
        let (code, status, fix) = match &why {
            OtherTuningsError::Unavailable(_) => {
                ("ServiceUnavailable", 503, "SageMaker is unavailable: retry the request".to_owned())
            }
            OtherTuningsError::Refused { code, .. } if code.starts_with("AccessDenied") => (
                "ValidationException",
                400,
                "SageMaker refused the call: allow sagemaker:DescribeHyperParameterTuningJob and \
                 sagemaker:ListTrainingJobsForHyperParameterTuningJob in the role of the API function, or name another \
                 parent"
                    .to_owned(),
            ),
            OtherTuningsError::Refused { code, .. } => {
                ("ValidationException", 400, format!("SageMaker refused the call with {code}: name another parent"))
            }
        };
        let message = format!("the parent tuning job {name} could not be read. {fix}");
        Self::new(code, status, status, message).because(Cause::OtherTunings(why))
    }

    fn new(code: &'static str, status: u16, rest_status: u16, message: impl Into<String>) -> Self {
        Self {
            code,
            status,
            rest_status,
            message: message.into(),
            violations: Vec::new(),
            allow: None,
            cause: None,
        }
    }

    /// Returns the error for a caller without the right to an operation.
    pub(crate) fn access_denied(message: impl Into<String>) -> Self {
        Self::new("AccessDeniedException", 400, 403, message)
    }

    /// Returns the error for a missing tuning job.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new("ResourceNotFound", 400, 404, message)
    }

    /// Returns the error for an invalid value.
    pub(crate) fn validation(message: impl Into<String>) -> Self {
        Self::new("ValidationException", 400, 400, message)
    }

    /// Returns the error for an unreadable body.
    pub(crate) fn serialization(message: impl Into<String>) -> Self {
        Self::new("SerializationException", 400, 400, message)
    }

    /// Returns the error for an unknown operation or path.
    pub(crate) fn unknown_operation(message: impl Into<String>) -> Self {
        Self::new("UnknownOperationException", 400, 404, message)
    }

    /// Returns the error for an unsupported method of a known path, which has the methods in `allowed`.
    pub(crate) fn method(method: impl std::fmt::Display, allowed: &'static str) -> Self {
        let message = format!("unsupported method {method} for this path: expected {allowed}");
        Self { allow: Some(allowed), ..Self::new("UnknownOperationException", 400, 405, message) }
    }

    fn because(mut self, cause: Cause) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }
}

/// Shortens a text of the caller for a message.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        Self { violations: error.violations, ..Self::new(error.code.as_str(), 400, 400, error.message) }
    }
}

impl From<EventError> for ApiError {
    fn from(error: EventError) -> Self {
        match error {
            EventError::TooLarge { .. } => {
                Self::new("RequestEntityTooLargeException", 413, 413, error.to_string())
            }
            EventError::NotOurs(_) | EventError::Unreadable(_) => Self::serialization(error.to_string()),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let answer = match &error {
            StoreError::Table(TableError::Throttled) => {
                Self::new("ThrottlingException", 400, 429, "Rate exceeded")
            }
            StoreError::Table(TableError::Unavailable(_) | TableError::Conflict(_)) => {
                Self::new("ServiceUnavailable", 503, 503, "the table is unavailable: retry the request")
            }
            StoreError::Table(TableError::Refused(_)) | StoreError::Stored(_) => {
                let message = "internal error: see the log of the stack's API function for this request ID";
                Self::new("InternalFailure", 500, 500, message)
            }
        };
        answer.because(Cause::Store(error))
    }
}

impl From<PricesError> for ApiError {
    fn from(error: PricesError) -> Self {
        let (code, status, message) = match &error {
            PricesError::Unavailable(_) => (
                "ServiceUnavailable",
                503,
                "the price list is unavailable, and a cost cap or a price of your own needs it: retry the request. \
                 A stack with PricesInRequests=Any accepts Controller.InstancePricesUsdPerHour without the list",
            ),
            PricesError::Refused(_) => (
                "ValidationException",
                400,
                "the price list refused the call, and a cost cap or a price of your own needs it: allow \
                 pricing:GetProducts in the role of the API function. A stack with PricesInRequests=Any accepts \
                 Controller.InstancePricesUsdPerHour without the list",
            ),
        };
        Self::new(code, status, status, message).because(Cause::Prices(error))
    }
}

impl From<LookupError> for ApiError {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::NotFound(_) => Self::not_found(error.to_string()),
            LookupError::AlreadyEnded(_) => Self::validation(error.to_string()),
            LookupError::Store(error) => error.into(),
        }
    }
}

impl From<ChangeError> for ApiError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Refused(error) => error.into(),
            ChangeError::Raise(_) => Self::access_denied(error.to_string()),
            ChangeError::Lookup(error) => error.into(),
        }
    }
}

impl From<DeleteError> for ApiError {
    fn from(error: DeleteError) -> Self {
        match error {
            DeleteError::NotEnded(_) | DeleteError::Unsettled => Self::validation(error.to_string()),
            DeleteError::Changed => Self::new("ResourceInUse", 400, 409, error.to_string()),
            DeleteError::Lookup(error) => error.into(),
        }
    }
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Request(error) => error.into(),
            SubmitError::NameTaken(_) => Self::new("ResourceInUse", 400, 409, error.to_string()),
            SubmitError::MonthlyCap(message) => Self::new("ResourceLimitExceeded", 400, 400, message),
            SubmitError::Prices(error) => error.into(),
            SubmitError::Parent { name, why } => Self::parent(&name, why),
            SubmitError::Store(error) => error.into(),
        }
    }
}
