//! AWS JSON 1.1: which operation, its members, and the shape of answers and errors.
//!
//! Assumes nothing of what comes in. Must never answer an error without `__type`: clients know errors by nothing else.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::{Map, Value, json};
use service::ports::training::TrainingJobsError;

const CONTENT: &str = "application/x-amz-json-1.1";
const TARGET: &str = "x-amz-target";
const PREFIX: &str = "SageMaker.";

/// The members of a request.
pub(crate) type Members = Map<String, Value>;

/// What an operation answers; some answer nothing.
pub(crate) type Answer = Option<Value>;

/// An error as its caller sees it.
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

    /// There is no such operation here.
    pub(crate) fn unknown_operation(name: &str) -> Self {
        let message = format!("The operation {name} is not one of this training service's");
        Self::new(StatusCode::BAD_REQUEST, "UnknownOperationException", message)
    }

    /// The request is not what the protocol says.
    pub(crate) fn serialization(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "SerializationException", message)
    }

    /// A member is not what the operation says.
    pub(crate) fn validation(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "ValidationException", message)
    }

    /// A member's value is out of its bounds.
    pub(crate) fn constraint(value: &str, member: &str, rule: &str) -> Self {
        let start: String = value.chars().take(200).collect();
        Self::validation(format!(
            "1 validation error detected: Value '{start}' at '{member}' failed to satisfy constraint: Member must {rule}"
        ))
    }

    /// The caller may not.
    pub(crate) fn denied(message: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "AccessDeniedException", message)
    }

    /// The body is above the limit.
    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("The request has more than {limit} bytes");
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

/// The operation that a request's head names.
pub(crate) fn operation(headers: &HeaderMap) -> Result<&str, ApiError> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let target = text(TARGET);
    let name = target.strip_prefix(PREFIX).ok_or_else(|| ApiError::unknown_operation(target))?;
    let content = text(CONTENT_TYPE.as_str());
    if !content.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(CONTENT)) {
        return Err(ApiError::serialization(format!("The content type must be {CONTENT}, not '{content}'")));
    }
    Ok(name)
}

/// The members of a body; none of an empty one.
pub(crate) fn read(body: &Bytes) -> Result<Value, ApiError> {
    if body.is_empty() {
        return Ok(Value::Object(Members::new()));
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(members)) => Ok(Value::Object(members)),
        Ok(_) => Err(ApiError::serialization("The request must be a JSON object")),
        Err(error) => Err(ApiError::serialization(format!("The request is not JSON: {error}"))),
    }
}

/// The response of an answer or an error.
pub(crate) fn response(answer: Result<Answer, ApiError>) -> Response<Bytes> {
    let (status, body) = match answer {
        Ok(answer) => (StatusCode::OK, answer.map(|answer| answer.to_string()).unwrap_or_default()),
        Err(ApiError { status, code, message }) => {
            (status, json!({ "__type": code, "message": message }).to_string())
        }
    };
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(CONTENT));
    response
}

/// A member that is a text, if there is one.
pub(crate) fn text<'a>(members: &'a Value, name: &str) -> Result<Option<&'a str>, ApiError> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(ApiError::serialization(format!("{name} must be a string, not {}", kind(other)))),
    }
}

/// A member that must be there.
pub(crate) fn required<'a>(members: &'a Value, name: &str) -> Result<&'a str, ApiError> {
    text(members, name)?.ok_or_else(|| {
        let member = lower_first(name);
        ApiError::validation(format!(
            "1 validation error detected: Value null at '{member}' failed to satisfy constraint: Member must not be null"
        ))
    })
}

/// A member that is a whole number, if there is one.
pub(crate) fn whole(members: &Value, name: &str) -> Result<Option<i64>, ApiError> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| {
            ApiError::serialization(format!("{name} must be a whole number, not {}", kind(value)))
        }),
    }
}

/// A member that is a moment, in milliseconds since the epoch, if there is one; on the wire it is seconds.
pub(crate) fn moment(members: &Value, name: &str) -> Result<Option<f64>, ApiError> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_f64().map(|seconds| Some(seconds * 1_000.0)).ok_or_else(|| {
            ApiError::serialization(format!("{name} must be a number of seconds, not {}", kind(value)))
        }),
    }
}

/// `trainingJobName` of `TrainingJobName`, as messages name members.
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
