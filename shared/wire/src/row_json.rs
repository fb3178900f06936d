//! Rows in DynamoDB's JSON: each attribute with its type, such as `{"S": "text"}`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::events::{Unreadable, decode_base64};
use crate::item::{Attr, Item, Key, PK, SK};

/// Place of a row's attributes in messages.
const IMAGE: &str = "dynamodb.NewImage";

/// Returns a row with its key.
pub fn encode(item: &Item) -> Value {
    let attributes = item.attributes.iter().map(|(name, value)| {
        let value = match value {
            Attr::S(text) => json!({"S": text}),
            Attr::N(number) => json!({"N": number.to_string()}),
            Attr::B(bytes) => json!({"B": STANDARD.encode(bytes)}),
            Attr::Bool(truth) => json!({"BOOL": truth}),
        };
        (name.clone(), value)
    });
    let mut image: Map<String, Value> = attributes.collect();
    image.insert(PK.to_owned(), json!({"S": item.key.pk}));
    image.insert(SK.to_owned(), json!({"S": item.key.sk}));
    Value::Object(image)
}

/// Reads a row with its key. Ignores attributes of types that an [`Item`] lacks.
pub fn decode(row: &Value) -> Result<Item, Unreadable> {
    let part = |name: &str| {
        let text = row.get(name).and_then(|value| value.get("S")).and_then(Value::as_str);
        text.ok_or(Unreadable::Field { path: IMAGE, expected: "strings pk and sk" })
    };
    attributes(Key::new(part(PK)?, part(SK)?), row)
}

pub(crate) fn attributes(key: Key, image: &Value) -> Result<Item, Unreadable> {
    let image = image.as_object().ok_or(Unreadable::Field { path: IMAGE, expected: "an object" })?;
    let mut item = Item::new(key);
    for (name, value) in image.iter().filter(|(name, _)| *name != PK && *name != SK) {
        if let Some(value) = attribute(value)? {
            item.attributes.insert(name.clone(), value);
        }
    }
    Ok(item)
}

/// Returns an attribute, or `None` for a type that an [`Item`] lacks.
fn attribute(value: &Value) -> Result<Option<Attr>, Unreadable> {
    let wrong = |expected| Unreadable::Field { path: IMAGE, expected };
    let object = value.as_object().filter(|object| object.len() == 1);
    let (kind, value) = object.and_then(|object| object.iter().next()).ok_or(wrong("one type per value"))?;
    let text = || value.as_str().ok_or(wrong("S, N and B as strings"));
    Ok(match kind.as_str() {
        "S" => Some(Attr::S(text()?.to_owned())),
        "N" => text()?.parse().ok().map(Attr::N),
        "B" => Some(Attr::B(decode_base64(text()?, IMAGE)?)),
        "BOOL" => Some(Attr::Bool(value.as_bool().ok_or(wrong("BOOL as true or false"))?)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let item = Item::new(Key::new("T#hb1", "HEAD"))
            .with("text", Attr::S("a".to_owned()))
            .with("number", Attr::N(-7))
            .with("bytes", Attr::B(vec![0, 255]))
            .with("truth", Attr::Bool(true));
        assert_eq!(decode(&encode(&item)), Ok(item));
        assert!(decode(&json!({"pk": {"S": "T#hb1"}})).is_err());
    }
}
