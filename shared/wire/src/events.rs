//! What AWS delivers to a Lambda function, and what it wants back.
//!
//! Every parser here is pure and total: any bytes give a value or an [`EventError`], within bounds of memory and time,
//! and never a panic. The local host and the simulators feed the same parsers through the encoders beside them.
//! Nothing here decides what an event means for a tuning.

mod field;
pub mod http;
pub mod job_state;
pub mod logs;
pub mod metric;
pub mod schedule;
pub mod stream;
pub mod timestamp;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use serde_json::error::Category;
use thiserror::Error;

/// Largest payload of an invocation that is read, in bytes: Lambda's own limit.
pub const MAX_PAYLOAD_BYTES: usize = 6 * 1024 * 1024;

/// Why a payload gave no event.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EventError {
    /// A sound event, but not one for this reader. Drop it and succeed.
    #[error("not an event for this reader: {0}")]
    NotOurs(String),
    /// It cannot be read, now or later. Count it and send it to the failure queue; do not retry. From HTTP: 400.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// It is larger than anything AWS sends. As [`EventError::Unreadable`]; from HTTP: 413.
    #[error("{what} is larger than {limit_bytes} bytes")]
    TooLarge {
        /// Which part.
        what: &'static str,
        /// The bound.
        limit_bytes: usize,
    },
}

/// What is wrong with a payload. It carries the decoders' words, since callers keep the text alone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// It is no JSON, or not of the shape wanted.
    #[error("not the JSON expected: {0}")]
    NotJson(String),
    /// A field is missing or of another kind.
    #[error("{path}: expected {expected}")]
    Field {
        /// Where in the payload.
        path: &'static str,
        /// What should be there.
        expected: &'static str,
    },
    /// Its base64 or its compression is broken.
    #[error("{path}: {reason}")]
    Encoding {
        /// Where in the payload.
        path: &'static str,
        /// The decoder's words.
        reason: String,
    },
}

/// The JSON of an invocation's payload, which all parsers here take.
pub fn payload(bytes: &[u8]) -> Result<Value, EventError> {
    if bytes.len() > MAX_PAYLOAD_BYTES {
        return Err(EventError::TooLarge { what: "the payload", limit_bytes: MAX_PAYLOAD_BYTES });
    }
    Ok(serde_json::from_slice(bytes).map_err(|error| not_json(&error))?)
}

/// What is wrong with JSON, and where. Of a value of another kind only the place is told: serde's words repeat the value,
/// which may be a user's data.
fn not_json(error: &serde_json::Error) -> Unreadable {
    Unreadable::NotJson(match error.classify() {
        Category::Data => format!("another shape at line {} column {}", error.line(), error.column()),
        Category::Io | Category::Syntax | Category::Eof => field::cut(&error.to_string(), 200),
    })
}

/// Bytes in base64 at `path`.
fn decode_base64(text: &str, path: &'static str) -> Result<Vec<u8>, Unreadable> {
    STANDARD.decode(text).map_err(|error| Unreadable::Encoding { path, reason: error.to_string() })
}

/// Refuses an EventBridge event that is not of one of `sources` (of any, if there are none) and of `detail_type`.
fn expect_kind(event: &Value, sources: &[&str], detail_type: &str) -> Result<(), EventError> {
    let source = field::text(event, "source", "source")?;
    let kind = field::text(event, "detail-type", "detail-type")?;
    if (sources.is_empty() || sources.contains(&source)) && kind == detail_type {
        return Ok(());
    }
    let what = field::cut(&format!("{source} / {kind}"), 200);
    Err(EventError::NotOurs(what))
}
