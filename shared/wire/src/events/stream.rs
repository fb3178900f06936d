//! DynamoDB stream records as Lambda delivers them, and the batch response.
//!
//! An unreadable record keeps its position among the others, so it neither blocks its shard nor gets lost. Attributes
//! of types that an [`Item`] lacks (lists, maps, sets, null, fractions) are ignored, because a later version may write
//! them. A record without its key is unreadable.

use serde_json::{Value, json};
use thiserror::Error;

use super::{Unreadable, field};
use crate::item::{Item, Key, PK, SK};
use crate::row_json;

const SOURCE: &str = "aws:dynamodb";
/// Principal that removes rows whose time to live has expired.
const TTL_PRINCIPAL: &str = "dynamodb.amazonaws.com";

/// Kind of the change of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// The row was inserted.
    Insert,
    /// The row was modified.
    Modify,
    /// The row was removed.
    Remove,
}

/// A change of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamRecord {
    /// Position in the shard, an argument of [`batch_response`].
    pub sequence_number: String,
    /// Kind of the change.
    pub kind: RecordKind,
    /// Key of the row.
    pub key: Key,
    /// The row after the change; `None` for a removal, or if the stream has no new image.
    pub new: Option<Item>,
    /// Whether the row was removed because its time to live had expired.
    pub expired_by_ttl: bool,
}

/// A permanently unreadable record. Count it. If the response reports it as failed, Lambda sends it to the failure
/// destination after the last retry, so the event source mapping must limit retries.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("stream record {}: {reason}", sequence_number.as_deref().unwrap_or("without sequence number"))]
pub struct BadRecord {
    /// Position in the shard; `None` = unreadable.
    pub sequence_number: Option<String>,
    /// The reason.
    pub reason: String,
}

/// Returns the records of a batch in order. An event that is not a batch yields one bad record.
pub fn parse(event: &Value) -> Vec<Result<StreamRecord, BadRecord>> {
    match field::present(event, "Records").and_then(Value::as_array) {
        Some(records) => records.iter().map(record).collect(),
        None => vec![Err(BadRecord {
            sequence_number: None,
            reason: "invalid Records: expected a list".to_owned(),
        })],
    }
}

/// Returns the response for failed records; an empty list reports success. The event source mapping delivers the first
/// failed record and all records after it again.
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

/// Returns a payload of records, for hosts that emulate Lambda's event source mapping.
pub fn encode_payload(records: impl IntoIterator<Item = Value>) -> Value {
    json!({"Records": records.into_iter().collect::<Vec<Value>>()})
}

/// Returns one record as DynamoDB writes it, with only the new image; a removal has no image.
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
        change["NewImage"] = row_json::encode(item);
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
    parse_change(value, sequence_number.as_deref())
        .map_err(|error| BadRecord { sequence_number, reason: error.to_string() })
}

fn parse_change(value: &Value, sequence_number: Option<&str>) -> Result<StreamRecord, Unreadable> {
    let wrong = |path, expected| Unreadable::Field { path, expected };
    if field::text(value, "eventSource")? != SOURCE {
        return Err(wrong("eventSource", SOURCE));
    }
    let kind = match field::text(value, "eventName")? {
        "INSERT" => RecordKind::Insert,
        "MODIFY" => RecordKind::Modify,
        "REMOVE" => RecordKind::Remove,
        _ => return Err(wrong("eventName", "INSERT, MODIFY or REMOVE")),
    };
    let sequence_number = sequence_number.ok_or(wrong("dynamodb.SequenceNumber", "a string"))?.to_owned();
    let change = field::object(value, "dynamodb")?;
    let keys = field::object(change, "dynamodb.Keys")?;
    let key = Key::new(key_part(keys, PK)?, key_part(keys, SK)?);
    let image = field::present(change, "NewImage").filter(|_| kind != RecordKind::Remove);
    let new = image.map(|image| row_json::attributes(key.clone(), image)).transpose()?;
    let principal = value.pointer("/userIdentity/principalId").and_then(Value::as_str);
    let expired_by_ttl = kind == RecordKind::Remove && principal == Some(TTL_PRINCIPAL);
    Ok(StreamRecord { sequence_number, kind, key, new, expired_by_ttl })
}

fn key_part<'a>(keys: &'a Value, name: &str) -> Result<&'a str, Unreadable> {
    keys.get(name)
        .and_then(|value| value.get("S"))
        .and_then(Value::as_str)
        .ok_or(Unreadable::Field { path: "dynamodb.Keys", expected: "strings pk and sk" })
}

fn key_attributes(key: &Key) -> Value {
    json!({PK: {"S": key.pk}, SK: {"S": key.sk}})
}
