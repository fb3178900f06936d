//! Reads fields of a JSON object that AWS sent.
//!
//! A `null` field counts as absent. Errors contain the path and the expectation, but never the value, which may be a
//! user's data.

use serde_json::Value;

use super::Unreadable;
use tuning::unit::time::Time;

/// Smallest number that counts as epoch milliseconds (March 1973). Smaller numbers are epoch seconds (until the year
/// 5138).
const MIN_EPOCH_MS: i64 = 100_000_000_000;
/// Largest number that counts as epoch milliseconds (the year 5138). Larger numbers are micro- or nanoseconds, which
/// would move the clock of a tuning forward forever.
const MAX_EPOCH_MS: i64 = 100_000_000_000_000;

/// Returns the field that the last part of `path` names, unless it is absent or null.
pub(super) fn present<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    object.get(path.rsplit('.').next()?).filter(|value| !value.is_null())
}

/// Returns a field that must be an object.
pub(super) fn object<'a>(outer: &'a Value, path: &'static str) -> Result<&'a Value, Unreadable> {
    let found = present(outer, path).filter(|value| value.is_object());
    found.ok_or(Unreadable::Field { path, expected: "an object" })
}

pub(super) fn text<'a>(object: &'a Value, path: &'static str) -> Result<&'a str, Unreadable> {
    optional_text(object, path)?.ok_or(Unreadable::Field { path, expected: "a string" })
}

pub(super) fn optional_text<'a>(
    object: &'a Value,
    path: &'static str,
) -> Result<Option<&'a str>, Unreadable> {
    present(object, path)
        .map(|value| value.as_str().ok_or(Unreadable::Field { path, expected: "a string" }))
        .transpose()
}

/// Returns an optional whole number. AWS sends numbers as JSON numbers or as text; `1.789e12` counts as whole.
pub(super) fn optional_number(object: &Value, path: &'static str) -> Result<Option<i64>, Unreadable> {
    let read = |value: &Value| match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.as_i64().or_else(|| {
            let float = number.as_f64()?;
            if float.fract() == 0.0 { format!("{float}").parse().ok() } else { None }
        }),
        _ => None,
    };
    present(object, path)
        .map(|value| read(value).ok_or(Unreadable::Field { path, expected: "a whole number" }))
        .transpose()
}

/// Returns an optional time in epoch milliseconds. Epoch seconds are rejected: mistaken for milliseconds, they would be
/// wrong by decades without an error.
pub(super) fn optional_time(object: &Value, path: &'static str) -> Result<Option<Time>, Unreadable> {
    match optional_number(object, path)? {
        Some(ms) if !(MIN_EPOCH_MS..MAX_EPOCH_MS).contains(&ms) => {
            Err(Unreadable::Field { path, expected: "a time in epoch milliseconds" })
        }
        time => Ok(time.map(Time)),
    }
}

/// Returns the first `limit` characters of `text`.
pub(super) fn cut(text: &str, limit: usize) -> String {
    text.chars().take(limit).collect()
}
