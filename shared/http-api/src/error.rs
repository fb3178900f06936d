//! Why a request is not answered with what it asks for, in AWS's codes.
//!
//! A message to the caller tells of the caller's request. What went wrong inside is told as "try again"; its cause is for
//! the log.

use service::change::ChangeError;
use service::lookup::LookupError;
use service::ports::PricesError;
use service::ports::table::TableError;
use service::store::StoreError;
use service::submit::SubmitError;
use thiserror::Error;
use wire::events::EventError;
use wire::request::{RequestError, Violation};

/// An error with its code.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// As AWS names it.
    pub code: &'static str,
    /// HTTP status over AWS JSON.
    pub status: u16,
    /// HTTP status over REST.
    pub rest_status: u16,
    /// For the caller.
    pub message: String,
    /// What the message is made of, for programs.
    pub violations: Vec<Violation>,
    /// What failed inside, for the log only; `None` = the request was wrong.
    pub cause: Option<Cause>,
}

/// What failed inside.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// The table or a row.
    Store(StoreError),
    /// The price list.
    Prices(PricesError),
    /// There was no time left.
    Time,
}

impl ApiError {
    /// The request was given up for lack of time: it may or may not have been done.
    pub fn timed_out() -> Self {
        let message = "The request took too long. Look whether it was done before you send it again.";
        Self::new("ServiceUnavailable", 503, 503, message).because(Cause::Time)
    }

    fn new(code: &'static str, status: u16, rest_status: u16, message: impl Into<String>) -> Self {
        Self { code, status, rest_status, message: message.into(), violations: Vec::new(), cause: None }
    }

    /// What is asked for is not there.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new("ResourceNotFound", 400, 404, message)
    }

    /// The request says something that is not allowed.
    pub(crate) fn validation(message: impl Into<String>) -> Self {
        Self::new("ValidationException", 400, 400, message)
    }

    /// The body cannot be read.
    pub(crate) fn serialization(message: impl Into<String>) -> Self {
        Self::new("SerializationException", 400, 400, message)
    }

    /// There is no such operation.
    pub(crate) fn unknown_operation(message: impl Into<String>) -> Self {
        Self::new("UnknownOperationException", 400, 404, message)
    }

    /// The path is there, the method is not.
    pub(crate) fn method(message: impl Into<String>) -> Self {
        Self::new("UnknownOperationException", 400, 405, message)
    }

    fn because(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
    }
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
                Self::new("ServiceUnavailable", 503, 503, "The table did not answer. Try again.")
            }
            StoreError::Table(TableError::Refused(_)) | StoreError::Stored(_) => {
                let message =
                    "Something is wrong with this stack; its log tells what, under this request's id.";
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
                "The price list did not answer, and a cap can be kept only with a price. Try again, or give \
                 Controller.InstancePricesUsdPerHour.",
            ),
            PricesError::Refused(_) => (
                "ValidationException",
                400,
                "The price list refused this stack, and a cap can be kept only with a price. Give \
                 Controller.InstancePricesUsdPerHour, or have the stack's role of the API allowed pricing:GetProducts.",
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
            ChangeError::Lookup(error) => error.into(),
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
            SubmitError::Store(error) => error.into(),
        }
    }
}
