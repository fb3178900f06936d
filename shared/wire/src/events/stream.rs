//! DynamoDB stream records as Lambda delivers them, and the answer per record.
//!
//! A record that cannot be read stands in its place among the others, so that one of them neither stops its shard nor
//! is lost. Attributes of kinds that an [`Item`] does not have (lists, maps, sets, null, numbers that are not whole) are
//! left out: a later version may write them. A record without its key is bad.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::{Unreadable, decode_base64, field};
use crate::item::{Attr, Item, Key, PK, SK};

const SOURCE: &str = "aws:dynamodb";
/// Who removes rows whose time to live has passed.
const TTL_PRINCIPAL: &str = "dynamodb.amazonaws.com";

/// What happened to the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// It is new.
    Insert,
    /// It was changed.
    Modify,
    /// It was removed.
    Remove,
}

/// A change of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamRecord {
    /// Its place in the shard; what [`batch_response`] wants.
    pub sequence_number: String,
    /// What happened.
    pub kind: RecordKind,
    /// The row's key.
    pub key: Key,
    /// The row afterwards, if the stream carries it; always `None` for a removal.
    pub new: Option<Item>,
    /// It was removed because its time to live had passed.
    pub expired_by_ttl: bool,
}

/// A record that cannot be read, now or later: count it. Answered as failed it goes to the mapping's failure destination
/// once its retries are spent, so these must be limited.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("stream record {}: {reason}", sequence_number.as_deref().unwrap_or("without number"))]
pub struct BadRecord {
    /// Its place in the shard, if even that can be read.
    pub sequence_number: Option<String>,
    /// What is wrong.
    pub reason: String,
}

/// The records of a batch in order, each for itself. What is no batch is one bad record.
pub fn parse(event: &Value) -> Vec<Result<StreamRecord, BadRecord>> {
    match field::present(event, "Records").and_then(Value::as_array) {
        Some(records) => records.iter().map(record).collect(),
        None => vec![Err(BadRecord { sequence_number: None, reason: "Records: expected a list".to_owned() })],
    }
}

/// Lambda's answer when some records failed: each of these, and by the mapping's rule all after the first of them,
/// are delivered again. None failed: an empty list.
pub fn batch_response<I>(failed_sequence_numbers: I) -> Value
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    let failures: Vec<Value> = failed_sequence_numbers
        .into_iter()
        .map(|number| json!({"itemIdentifier": number.as_ref()}))
        .collect();
    json!({"batchItemFailures": failures})
}

/// A payload of such records, for hosts that play Lambda's event source mapping.
pub fn encode_payload(records: impl IntoIterator<Item = Value>) -> Value {
    json!({"Records": records.into_iter().collect::<Vec<Value>>()})
}

/// One record as DynamoDB writes it, with the new image only. A removal has none.
pub fn encode_record(sequence: u64, kind: RecordKind, key: &Key, new: Option<&Item>) -> Value {
    let name = match kind {
        RecordKind::Insert => "INSERT",
        RecordKind::Modify => "MODIFY",
        RecordKind::Remove => "REMOVE",
    };
    let mut change = json!({
        "Keys": key_attributes(key),
        "SequenceNumber": format!("{sequence:021}"),
        "StreamViewType": "NEW_IMAGE",
    });
    if let (Some(item), RecordKind::Insert | RecordKind::Modify) = (new, kind) {
        change["NewImage"] = image(item);
    }
    json!({
        "eventID": format!("{sequence:032}"),
        "eventName": name,
        "eventVersion": "1.1",
        "eventSource": SOURCE,
        "dynamodb": change,
    })
}

fn record(value: &Value) -> Result<StreamRecord, BadRecord> {
    let sequence_number =
        value.pointer("/dynamodb/SequenceNumber").and_then(Value::as_str).map(str::to_owned);
    read(value, sequence_number.as_deref())
        .map_err(|error| BadRecord { sequence_number, reason: error.to_string() })
}

fn read(value: &Value, sequence_number: Option<&str>) -> Result<StreamRecord, Unreadable> {
    let wrong = |path, expected| Unreadable::Field { path, expected };
    if field::text(value, "eventSource", "eventSource")? != SOURCE {
        return Err(wrong("eventSource", SOURCE));
    }
    let kind = match field::text(value, "eventName", "eventName")? {
        "INSERT" => RecordKind::Insert,
        "MODIFY" => RecordKind::Modify,
        "REMOVE" => RecordKind::Remove,
        _ => return Err(wrong("eventName", "INSERT, MODIFY or REMOVE")),
    };
    let sequence_number = sequence_number.ok_or(wrong("dynamodb.SequenceNumber", "text"))?.to_owned();
    let change = field::present(value, "dynamodb").ok_or(wrong("dynamodb", "an object"))?;
    let keys = field::present(change, "Keys").ok_or(wrong("dynamodb.Keys", "an object"))?;
    let key = Key::new(key_part(keys, PK)?, key_part(keys, SK)?);
    let image = field::present(change, "NewImage").filter(|_| kind != RecordKind::Remove);
    let new = image.map(|image| item(&key, image)).transpose()?;
    let principal = value.pointer("/userIdentity/principalId").and_then(Value::as_str);
    let expired_by_ttl = kind == RecordKind::Remove && principal == Some(TTL_PRINCIPAL);
    Ok(StreamRecord { sequence_number, kind, key, new, expired_by_ttl })
}

fn key_part<'a>(keys: &'a Value, name: &str) -> Result<&'a str, Unreadable> {
    keys.get(name)
        .and_then(|value| value.get("S"))
        .and_then(Value::as_str)
        .ok_or(Unreadable::Field { path: "dynamodb.Keys", expected: "the texts pk and sk" })
}

fn item(key: &Key, image: &Value) -> Result<Item, Unreadable> {
    let image =
        image.as_object().ok_or(Unreadable::Field { path: "dynamodb.NewImage", expected: "an object" })?;
    let mut item = Item::new(key.clone());
    for (name, value) in image.iter().filter(|(name, _)| *name != PK && *name != SK) {
        if let Some(value) = attribute(value)? {
            item.attributes.insert(name.clone(), value);
        }
    }
    Ok(item)
}

/// An attribute of a kind that an [`Item`] has.
fn attribute(value: &Value) -> Result<Option<Attr>, Unreadable> {
    let wrong = |expected| Unreadable::Field { path: "dynamodb.NewImage", expected };
    let object = value.as_object().filter(|object| object.len() == 1);
    let (kind, value) =
        object.and_then(|object| object.iter().next()).ok_or(wrong("values of one kind each"))?;
    let text = || value.as_str().ok_or(wrong("S, N and B as text"));
    Ok(match kind.as_str() {
        "S" => Some(Attr::S(text()?.to_owned())),
        "N" => text()?.parse().ok().map(Attr::N),
        "B" => Some(Attr::B(decode_base64(text()?, "dynamodb.NewImage")?)),
        "BOOL" => Some(Attr::Bool(value.as_bool().ok_or(wrong("BOOL as true or false"))?)),
        _ => None,
    })
}

fn key_attributes(key: &Key) -> Value {
    json!({PK: {"S": key.pk}, SK: {"S": key.sk}})
}

fn image(item: &Item) -> Value {
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
