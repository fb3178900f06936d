//! Target `stream`: batches of DynamoDB stream records.

use serde_json::{Map, Value};
use wire::events::payload;
use wire::events::stream::{RecordKind, StreamRecord, encode_payload, encode_record, parse};

use crate::check_error_text;
use crate::stored::read_by_all;

pub(crate) fn run(input: &[u8]) {
    let event = match payload(input) {
        Ok(event) => event,
        Err(error) => return check_error_text(&error),
    };
    let records = parse(&event);
    let sent = event.get("Records").and_then(Value::as_array);
    assert_eq!(records.len(), sent.map_or(1, Vec::len), "the response has one result per record");
    for (index, record) in records.into_iter().enumerate() {
        match record {
            Ok(record) => {
                check(&record, input.len());
                let read = record.new.map(|item| item.attributes.len());
                let image = event.pointer(&format!("/Records/{index}/dynamodb/NewImage"));
                let image = image.filter(|_| record.kind != RecordKind::Remove);
                assert_eq!(read, image.and_then(Value::as_object).map(known), "an attribute was lost");
            }
            Err(bad) => check_error_text(&bad.reason),
        }
    }
}

/// Returns the number of attributes with types that rows use, without the key.
fn known(image: &Map<String, Value>) -> usize {
    let whole = |value: &Value| value.as_str().is_some_and(|text| text.parse::<i64>().is_ok());
    let is_known = |value: &Value| {
        ["S", "B", "BOOL"].iter().any(|kind| value.get(kind).is_some()) || value.get("N").is_some_and(whole)
    };
    image.iter().filter(|(name, value)| !["pk", "sk"].contains(&name.as_str()) && is_known(value)).count()
}

fn check(record: &StreamRecord, bytes: usize) {
    // A number counts as 21 bytes, independent of its length.
    let held = record.new.as_ref().map_or(0, wire::item::Item::size_bytes);
    assert!(held <= bytes.saturating_mul(4), "a row of {held} bytes from {bytes} bytes");
    let again = encode_record(7, record.kind, &record.key, record.new.as_ref());
    let again = parse(&encode_payload([again])).pop();
    let sequence_number = format!("{:021}", 7);
    let expected = StreamRecord { sequence_number, expired_by_ttl: false, ..record.clone() };
    assert_eq!(again, Some(Ok(expected)), "the record reads back the same");
    if let Some(item) = &record.new {
        read_by_all(item);
    }
}
