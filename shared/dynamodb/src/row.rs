//! Converts rows, keys and conditions to the SDK's types, and rows back.
//!
//! A condition's names and values are passed as placeholders, never inside the expression. A stored row of an unknown
//! shape is an error: no attribute is dropped silently.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use use_cases::ports::table::{Condition, TableError};
use wire::item::{Attr, Item, Key, PK, SK};

pub(crate) type Attributes = HashMap<String, AttributeValue>;

/// A condition as DynamoDB takes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Expression {
    /// The expression; `None` when there is nothing to check.
    pub text: Option<String>,
    /// The attribute that `#name` stands for.
    pub names: Option<HashMap<String, String>>,
    /// The value that `:value` stands for.
    pub values: Option<Attributes>,
}

impl Expression {
    pub(crate) fn of(condition: &Condition) -> Self {
        match condition {
            Condition::Always => Self::default(),
            Condition::NotExists => Self::new("attribute_not_exists(#name)", PK, None),
            Condition::Equals { name, value } => {
                Self::new("#name = :value", name, Some(to_attribute(value.clone())))
            }
            Condition::AtLeast { name, value } => {
                Self::new("#name >= :value", name, Some(to_attribute(Attr::N(*value))))
            }
        }
    }

    /// Like [`Expression::of`], but always has text: DynamoDB requires an expression in a transaction's check.
    pub(crate) fn of_check(condition: &Condition) -> Self {
        match condition {
            Condition::Always => {
                Self::new("attribute_exists(#name) OR attribute_not_exists(#name)", PK, None)
            }
            Condition::NotExists | Condition::Equals { .. } | Condition::AtLeast { .. } => {
                Self::of(condition)
            }
        }
    }

    fn new(text: &str, name: &str, value: Option<AttributeValue>) -> Self {
        Self {
            text: Some(text.to_owned()),
            names: Some(HashMap::from([("#name".to_owned(), name.to_owned())])),
            values: value.map(|value| HashMap::from([(":value".to_owned(), value)])),
        }
    }
}

pub(crate) fn to_key(key: &Key) -> Attributes {
    let text = |text: &String| AttributeValue::S(text.clone());
    HashMap::from([(PK.to_owned(), text(&key.pk)), (SK.to_owned(), text(&key.sk))])
}

/// Converts a row, key included, to attributes.
pub(crate) fn to_attributes(item: Item) -> Attributes {
    let mut attributes = to_key(&item.key);
    attributes.extend(item.attributes.into_iter().map(|(name, value)| (name, to_attribute(value))));
    attributes
}

pub(crate) fn from_attributes(attributes: Attributes) -> Result<Item, TableError> {
    let (mut pk, mut sk, mut others) = (None, None, BTreeMap::new());
    // Sorted by name, so that one row always gives the same error.
    for (name, value) in attributes.into_iter().collect::<BTreeMap<_, _>>() {
        match (name.as_str(), from_attribute(&name, value)?) {
            (PK, Attr::S(text)) => pk = Some(text),
            (SK, Attr::S(text)) => sk = Some(text),
            (_, value) => drop(others.insert(name, value)),
        }
    }
    match (pk, sk) {
        (Some(pk), Some(sk)) => Ok(Item { key: Key { pk, sk }, attributes: others }),
        _ => {
            Err(TableError::Refused(format!("invalid stored row: missing string attribute `{PK}` or `{SK}`")))
        }
    }
}

fn to_attribute(value: Attr) -> AttributeValue {
    match value {
        Attr::S(text) => AttributeValue::S(text),
        Attr::N(number) => AttributeValue::N(number.to_string()),
        Attr::B(bytes) => AttributeValue::B(Blob::new(bytes)),
        Attr::Bool(truth) => AttributeValue::Bool(truth),
    }
}

fn from_attribute(name: &str, value: AttributeValue) -> Result<Attr, TableError> {
    let invalid =
        |problem: &str| TableError::Refused(format!("invalid attribute `{name}` of a stored row: {problem}"));
    match value {
        AttributeValue::S(text) => Ok(Attr::S(text)),
        AttributeValue::N(digits) => digits
            .parse()
            .map(Attr::N)
            .map_err(|_| invalid(&format!("expected a 64-bit integer, found {digits}"))),
        AttributeValue::B(bytes) => Ok(Attr::B(bytes.into_inner())),
        AttributeValue::Bool(truth) => Ok(Attr::Bool(truth)),
        _ => Err(invalid("expected a string, a number, binary data or a Boolean")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_with_an_unsupported_attribute_is_refused_and_the_attribute_named() {
        let row = |name: &str, value| {
            let mut attributes = to_key(&Key::new("p", "s"));
            attributes.insert(name.to_owned(), value);
            from_attributes(attributes)
        };
        let message = |result: Result<Item, TableError>| result.unwrap_err().to_string();
        let number = message(row("loss", AttributeValue::N("0.5".to_owned())));
        assert!(number.contains("`loss`") && number.contains("0.5"), "{number}");
        assert!(message(row("tags", AttributeValue::Ss(Vec::new()))).contains("`tags`"));
        assert!(message(row("pk", AttributeValue::N("1".to_owned()))).contains("`pk`"));
        assert!(message(from_attributes(HashMap::new())).contains("`pk`"));
        assert_eq!(row("n", AttributeValue::N("-9".to_owned())).unwrap().number("n"), Some(-9));
    }

    #[test]
    fn names_and_values_stay_out_of_the_text_of_an_expression() {
        let expression = Expression::of(&Condition::equals("a OR b", "c"));
        assert_eq!(expression.text.as_deref(), Some("#name = :value"));
        assert_eq!(Expression::of(&Condition::Always), Expression::default());
        assert!(Expression::of_check(&Condition::Always).text.is_some());
    }
}
