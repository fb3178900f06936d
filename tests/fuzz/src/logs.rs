//! Target `logs`: log batches as JSON, as gzip bytes and as a whole delivery; then the facts of their lines.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tuning::log::fact::{Fact, JobKey, MetricLine};
use tuning::unit::limits::MAX_LINES_PER_FACT;
use tuning::unit::time::Time;
use wire::events::logs::{LogBatch, MAX_BATCH_BYTES, MessageType, MetricPattern, lines_to_facts};
use wire::events::{EventError, payload};
use wire::names::{log_stream, parse_training_job_name};
use wire::stored;

use crate::{check_error_text, check_row};

/// Number of copies of the input that are compressed together, so that small inputs expand to large batches.
const COPIES: usize = 64;

/// The first byte is the kind of the other bytes.
pub(crate) fn run(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else { return };
    match kind {
        b'{' => json_batch(input),
        b'z' => packed(rest),
        b'b' => check_delivery(&json!({"awslogs": {"data": String::from_utf8_lossy(rest)}})),
        b'p' => match payload(rest) {
            Ok(event) => check_delivery(&event),
            Err(error) => check_error_text(&error),
        },
        // Large batches: the bytes are repeated and compressed.
        _ => packed(&gzip(&rest.repeat(COPIES))),
    }
}

fn json_batch(json: &[u8]) {
    let direct = LogBatch::from_json(json);
    let delivered = LogBatch::parse(&delivery(&gzip(json)));
    match direct {
        Ok(batch) => {
            assert_eq!(delivered.as_ref(), Ok(&batch), "compression changes nothing");
            check(&batch, json.len());
        }
        Err(error) => {
            check_error_text(&error);
            // The name of the stream is read first, so another error may come first.
            assert!(matches!(delivered, Err(EventError::Unreadable(_))), "{delivered:?}");
        }
    }
}

/// Reads the bytes as gzip, and compares with an unbounded reader of the first bytes.
fn packed(bytes: &[u8]) {
    let mut start = Vec::new();
    let whole = GzDecoder::new(bytes).take(u64::from(u16::MAX)).read_to_end(&mut start).is_ok();
    match LogBatch::parse(&delivery(bytes)) {
        Ok(batch) => {
            assert!(whole, "invalid gzip was read");
            check(&batch, MAX_BATCH_BYTES);
        }
        Err(error) => check_error_text(&error),
    }
}

fn check_delivery(event: &Value) {
    match LogBatch::parse(event) {
        Ok(batch) => check(&batch, MAX_BATCH_BYTES),
        Err(error) => check_error_text(&error),
    }
}

fn check(batch: &LogBatch, bytes: usize) {
    let events = &batch.events;
    let held: usize = events.iter().map(|event| event.id.len() + event.message.len()).sum();
    assert!(
        held + batch.log_group.len() + batch.log_stream.len() <= bytes,
        "the batch holds more text than the input"
    );
    assert!(batch.message_type == MessageType::Data || events.is_empty());
    assert!(
        events.is_sorted_by(|a, b| (a.timestamp, &a.id) < (b.timestamp, &b.id)),
        "the events are out of order"
    );
    let ids: BTreeSet<&str> = events.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(ids.len(), events.len(), "an event ID is duplicated");
    assert_eq!(LogBatch::parse(&batch.encode()).as_ref(), Ok(batch), "the batch reads back the same");
    let lines: Vec<MetricLine> = events
        .iter()
        .flat_map(|event| pattern().read(&event.message).lines(&event.id, Time(event.timestamp)))
        .collect();
    let owner = log_stream(&batch.log_stream).and_then(|stream| parse_training_job_name(&stream.job));
    let Some((id, job)) = owner else { return };
    check_facts(&id, job, &batch.log_stream, &lines);
}

fn check_facts(id: &str, job: JobKey, stream: &str, lines: &[MetricLine]) {
    let facts = lines_to_facts("logs", job, stream, lines.to_vec());
    assert_eq!(facts, lines_to_facts("logs", job, stream, lines.to_vec()));
    let keys: BTreeSet<&str> = facts.iter().map(|fact| fact.key.as_str()).collect();
    assert_eq!(keys.len(), facts.len(), "two facts of a batch have the same key");
    let mut recorded_lines = 0;
    for recorded in &facts {
        let Fact::MetricsLogged { lines, .. } = &recorded.fact else { panic!("expected MetricsLogged") };
        assert!((1..=MAX_LINES_PER_FACT).contains(&lines.len()));
        recorded_lines += lines.len();
        let row = stored::fact_row(id, recorded);
        check_row(&row);
        assert_eq!(stored::fact(&row).as_ref(), Ok(recorded), "the fact reads back the same");
    }
    assert_eq!(recorded_lines, lines.len(), "lines were lost");
}

fn pattern() -> &'static MetricPattern {
    static PATTERN: OnceLock<MetricPattern> = OnceLock::new();
    PATTERN.get_or_init(|| {
        let pattern = MetricPattern::new(r"auc[:=](\S+)", Some(r"\[([0-9]+)\]"));
        pattern.unwrap_or_else(|error| panic!("{error}"))
    })
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to a vector cannot fail.
    encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default()
}

pub(crate) fn delivery(packed: &[u8]) -> Value {
    json!({"awslogs": {"data": STANDARD.encode(packed)}})
}
