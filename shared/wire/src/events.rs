//! The payloads that AWS delivers to Lambda functions, and their responses.
//!
//! Every parser is a pure function that accepts any bytes: it returns a value or an [`EventError`] within bounds of
//! memory and time, and never panics. The local host and the simulator use the encoders of this module to feed the same
//! parsers. This module does not decide what an event means for a tuning.

pub mod direct;
mod field;
pub mod http;
pub mod job_state;
pub mod logs;
pub mod metric;
pub mod stream;
pub mod surplus;
pub mod timestamp;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use serde_json::error::Category;
use thiserror::Error;

/// Maximum size of an invocation's payload, in bytes. This is Lambda's own limit.
pub const MAX_PAYLOAD_BYTES: usize = 6 * 1024 * 1024;

/// Why a payload yields no event.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EventError {
    /// The event is valid, but meant for another reader. Drop it and report success.
    #[error("event for another reader: {0}")]
    NotOurs(String),
    /// The payload is permanently unreadable. Count it and send it to the failure queue; do not retry it. HTTP status
    /// 400.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The payload exceeds the sizes that AWS sends. Handle it like [`EventError::Unreadable`]. HTTP status 413.
    #[error("{what} is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The part that is too large.
        what: &'static str,
        /// The maximum size of the part, in bytes.
        limit_bytes: usize,
    },
}

/// Why a payload is unreadable. It contains the decoder's message, because callers only keep the text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// The payload is not JSON, or has unexpected fields.
    #[error("invalid JSON: {0}")]
    NotJson(String),
    /// A field is missing or invalid.
    #[error("invalid {path}: expected {expected}")]
    Field {
        /// Path of the field.
        path: &'static str,
        /// The expected value.
        expected: &'static str,
    },
    /// The base64 or the compression of a field is invalid.
    #[error("invalid {path}: {reason}")]
    Encoding {
        /// Path of the field.
        path: &'static str,
        /// The message of the decoder.
        reason: String,
    },
}

/// Reads the JSON of an invocation's payload. All parsers of this module take it.
pub fn payload(bytes: &[u8]) -> Result<Value, EventError> {
    if bytes.len() > MAX_PAYLOAD_BYTES {
        return Err(EventError::TooLarge { what: "the payload", limit_bytes: MAX_PAYLOAD_BYTES });
    }
    Ok(serde_json::from_slice(bytes).map_err(|error| not_json(&error))?)
}

/// Returns the error for invalid JSON. For a value of an unexpected type it contains only the position, because serde's
/// message repeats the value, which may be a user's data.
fn not_json(error: &serde_json::Error) -> Unreadable {
    Unreadable::NotJson(match error.classify() {
        Category::Data => {
            format!("unexpected type or missing field at line {} column {}", error.line(), error.column())
        }
        Category::Io | Category::Syntax | Category::Eof => field::cut(&error.to_string(), 200),
    })
}

/// Decodes the base64 text of the field at `path`.
pub(crate) fn decode_base64(text: &str, path: &'static str) -> Result<Vec<u8>, Unreadable> {
    STANDARD.decode(text).map_err(|error| Unreadable::Encoding { path, reason: error.to_string() })
}

/// Rejects an EventBridge event with another `detail-type`, or with a source that is not in `sources` (empty = any
/// source).
fn expect_kind(event: &Value, sources: &[&str], detail_type: &str) -> Result<(), EventError> {
    let source = field::text(event, "source")?;
    let kind = field::text(event, "detail-type")?;
    if (sources.is_empty() || sources.contains(&source)) && kind == detail_type {
        return Ok(());
    }
    let what = field::cut(&format!("{source} / {kind}"), 200);
    Err(EventError::NotOurs(what))
}
