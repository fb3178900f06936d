//! Tests of stream records.

use serde_json::{Value, json};
use wire::events::stream::{RecordKind, StreamRecord, batch_response, encode_payload, encode_record, parse};
use wire::item::{Attr, Item, Key};

use crate::samples::sample;

fn key() -> Key {
    Key::new("F#hb1-3fa1c2", "7-1-1#x")
}

fn item() -> Item {
    Item::new(key())
        .with("text", "é\"")
        .with("number", i64::MIN)
        .with("bytes", vec![0, 255, 7])
        .with("flag", Attr::Bool(false))
}

/// Parses a record whose image has one more attribute.
fn with_attribute(value: Value) -> Result<StreamRecord, String> {
    let mut record = encode_record(1, RecordKind::Insert, &key(), Some(&item()));
    record["dynamodb"]["NewImage"]["more"] = value;
    parse(&encode_payload([record])).remove(0).map_err(|bad| bad.to_string())
}

#[test]
fn the_sample_records_are_parsed() {
    let records: Vec<StreamRecord> = parse(&sample("aws.dynamodb/stream-records.other-tables.json"))
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let kinds: Vec<RecordKind> = records.iter().map(|record| record.kind).collect();
    assert_eq!(kinds, [RecordKind::Insert, RecordKind::Modify, RecordKind::Remove]);
    assert!(records.iter().all(|record| record.key == Key::new("TUNER#hb1", "TRIAL#007")));
    assert_eq!(records[0].sequence_number, "111000000000000000000001");
    let inserted = records[0].new.as_ref().unwrap();
    assert_eq!((inserted.text("status"), inserted.number("rung")), (Some("RUNNING"), Some(0)));
    assert_eq!(inserted.attributes.len(), 2);
    // The fraction is ignored.
    assert_eq!(records[1].new.as_ref().unwrap().attributes.len(), 2);
    assert_eq!(records[2].new, None);
    assert_eq!(records.iter().map(|r| r.expired_by_ttl).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn an_encoded_record_parses_to_itself() {
    for (kind, new) in [
        (RecordKind::Insert, Some(item())),
        (RecordKind::Modify, Some(Item::new(key()))),
        (RecordKind::Modify, None),
        (RecordKind::Remove, None),
    ] {
        let written = encode_record(12, kind, &key(), new.as_ref());
        let read = parse(&encode_payload([written])).remove(0).unwrap();
        let sequence_number = "000000000000000000012".to_owned();
        assert_eq!(read, StreamRecord { sequence_number, kind, key: key(), new, expired_by_ttl: false });
    }
    let removed = encode_record(1, RecordKind::Remove, &key(), Some(&item()));
    assert_eq!(parse(&encode_payload([removed])).remove(0).unwrap().new, None);
}

#[test]
fn attributes_of_other_types_are_ignored() {
    for value in [
        json!({"NULL": true}),
        json!({"L": [{"S": "x"}]}),
        json!({"M": {"a": {"S": "x"}}}),
        json!({"SS": ["x"]}),
        json!({"NS": ["1"]}),
        json!({"BS": ["AA=="]}),
        json!({"N": "1.5"}),
        json!({"N": "9223372036854775808"}),
        json!({"NEW": {}}),
    ] {
        assert_eq!(with_attribute(value.clone()).map(|record| record.new), Ok(Some(item())), "{value}");
    }
}

#[test]
fn an_invalid_attribute_makes_a_record_unreadable() {
    for value in
        [json!({"S": 1}), json!({"N": 1}), json!({"B": "%"}), json!({"BOOL": "true"}), json!("x"), json!({})]
    {
        assert!(with_attribute(value.clone()).is_err(), "{value}");
    }
}

#[test]
fn a_bad_record_keeps_its_position_among_the_others() {
    let good = encode_record(1, RecordKind::Insert, &key(), None);
    let change = |pointer: &str, value: Value| {
        let mut record = encode_record(2, RecordKind::Insert, &key(), None);
        *record.pointer_mut(pointer).expect("a member") = value;
        record
    };
    for bad in [
        change("/eventName", json!("MERGE")),
        change("/eventSource", json!("aws:kinesis")),
        change("/dynamodb/Keys/sk", json!({"N": "1"})),
        change("/dynamodb/Keys", json!(null)),
    ] {
        let read = parse(&encode_payload([good.clone(), bad.clone(), good.clone()]));
        assert_eq!(read.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true], "{bad}");
        let number = read[1].as_ref().unwrap_err().sequence_number.as_deref();
        assert_eq!(number, Some("000000000000000000002"));
    }
    for bad in [json!(null), change("/dynamodb/SequenceNumber", json!(7))] {
        let read = parse(&encode_payload([bad])).remove(0).unwrap_err();
        assert_eq!(read.sequence_number, None);
        assert!(read.to_string().starts_with("stream record without sequence number: "));
    }
}

#[test]
fn an_event_that_is_not_a_batch_is_one_bad_record() {
    for event in [json!({}), json!({"Records": 1}), json!([])] {
        assert_eq!(parse(&event).len(), 1);
        assert!(parse(&event)[0].is_err());
    }
    assert!(parse(&encode_payload([])).is_empty());
}

#[test]
fn the_batch_response_lists_the_failed_records() {
    let expected = sample("aws.lambda/batch-response.partial.json");
    assert_eq!(batch_response(["111000000000000000000002"]), expected);
    assert_eq!(batch_response(&["111000000000000000000002".to_owned()]), expected);
    assert_eq!(batch_response(Vec::<String>::new()), json!({"batchItemFailures": []}));
}
