//! Stream records of the table, as an event source mapping delivers them; per-record errors, so that a batch can answer
//! for each.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::item::{Attr, Item, Key, PK, SK};

/// What was done to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// It is new.
    Insert,
    /// It was changed.
    Modify,
    /// It was removed.
    Remove,
}

/// A change of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamRecord {
    /// Names the record in the batch's answer.
    pub sequence_number: String,
    /// What was done.
    pub kind: RecordKind,
    /// The row's key.
    pub key: Key,
    /// The row after the change.
    pub new: Option<Item>,
}

/// A record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRecord {
    /// Its sequence number, if that could be read.
    pub sequence_number: Option<String>,
    /// What is wrong.
    pub reason: String,
}

/// The records of a batch.
pub fn parse(event: &Value) -> Vec<Result<StreamRecord, BadRecord>> {
    let records = event["Records"].as_array().into_iter().flatten();
    records.map(record).collect()
}

fn record(record: &Value) -> Result<StreamRecord, BadRecord> {
    let change = &record["dynamodb"];
    let sequence_number = change["SequenceNumber"].as_str().map(str::to_owned);
    let bad =
        |reason: &str| BadRecord { sequence_number: sequence_number.clone(), reason: reason.to_owned() };
    let kind = match record["eventName"].as_str() {
        Some("INSERT") => RecordKind::Insert,
        Some("MODIFY") => RecordKind::Modify,
        Some("REMOVE") => RecordKind::Remove,
        _ => return Err(bad("no eventName")),
    };
    let part = |name: &str| change["Keys"][name]["S"].as_str().ok_or_else(|| bad("no key"));
    let key = Key::new(part(PK)?, part(SK)?);
    let new = change["NewImage"].as_object().map(|image| item(key.clone(), image));
    let sequence_number = sequence_number.clone().ok_or_else(|| bad("no SequenceNumber"))?;
    Ok(StreamRecord { sequence_number, kind, key, new })
}

/// Attributes of kinds that we never write are passed over.
fn item(key: Key, image: &Map<String, Value>) -> Item {
    let attributes: BTreeMap<String, Attr> = image
        .iter()
        .filter(|(name, _)| name.as_str() != PK && name.as_str() != SK)
        .filter_map(|(name, value)| Some((name.clone(), attribute(value)?)))
        .collect();
    Item { key, attributes }
}

fn attribute(value: &Value) -> Option<Attr> {
    let (kind, value) = value.as_object()?.iter().next()?;
    match kind.as_str() {
        "S" => value.as_str().map(|text| Attr::S(text.to_owned())),
        "N" => value.as_str()?.parse().ok().map(Attr::N),
        "B" => STANDARD.decode(value.as_str()?).ok().map(Attr::B),
        "BOOL" => value.as_bool().map(Attr::Bool),
        _ => None,
    }
}

/// The answer that has the named records (and what follows them) delivered again.
pub fn batch_response(failed: &[String]) -> Value {
    let failures: Vec<Value> = failed.iter().map(|number| json!({"itemIdentifier": number})).collect();
    json!({"batchItemFailures": failures})
}

/// A record as the stream would deliver it, for a local host or a simulator.
pub fn encode_record(sequence: u64, kind: RecordKind, key: &Key, new: Option<&Item>) -> Value {
    let name = match kind {
        RecordKind::Insert => "INSERT",
        RecordKind::Modify => "MODIFY",
        RecordKind::Remove => "REMOVE",
    };
    let keys = json!({PK: {"S": key.pk}, SK: {"S": key.sk}});
    let mut change = json!({"Keys": keys, "SequenceNumber": format!("{sequence:021}")});
    if let Some(item) = new {
        let mut image = keys.as_object().cloned().unwrap_or_default();
        image.extend(item.attributes.iter().map(|(name, value)| (name.clone(), encode(value))));
        change["NewImage"] = Value::Object(image);
    }
    json!({"eventID": format!("{sequence:032}"), "eventName": name, "eventSource": "aws:dynamodb", "dynamodb": change})
}

fn encode(value: &Attr) -> Value {
    match value {
        Attr::S(text) => json!({"S": text}),
        Attr::N(number) => json!({"N": number.to_string()}),
        Attr::B(bytes) => json!({"B": STANDARD.encode(bytes)}),
        Attr::Bool(truth) => json!({"BOOL": truth}),
    }
}
