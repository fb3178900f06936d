//! Reads a body as JSON with bounds on its size and depth, and rejects duplicate keys.
//!
//! `serde_json` alone keeps the last of two equal keys, so that validation and another reader of the same text could
//! see different requests.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::metric::shortened;
use super::{MAX_BODY_BYTES, MAX_DEPTH};

/// Why a text is not the JSON of a request. The messages are those of the API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The text is longer than [`MAX_BODY_BYTES`].
    #[error("The body has {bytes} bytes: expected at most {MAX_BODY_BYTES}")]
    TooLong {
        /// The length in bytes.
        bytes: usize,
    },
    /// The text is not JSON, is nested too deeply, or repeats a key.
    #[error("The body is not valid JSON: {reason} at line {line} column {column}")]
    Invalid {
        /// The reason, without its place.
        reason: String,
        /// The line, from 1.
        line: usize,
        /// The byte in the line, from 1; 0 at the end of the line before.
        column: usize,
    },
    /// The JSON is not an object.
    #[error("The body must be a JSON object")]
    NotAnObject,
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let reason = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
        Self::Invalid { reason: shortened(reason), line, column }
    }
}

/// Returns the value at a path of member names, unless it is missing or null.
pub(super) fn at<'a>(body: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(body, |value, member| value.get(member)).filter(|value| !value.is_null())
}

/// Returns the JSON object in `body`, which has the bounds of a request.
pub fn parse(body: &[u8]) -> Result<Value, JsonError> {
    if body.len() > MAX_BODY_BYTES {
        return Err(JsonError::TooLong { bytes: body.len() });
    }
    let value = value(body)?;
    if value.is_object() { Ok(value) } else { Err(JsonError::NotAnObject) }
}

/// Returns the JSON value in `text`. Like [`read`], but with no bound on the size and for any type of value.
pub(crate) fn value(text: &[u8]) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = Node { depth: 0 }.deserialize(&mut deserializer)?;
    deserializer.end().map(|()| value)
}

/// Removes members that are null. AWS's protocol treats them as absent.
pub(super) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(elements) => elements.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A deserializer of a value at some depth.
#[derive(Clone, Copy)]
struct Node {
    depth: usize,
}

impl Node {
    fn inner<E: Error>(self) -> Result<Self, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(format_args!("nested more than {MAX_DEPTH} levels deep")));
        }
        Ok(Self { depth: self.depth.saturating_add(1) })
    }
}

impl<'de> DeserializeSeed<'de> for Node {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut elements = Vec::new();
        while let Some(element) = sequence.next_element_seed(inner)? {
            elements.push(element);
        }
        Ok(Value::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut members = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let value = access.next_value_seed(inner)?;
            if members.contains_key(&name) {
                return Err(A::Error::custom(format_args!(
                    "duplicate key '{name}' in one object; remove one of the two"
                )));
            }
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_single_object_within_the_bounds_is_accepted() {
        assert!(parse(b" {\"a\": [1, -2, 0.5, null, true, \"x\"]} ").is_ok());
        for (body, wrong) in [
            ("", "EOF"),
            ("[]", "must be a JSON object"),
            ("{\"a\":1} {}", "trailing characters"),
            ("{\"a\":1,\"a\":1}", "duplicate key 'a'"),
            ("{\"b\":{\"a\":1,\"c\":2,\"a\":3}}", "duplicate key 'a'"),
            ("{\"a\":1e999}", "out of range"),
            ("{\"a\":NaN}", "not valid JSON"),
        ] {
            let error = parse(body.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(wrong), "{body}: {error}");
        }
        assert!(parse(b"{\"\xff\":1}").is_err());
        let nested = |depth| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(MAX_DEPTH - 1).as_bytes()).is_ok());
        assert!(parse(nested(MAX_DEPTH).as_bytes()).unwrap_err().to_string().contains("32 levels deep"));
        assert!(parse(nested(400_000).as_bytes()).is_err());
        assert!(parse(&vec![b' '; MAX_BODY_BYTES + 1]).unwrap_err().to_string().contains("1048576"));
    }

    #[test]
    fn an_error_has_its_place() {
        for (body, expected) in [
            ("{\n \"a\": }", ("expected value", 2, 7)),
            ("{\"a\":1,\n\"a\":2}", ("duplicate key 'a' in one object; remove one of the two", 2, 6)),
        ] {
            let Err(JsonError::Invalid { reason, line, column }) = parse(body.as_bytes()) else {
                panic!("{body} has no place");
            };
            assert_eq!((reason.as_str(), line, column), expected, "{body}");
        }
    }

    #[test]
    fn null_members_are_removed_at_any_depth() {
        let mut value = serde_json::json!({"a": null, "b": [{"c": null, "d": 1}]});
        drop_nulls(&mut value);
        assert_eq!(value, serde_json::json!({"b": [{"d": 1}]}));
    }
}
