//! AWS JSON 1.1: the operation and members of a request, and the form of answers and errors.
//!
//! Requests are untrusted. Every error has `__type`, the only member by which clients distinguish errors.

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use local::training::Region;
use serde_json::{Map, Value, json};
use use_cases::ports::training::TrainingJobsError;

const CONTENT: &str = "application/x-amz-json-1.1";
const TARGET: &str = "x-amz-target";
const PREFIX: &str = "SageMaker.";

/// The JSON answer of an operation; `None` for an empty body.
pub(crate) type Answer = Option<Value>;

/// An error as the client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: String,
    message: String,
}

impl ApiError {
    fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self { status, code: code.to_owned(), message: message.into() }
    }

    /// The operation is not supported.
    pub(crate) fn unknown_operation(name: &str) -> Self {
        let message = format!("This training service does not support the operation '{name}'");
        Self::new(StatusCode::BAD_REQUEST, "UnknownOperationException", message)
    }

    pub(crate) fn no_tuning_job(name: &str) -> Self {
        let start: String = name.chars().take(200).collect();
        Self::new(StatusCode::BAD_REQUEST, "ResourceNotFound", format!("no tuning job is named {start}"))
    }

    /// The request violates the protocol.
    pub(crate) fn serialization(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "SerializationException", message)
    }

    /// A member is invalid for the operation.
    pub(crate) fn validation(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "ValidationException", message)
    }

    /// The value of a member violates a constraint. Worded as AWS does.
    pub(crate) fn constraint(value: &str, member: &str, rule: &str) -> Self {
        let start: String = value.chars().take(200).collect();
        Self::validation(format!(
            "1 validation error detected: Value '{start}' at '{member}' failed to satisfy constraint: Member must {rule}"
        ))
    }

    pub(crate) fn denied(message: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "AccessDeniedException", message)
    }

    /// The body is larger than `limit` bytes.
    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("The request body is too large: expected at most {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLargeException", message)
    }
}

impl From<TrainingJobsError> for ApiError {
    fn from(error: TrainingJobsError) -> Self {
        let bad = StatusCode::BAD_REQUEST;
        match error {
            TrainingJobsError::NameTaken(message) => Self::new(bad, "ResourceInUse", message),
            TrainingJobsError::NotFound(message) | TrainingJobsError::AlreadyEnded(message) => {
                Self::validation(message)
            }
            TrainingJobsError::LimitExceeded(message) => Self::new(bad, "ResourceLimitExceeded", message),
            TrainingJobsError::Throttled => Self::new(bad, "ThrottlingException", "Rate exceeded"),
            TrainingJobsError::Unavailable(message) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
            }
            TrainingJobsError::Refused { code, message } => Self::new(bad, &code, message),
        }
    }
}

pub(crate) fn operation(headers: &HeaderMap) -> Result<&str, ApiError> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let target = text(TARGET);
    let name = target.strip_prefix(PREFIX).ok_or_else(|| ApiError::unknown_operation(target))?;
    let content = text(CONTENT_TYPE.as_str());
    if !content.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(CONTENT)) {
        let message = format!("Invalid Content-Type '{content}': expected {CONTENT}");
        return Err(ApiError::serialization(message));
    }
    Ok(name)
}

/// Returns the Region of the client: that of the credential scope in its signature. The signature is not verified.
pub(crate) fn region(headers: &HeaderMap) -> Option<Region> {
    let signed = headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("AWS4-HMAC-SHA256")?;
    let mut parts = signed.split([',', ' ']);
    let scope = parts.find_map(|part| part.strip_prefix("Credential="))?;
    let scope = scope.strip_suffix("/sagemaker/aws4_request")?;
    Region::parse(scope.rsplit_once('/')?.1)
}

/// Reads the members of a request from its body. An empty body has no members.
pub(crate) fn read(body: &[u8]) -> Result<Value, ApiError> {
    if body.is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(members)) => Ok(Value::Object(members)),
        Ok(other) => {
            let message = format!("Invalid request: expected a JSON object, not {}", kind(&other));
            Err(ApiError::serialization(message))
        }
        Err(error) => Err(ApiError::serialization(format!("Invalid JSON in the request: {error}"))),
    }
}

/// Formats an answer or an error as an HTTP response.
pub(crate) fn response(answer: Result<Answer, ApiError>) -> Response {
    let (status, body) = match answer {
        Ok(answer) => (StatusCode::OK, answer.map(|answer| answer.to_string()).unwrap_or_default()),
        Err(ApiError { status, code, message }) => {
            (status, json!({ "__type": code, "message": message }).to_string())
        }
    };
    (status, [(CONTENT_TYPE, CONTENT)], body).into_response()
}

pub(crate) fn text<'a>(members: &'a Value, name: &str) -> Result<Option<&'a str>, ApiError> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong_type(name, "a string", other)),
    }
}

pub(crate) fn required<'a>(members: &'a Value, name: &str) -> Result<&'a str, ApiError> {
    text(members, name)?.ok_or_else(|| {
        let member = lower_first(name);
        ApiError::validation(format!(
            "1 validation error detected: Value null at '{member}' failed to satisfy constraint: Member must not be null"
        ))
    })
}

pub(crate) fn whole(members: &Value, name: &str) -> Result<Option<i64>, ApiError> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| wrong_type(name, "an integer", value)),
    }
}

/// Reads an optional time member, sent in seconds. Returns milliseconds since the epoch.
pub(crate) fn time(members: &Value, name: &str) -> Result<Option<f64>, ApiError> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_f64()
            .map(|seconds| Some(seconds * 1_000.0))
            .ok_or_else(|| wrong_type(name, "a number of seconds", value)),
    }
}

fn wrong_type(name: &str, expected: &str, found: &Value) -> ApiError {
    ApiError::serialization(format!("Invalid {name}: expected {expected}, not {}", kind(found)))
}

/// Lowers the first letter, as in AWS's validation messages: `trainingJobName`.
pub(crate) fn lower_first(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
