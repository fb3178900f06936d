//! Why a request is rejected.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of violations listed in one response.
pub const MAX_VIOLATIONS: usize = 20;

/// One violation in a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Violation {
    /// Path of the field, as in the request; empty for the request as a whole.
    pub path: String,
    /// The message, with the path, the invalid value, the expectation and a fix.
    pub message: String,
}

/// Returns the message of an error because a tuning job has the name already, in the words of Automatic Model Tuning.
pub fn name_taken(name: &str) -> String {
    format!("A hyperparameter tuning job with the name, {name}, already exists. Choose a different name.")
}

/// The code of an error, as AWS names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// The request violates a constraint.
    ValidationException,
    /// The body is not a JSON object.
    SerializationException,
}

impl ErrorCode {
    /// Returns the name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ValidationException => "ValidationException",
            Self::SerializationException => "SerializationException",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a request is rejected. Return it with HTTP status 400, `code` and `message`, and store nothing. A retry of the
/// same request fails in the same way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RequestError {
    /// Error code of the response.
    pub code: ErrorCode,
    /// Message of the response.
    pub message: String,
    /// The listed violations, for programs. Empty for [`ErrorCode::SerializationException`].
    pub violations: Vec<Violation>,
}

impl RequestError {
    /// Returns the error for one or more violations.
    pub fn validation(violations: Vec<Violation>) -> Self {
        Self::listing(violations, 0)
    }

    /// Returns the error that lists `violations`. `omitted` further violations are only counted.
    pub(crate) fn listing(mut violations: Vec<Violation>, omitted: usize) -> Self {
        let count = violations.len().saturating_add(omitted);
        violations.truncate(MAX_VIOLATIONS);
        let mut texts: Vec<String> = violations.iter().map(|violation| violation.message.clone()).collect();
        if count > violations.len() {
            texts.push(format!("and {} more", count.saturating_sub(violations.len())));
        }
        let plural = if count == 1 { "" } else { "s" };
        let message = format!("{count} validation error{plural} detected: {}", texts.join("; "));
        Self { code: ErrorCode::ValidationException, message, violations }
    }

    /// Returns the error for one field. `message` names the invalid value, the expectation and a fix; the path is
    /// appended.
    pub fn field(path: &str, message: &str) -> Self {
        let message = format!("{message} (at '{path}')");
        Self::validation(vec![Violation { path: path.to_owned(), message }])
    }

    pub(super) fn serialization(message: String) -> Self {
        Self { code: ErrorCode::SerializationException, message, violations: Vec::new() }
    }
}

/// The body of an error response. SageMaker's clients read `__type` and one of the two messages. All members are
/// optional for a reader, because API Gateway has errors of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// Error code of AWS.
    #[serde(rename = "__type", skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The message again, as other services spell the member.
    #[serde(rename = "Message", skip_serializing_if = "Option::is_none")]
    pub capital_message: Option<String>,
    /// The violations in the message, for programs.
    #[serde(rename = "Violations", default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
}
