//! Reading of fields of a foreign JSON object.
//!
//! A field that is `null` is absent. An error carries the path and what was expected, never the value, which may be a
//! user's data.

use serde_json::Value;

use super::Unreadable;

/// Least number taken for epoch milliseconds (March 1973); below it stand epoch seconds (until the year 5138).
const MIN_EPOCH_MS: i64 = 100_000_000_000;
/// Most (the year 5138): above it stand micro- and nanoseconds, which would move a tuning's clock for ever.
const MAX_EPOCH_MS: i64 = 100_000_000_000_000;

/// The field, unless it is absent or null.
pub(super) fn present<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

/// A field that must be text.
pub(super) fn text<'a>(object: &'a Value, name: &str, path: &'static str) -> Result<&'a str, Unreadable> {
    optional_text(object, name, path)?.ok_or(Unreadable::Field { path, expected: "text" })
}

/// A field that is text if it is there.
pub(super) fn optional_text<'a>(
    object: &'a Value,
    name: &str,
    path: &'static str,
) -> Result<Option<&'a str>, Unreadable> {
    present(object, name)
        .map(|value| value.as_str().ok_or(Unreadable::Field { path, expected: "text" }))
        .transpose()
}

/// A whole number, or the same as text: both are seen. A number written as `1.789e12` is whole, too.
pub(super) fn optional_number(
    object: &Value,
    name: &str,
    path: &'static str,
) -> Result<Option<i64>, Unreadable> {
    let read = |value: &Value| match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.as_i64().or_else(|| {
            let float = number.as_f64()?;
            if float.fract() == 0.0 { format!("{float}").parse().ok() } else { None }
        }),
        _ => None,
    };
    present(object, name)
        .map(|value| read(value).ok_or(Unreadable::Field { path, expected: "a whole number" }))
        .transpose()
}

/// A time in epoch milliseconds, if it is there. Epoch seconds are refused: to take one for the other would be wrong
/// by decades and nobody would see it.
pub(super) fn optional_time(
    object: &Value,
    name: &str,
    path: &'static str,
) -> Result<Option<i64>, Unreadable> {
    match optional_number(object, name, path)? {
        Some(ms) if !(MIN_EPOCH_MS..MAX_EPOCH_MS).contains(&ms) => {
            Err(Unreadable::Field { path, expected: "a time in epoch milliseconds" })
        }
        time => Ok(time),
    }
}

/// The text's first `limit` characters.
pub(super) fn cut(text: &str, limit: usize) -> String {
    text.chars().take(limit).collect()
}
