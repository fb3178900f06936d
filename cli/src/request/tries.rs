//! `--try`: configurations that a tuning tries first.

use std::str::FromStr;

use serde_json::{Map, Value};

use crate::controller_list;

const EXPECTED: &str = "expected NAME=VALUE pairs with commas between them, for example lr=0.1,depth=6";

/// A configuration, such as `lr=0.1,depth=6`. Values are texts, as training jobs get them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Try(Map<String, Value>);

impl FromStr for Try {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut values = Map::new();
        for pair in text.split(',') {
            let (name, value) = pair.split_once('=').ok_or(EXPECTED)?;
            let (name, value) = (name.trim(), value.trim());
            if name.is_empty() || value.is_empty() {
                return Err(EXPECTED.to_owned());
            }
            if values.insert(name.to_owned(), Value::from(value)).is_some() {
                return Err(format!("expected one value of '{name}', but found two"));
            }
        }
        Ok(Self(values))
    }
}

/// Appends the configurations to `InitialConfigurations`.
pub(super) fn append(body: &mut Value, tries: &[Try]) {
    controller_list::append(body, "InitialConfigurations", tries.iter().map(|one| one.0.clone()));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_configuration_is_a_list_of_names_with_values() {
        let read = |text: &str| text.parse::<Try>().map(|one| Value::Object(one.0));
        assert_eq!(read("lr=0.1, depth=6"), Ok(json!({"lr": "0.1", "depth": "6"})));
        assert_eq!(read("a=b=c"), Ok(json!({"a": "b=c"})));
        for text in ["", "lr", "lr=", "=1", "lr=0.1,", "lr=0.1,relu"] {
            assert_eq!(read(text), Err(EXPECTED.to_owned()), "{text}");
        }
        assert!(read("lr=1,lr=2").unwrap_err().contains("one value of 'lr'"));
    }

    #[test]
    fn configurations_follow_those_of_the_request() {
        let tries = ["a=1".parse().unwrap(), "a=2".parse().unwrap()];
        for (given, expected) in [
            (json!({}), json!([{"a": "1"}, {"a": "2"}])),
            (json!({"Controller": null}), json!([{"a": "1"}, {"a": "2"}])),
            (
                json!({"Controller": {"InitialConfigurations": [{"a": 0}]}}),
                json!([{"a": 0}, {"a": "1"}, {"a": "2"}]),
            ),
            (json!({"Controller": {"InitialConfigurations": "x"}}), json!("x")),
        ] {
            let mut body = given;
            append(&mut body, &tries);
            assert_eq!(body["Controller"]["InitialConfigurations"], expected);
        }
    }
}
