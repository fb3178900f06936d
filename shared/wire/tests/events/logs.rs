//! Tests of log batches and of the facts made of them.

use std::io::Write;
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tuning::log::fact::{Fact, JobKey, MetricLine, Recorded};
use tuning::log::problem::LogProblem;
use tuning::unit::limits::MAX_LINES_PER_FACT;
use tuning::unit::time::Time;
use wire::events::EventError;
use wire::events::logs::{
    Delivery, LogBatch, LogEvent, MAX_BATCH_BYTES, MAX_ID_BYTES, MessageType, MetricPattern, StreamLines,
    encode_batch, lines_to_facts,
};

use crate::samples::{bytes, sample};

const KEY: JobKey = JobKey::new(7, 1, 1);
const STREAM: &str = "hb1-3fa1c2-7-1-1/algo-1-1789000000";

pub(crate) fn log_event(id: &str, timestamp: i64, message: &str) -> LogEvent {
    LogEvent { id: id.to_owned(), timestamp, message: message.to_owned() }
}

fn line(id: usize, at: i64) -> MetricLine {
    MetricLine { id: format!("{id:056}"), at: Time(at), index: None, value: Some(0.5) }
}

fn delivery(bytes: &[u8]) -> Value {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory");
    json!({"awslogs": {"data": STANDARD.encode(encoder.finish().expect("memory"))}})
}

#[test]
fn the_sample_batch_equals_the_decoded_sample() {
    let batch = LogBatch::parse(&sample("aws.logs/subscription.data-message.json")).unwrap();
    assert_eq!(batch, LogBatch::from_json(&bytes("aws.logs/data-message.decoded.json")).unwrap());
    assert_eq!((batch.message_type.clone(), batch.log_stream.as_str()), (MessageType::Data, STREAM));
    assert_eq!(batch.log_group, "/aws/sagemaker/TrainingJobs");
    assert_eq!(batch.events.len(), 4);
    assert_eq!(LogBatch::parse(&batch.encode()), Ok(batch));
}

#[test]
fn a_control_message_has_no_events() {
    let batch = LogBatch::parse(&sample("aws.logs/subscription.control-message.json")).unwrap();
    assert_eq!((batch.message_type, batch.events.len()), (MessageType::Control, 0));
    let other = json!({"messageType": "NEW", "logEvents": [{"id": "1", "timestamp": 1, "message": "x"}]});
    let batch = LogBatch::parse(&delivery(other.to_string().as_bytes())).unwrap();
    assert_eq!((batch.message_type, batch.events.len()), (MessageType::Other("NEW".to_owned()), 0));
}

/// Most streams of an account belong to other jobs or hosts. Their names are read without their events.
#[test]
fn a_delivery_shows_its_stream_before_its_events_are_read() {
    let json = json!({"messageType": "DATA_MESSAGE", "logStream": STREAM, "logEvents": [{"id": 7}]});
    let delivered = Delivery::parse(&delivery(json.to_string().as_bytes())).unwrap();
    assert_eq!(delivered.log_stream, STREAM);
    assert!(delivered.batch().is_err(), "an event without a text is unreadable");
}

#[test]
fn events_are_sorted_and_unique() {
    let events =
        vec![log_event("3", 2, "c"), log_event("2", 1, "b"), log_event("3", 2, "c"), log_event("1", 1, "a")];
    let batch = LogBatch::parse(&encode_batch("g", STREAM, events)).unwrap();
    let ids: Vec<&str> = batch.events.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(ids, ["1", "2", "3"]);
}

#[test]
fn invalid_deliveries_are_unreadable() {
    for event in [
        json!({}),
        json!({"awslogs": null}),
        json!({"awslogs": {"data": 5}}),
        json!({"awslogs": {"data": "%%%"}}),
        json!({"awslogs": {"data": "AAAA"}}),
        json!({"awslogs": {"data": ""}}),
        delivery(b"not json"),
        delivery(b"{}"),
        delivery(b"{\"messageType\":\"DATA_MESSAGE\",\"logEvents\":[{\"id\":1}]}"),
    ] {
        assert!(matches!(LogBatch::parse(&event), Err(EventError::Unreadable(_))), "{event}");
    }
    let mut cut = sample("aws.logs/subscription.data-message.json");
    let data = cut["awslogs"]["data"].as_str().unwrap()[..100].to_owned();
    cut["awslogs"]["data"] = data.into();
    assert!(matches!(LogBatch::parse(&cut), Err(EventError::Unreadable(_))));
}

#[test]
fn a_gzip_bomb_is_rejected_during_decompression() {
    let bomb = delivery(&vec![b' '; MAX_BATCH_BYTES + 1]);
    assert!(bomb.to_string().len() < 100_000);
    assert!(matches!(LogBatch::parse(&bomb), Err(EventError::TooLarge { .. })));
    let large = json!({"awslogs": {"data": "A".repeat(wire::events::MAX_PAYLOAD_BYTES + 4)}});
    assert!(matches!(LogBatch::parse(&large), Err(EventError::TooLarge { .. })));
}

#[test]
fn many_lines_become_several_facts() {
    let count = MAX_LINES_PER_FACT * 2 + 1;
    let lines: Vec<MetricLine> = (0..count).rev().map(|id| line(id, i64::try_from(id).unwrap())).collect();
    let facts = lines_to_facts("logs", KEY, STREAM, lines.clone());
    let mut found = Vec::new();
    for recorded in &facts {
        let Fact::MetricsLogged { job, stream, lines, .. } = &recorded.fact else { panic!("another fact") };
        assert_eq!((*job, stream.as_str()), (KEY, STREAM));
        assert!(lines.len() <= MAX_LINES_PER_FACT);
        assert_eq!(Some(recorded.at), lines.iter().map(|line| line.at).max());
        assert!(recorded.key.starts_with(&format!("logs#7-1-1#{STREAM}#{}#", lines[0].id)));
        found.extend(lines.clone());
    }
    assert_eq!(facts.len(), 3);
    assert_eq!(found.len(), count);
    assert_eq!(facts, lines_to_facts("logs", KEY, STREAM, lines));
    assert_eq!(lines_to_facts("logs", KEY, STREAM, Vec::new()), []);
}

#[test]
fn a_batch_with_other_lines_has_another_key() {
    let keys: Vec<String> = [vec![1, 2, 3], vec![1, 3], vec![1, 2], vec![1, 2, 3, 4]]
        .into_iter()
        .flat_map(|ids| lines_to_facts("logs", KEY, STREAM, ids.into_iter().map(|id| line(id, 5)).collect()))
        .map(|recorded| recorded.key)
        .collect();
    let unique: std::collections::BTreeSet<&String> = keys.iter().collect();
    assert_eq!((keys.len(), unique.len()), (4, 4));
    let reread = lines_to_facts("read", KEY, STREAM, vec![line(1, 5)]);
    assert!(reread[0].key.starts_with("read#"));
}

#[test]
fn a_large_batch_is_parsed_completely() {
    let message = "[00:30:01] [12]#011train-auc:0.70112#011validation-auc:0.69031";
    let count = 10_000;
    let events: Vec<LogEvent> = (0..count)
        .map(|n| {
            let text = if n % 2 == 0 { message.to_owned() } else { "x".repeat(80) };
            log_event(&format!("{n:056}"), i64::from(n), &text)
        })
        .collect();
    let delivery = encode_batch("/aws/sagemaker/TrainingJobs", STREAM, events);
    let pattern =
        MetricPattern::new(r".*\[[0-9]+\].*#011validation-auc:(\S+)", Some(r"\[(\d+)\]#011")).unwrap();
    let begun = Instant::now();
    let batch = LogBatch::parse(&delivery).unwrap();
    let lines: Vec<MetricLine> = batch
        .events
        .iter()
        .flat_map(|event| pattern.read(&event.message).lines(&event.id, Time(event.timestamp)))
        .collect();
    println!("{count} events in {:?}", begun.elapsed());
    assert_eq!(lines.len(), 5_000);
    assert!(lines.iter().all(|line| line.index == Some(12) && line.value == Some(0.69031)));
}

#[test]
fn an_invalid_event_id_is_unreadable() {
    let batch = |id: &str| json!({"messageType": "DATA_MESSAGE", "logEvents": [{"id": id, "timestamp": 1, "message": ""}]});
    let read = |id: &str| LogBatch::from_json(batch(id).to_string().as_bytes());
    for id in ["", "a b", "\u{1}", "é", &"1".repeat(MAX_ID_BYTES + 1)] {
        let error = read(id).unwrap_err();
        assert!(error.to_string().contains("logEvents[].id"), "{id}: {error}");
    }
    let longest = "\"".repeat(MAX_ID_BYTES);
    assert!(read(&longest).is_ok());
    let line = MetricLine { id: longest, at: Time(i64::MAX), index: Some(u64::MAX), value: Some(f64::MIN) };
    let lines = vec![line; MAX_LINES_PER_FACT];
    let facts = lines_to_facts("logs", KEY, STREAM, lines);
    let row = wire::stored::fact_row("hb1-3fa1c2", &facts[0]);
    assert!(
        row.size_bytes() <= wire::item::MAX_ITEM_BYTES && row.key.sk.len() <= 1_024,
        "{}",
        row.size_bytes()
    );
}

#[test]
fn an_error_does_not_contain_log_text() {
    for event in [json!({"id": "1", "timestamp": "a secret", "message": ""}), json!("a secret")] {
        let batch = json!({"messageType": "DATA_MESSAGE", "logEvents": [event]});
        let error = LogBatch::from_json(batch.to_string().as_bytes()).unwrap_err().to_string();
        assert!(error.contains("line 1 column") && !error.contains("secret"), "{error}");
    }
}

/// Returns the facts of log lines of one stream, each a second after the one before.
fn facts_of(pattern: &MetricPattern, lines: &[&str]) -> Vec<Recorded> {
    let mut read = StreamLines::default();
    for (second, line) in (1..).zip(lines) {
        read.add(&log_event(&format!("{second:056}"), second * 1_000, line), &pattern.read(line));
    }
    read.into_facts(KEY, STREAM)
}

fn indexes(fact: &Recorded) -> (Vec<Option<u64>>, Option<u64>) {
    let Fact::MetricsLogged { lines, began, .. } = &fact.fact else { panic!("another fact") };
    (lines.iter().map(|line| line.index).collect(), *began)
}

#[test]
fn a_value_without_an_epoch_has_that_of_the_line_before_it() {
    let pattern = MetricPattern::new(r"val_loss: (\S+)", Some(r"Epoch (\d+)/")).unwrap();
    let keras = ["Epoch 1/9", "60/60 - val_loss: 0.5", "Epoch 2/9", "60/60 - val_loss: 0.4", "Epoch 3/9"];
    let facts = facts_of(&pattern, &keras);
    let found: Vec<_> = facts.iter().map(indexes).collect();
    assert_eq!(found, [(vec![Some(1), Some(2)], None), (Vec::new(), Some(3))]);
    // The same epoch in a later batch is the same fact.
    let again = facts_of(&pattern, &["Epoch 3/9", "Epoch 3/9"]);
    assert_eq!(again[0].key, facts[1].key);
    let early = facts_of(&pattern, &["60/60 - val_loss: 0.4"]);
    assert_eq!(early.iter().map(indexes).collect::<Vec<_>>(), [(vec![None], None)]);
    // A line with both ends the epoch of an earlier line.
    let both = facts_of(&pattern, &["Epoch 1/9", "Epoch 2/9 val_loss: 0.4", "test val_loss: 0.3"]);
    assert_eq!(both.iter().map(indexes).collect::<Vec<_>>(), [(vec![Some(2), None], None)]);
}

#[test]
fn epochs_that_arrive_at_once_are_a_problem() {
    let pattern = MetricPattern::new(r"loss=(\S+)", Some(r"epoch (\d+)")).unwrap();
    let problems = |lines: &[(i64, &str)]| {
        let mut read = StreamLines::default();
        for (number, (at, line)) in lines.iter().enumerate() {
            read.add(&log_event(&format!("{number:056}"), *at, line), &pattern.read(line));
        }
        let facts = read.into_facts(KEY, STREAM);
        facts
            .into_iter()
            .filter_map(|fact| match fact.fact {
                Fact::LogProblemSeen { problem, .. } => Some((fact.key, *problem)),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    let three = [(1_000, "epoch 1 loss=3"), (1_001, "epoch 2 loss=2"), (1_005, "epoch 3 loss=1")];
    assert_eq!(problems(&three), [(format!("problem#burst#{KEY}"), LogProblem::Burst { epochs: 3 })]);
    let slower = [(1_000, "epoch 1 loss=3"), (1_001, "epoch 2 loss=2"), (1_006, "epoch 3 loss=1")];
    assert_eq!(problems(&slower), []);
    let repeated = [(1_000, "epoch 1 loss=3"), (1_001, "epoch 1 loss=2"), (1_002, "epoch 1 loss=1")];
    assert_eq!(problems(&repeated), [], "lines of one epoch");
    let shortly_before = [(0, "epoch 0 loss=4"), (1_999, "epoch 1 loss=3"), (2_000, "epoch 2 loss=2")];
    let [first, second, third] = shortly_before;
    assert_eq!(problems(&[first, second, third, (2_001, "epoch 3 loss=1")]), [], "short epochs");
    let quiet = [first, (2_000, "epoch 1 loss=3"), third, (2_001, "epoch 3 loss=1")];
    assert_eq!(problems(&quiet).len(), 1);
}
