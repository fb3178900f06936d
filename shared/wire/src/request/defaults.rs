//! Tags that the owner of a stack adds to every training job.
//!
//! They become part of the request before it is validated and stored, so a replay needs no settings of the stack. Bills
//! are allocated by them, so a stack refuses a request with another value of a key. Values cannot contain commas.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::OWN_TAGS;
use crate::names::TAG_PREFIX;

/// Maximum number of tags of a training job.
pub(crate) const TAGS_MAX: usize = 50;
/// Maximum length of a key, in characters.
const KEY_CHARS_MAX: usize = 128;
/// Maximum length of a value, in characters.
const VALUE_CHARS_MAX: usize = 256;

/// Tags by key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DefaultTags(BTreeMap<String, String>);

impl DefaultTags {
    /// Reads tags such as `team=ml,cost-center=42`. Returns `None` if a tag is invalid or a key occurs twice.
    ///
    /// ```
    /// use wire::request::DefaultTags;
    /// assert!(DefaultTags::parse("team=ml, stage=a=b,").is_some());
    /// assert!(DefaultTags::parse("").is_some());
    /// assert!(DefaultTags::parse("aws:team=ml").is_none());
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let mut tags = BTreeMap::new();
        for tag in text.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
            let (key, value) = tag.split_once('=')?;
            let fits = key.chars().count() <= KEY_CHARS_MAX && value.chars().count() <= VALUE_CHARS_MAX;
            let is_valid = fits && !key.is_empty() && !is_reserved(key) && tag.chars().all(is_allowed);
            if !is_valid || tags.insert(key.to_owned(), value.to_owned()).is_some() {
                return None;
            }
        }
        (tags.len() <= TAGS_MAX - OWN_TAGS).then_some(Self(tags))
    }

    /// Returns the value of a tag.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Adds the tags whose keys `body` lacks. Does not change a body whose `Tags` is not a list, which is invalid.
    pub(super) fn add_to(&self, body: &mut Value) {
        let Value::Object(members) = body else { return };
        if self.0.is_empty() {
            return;
        }
        let tags = members.entry("Tags").or_insert(Value::Null);
        if tags.is_null() {
            *tags = json!([]);
        }
        let Value::Array(tags) = tags else { return };
        let has = |tags: &[Value], key: &str| tags.iter().any(|tag| tag.get("Key") == Some(&json!(key)));
        for (key, value) in &self.0 {
            if !has(tags, key) {
                let tag = [("Key", key), ("Value", value)].map(|(name, text)| (name.to_owned(), json!(text)));
                tags.push(Value::Object(Map::from_iter(tag)));
            }
        }
    }
}

/// Returns whether AWS or the controller reserves a key.
fn is_reserved(key: &str) -> bool {
    let lower = key.to_lowercase();
    lower.starts_with("aws:") || lower.starts_with(TAG_PREFIX)
}

/// Returns whether AWS allows a character in tags.
fn is_allowed(character: char) -> bool {
    character.is_alphanumeric() || character.is_whitespace() || "_.:/=+-@".contains(character)
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    /// Returns the sample request with `tags` after the defaults `team=ml,stage=dev`.
    fn tagged(tags: &Value) -> Result<Request, String> {
        let mut body = crate::sample::request("hb1");
        body["Tags"] = tags.clone();
        let defaults = DefaultTags::parse("team=ml,stage=dev").unwrap();
        Request::parse_with(body.to_string().as_bytes(), &defaults).map_err(|error| error.to_string())
    }

    fn keys_and_values(request: &Request) -> Vec<(String, String)> {
        request.tags().into_iter().collect()
    }

    #[test]
    fn invalid_tags_are_refused() {
        let long = format!("{}=v", "k".repeat(129));
        let many: Vec<String> = (0..48).map(|number| format!("k{number}=v")).collect();
        for text in [
            "team",
            "=ml",
            "AWS:team=ml",
            "Hyperband:MaxCostUsd=1",
            "a=1,a=2",
            "a={b}",
            &long,
            &many.join(","),
        ] {
            assert_eq!(DefaultTags::parse(text), None, "{text}");
        }
        assert!(DefaultTags::parse(&many[1..].join(",")).is_some());
        assert_eq!(DefaultTags::parse(" , "), Some(DefaultTags::default()));
    }

    #[test]
    fn a_request_gets_the_default_tags_whose_keys_it_lacks() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let own = tagged(&json!([{"Key": "team", "Value": "vision"}])).unwrap();
        assert_eq!(keys_and_values(&own), [pair("stage", "dev"), pair("team", "vision")]);
        let none = tagged(&Value::Null).unwrap();
        assert_eq!(keys_and_values(&none), [pair("stage", "dev"), pair("team", "ml")]);
        // The stored request needs no settings of the stack.
        assert_eq!(keys_and_values(&Request::from_stored(none.body().clone())), keys_and_values(&none));
    }

    #[test]
    fn a_request_with_invalid_tags_stays_invalid() {
        assert!(tagged(&json!("team")).unwrap_err().contains("Tags"));
        let many: Vec<Value> =
            (0..46).map(|number| json!({"Key": format!("k{number}"), "Value": ""})).collect();
        assert!(tagged(&json!(many)).unwrap_err().contains("at most 47 elements, but found 48"));
    }
}
