//! CloudWatch Logs subscription batches: base64 of gzip of JSON.
//!
//! Holds the batch and the making of facts from its metric lines. Assumes that the log group is shared by the whole
//! account: look at [`LogBatch::log_stream`] (see [`crate::names::log_stream`]) and drop what is not ours before any
//! pattern is tried. Delivered at least once, maybe in other batches the second time; an event id is the same always.

use std::collections::BTreeSet;
use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tuning::fact::{Fact, JobKey, MetricLine, Recorded};
use tuning::limits::MAX_LINES_PER_FACT;

pub use super::metric::{Explanation, MetricPattern};
use super::{EventError, MAX_PAYLOAD_BYTES, Unreadable, decode_base64, field, not_json};
use crate::names::incarnation;

/// Largest batch that is unpacked, in bytes. CloudWatch Logs sends about 1 MB; text packs up to a thousandfold, so a
/// payload within Lambda's limit could hold gigabytes.
pub const MAX_BATCH_BYTES: usize = 20 * 1024 * 1024;

/// Longest id of a log event; CloudWatch's have 56 digits. Ids are stored with every line, so that a fact's key and row
/// stay bounded only with them.
pub const MAX_ID_BYTES: usize = 128;

const DATA_PATH: &str = "awslogs.data";

/// What a batch is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum MessageType {
    /// Log events.
    Data,
    /// CloudWatch Logs tries whether we can be reached; nothing to do.
    Control,
    /// A kind that this version does not know; nothing to do.
    Other(String),
}

/// One event of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEvent {
    /// Unique in its stream; the same at every delivery.
    pub id: String,
    /// Milliseconds since the epoch.
    pub timestamp: i64,
    /// The text.
    pub message: String,
}

/// Log events of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogBatch {
    /// What it is.
    pub message_type: MessageType,
    /// Log group.
    #[serde(default)]
    pub log_group: String,
    /// Log stream; empty in a control message.
    #[serde(default)]
    pub log_stream: String,
    /// Its events in order of (timestamp, id), each id once.
    #[serde(rename = "logEvents", default)]
    pub events: Vec<LogEvent>,
}

impl LogBatch {
    /// Reads a delivery. A control message, or one of a kind not known, gives a batch without events.
    pub fn parse(event: &Value) -> Result<Self, EventError> {
        let awslogs = field::present(event, "awslogs")
            .ok_or(Unreadable::Field { path: "awslogs", expected: "an object" })?;
        let data = field::text(awslogs, "data", DATA_PATH)?;
        if data.len() > MAX_PAYLOAD_BYTES {
            return Err(EventError::TooLarge { what: DATA_PATH, limit_bytes: MAX_PAYLOAD_BYTES });
        }
        Ok(Self::from_json(&unpack(&decode_base64(data, DATA_PATH)?)?)?)
    }

    /// Reads the JSON within.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Unreadable> {
        let mut batch: Self = serde_json::from_slice(bytes).map_err(|error| not_json(&error))?;
        if batch.message_type != MessageType::Data {
            batch.events.clear();
        }
        if !batch.events.iter().all(|event| is_id(&event.id)) {
            return Err(Unreadable::Field {
                path: "logEvents[].id",
                expected: "1 to 128 printable characters",
            });
        }
        batch.events.sort_by(|a, b| (a.timestamp, &a.id).cmp(&(b.timestamp, &b.id)));
        let mut seen = BTreeSet::new();
        batch.events.retain(|event| seen.insert(event.id.clone()));
        Ok(batch)
    }

    /// The delivery of this batch, for a local host or a simulator.
    pub fn encode(&self) -> Value {
        let body = json!({
            "messageType": self.message_type,
            "owner": "000000000000",
            "logGroup": self.log_group,
            "logStream": self.log_stream,
            "subscriptionFilters": ["hyperband"],
            "logEvents": self.events,
        });
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing to memory does not fail.
        let packed = encoder.write_all(body.to_string().as_bytes()).and_then(|()| encoder.finish());
        json!({"awslogs": {"data": STANDARD.encode(packed.unwrap_or_default())}})
    }
}

/// The delivery of `events` of one stream, for a local host or a simulator.
pub fn encode_batch(log_group: &str, log_stream: &str, events: Vec<LogEvent>) -> Value {
    let (log_group, log_stream) = (log_group.to_owned(), log_stream.to_owned());
    LogBatch { message_type: MessageType::Data, log_group, log_stream, events }.encode()
}

/// The facts of a job's metric lines that were delivered, each of at most [`MAX_LINES_PER_FACT`]; none for no lines.
pub fn lines_to_facts(job: JobKey, stream: &str, lines: Vec<MetricLine>) -> Vec<Recorded> {
    facts("logs", job, stream, lines)
}

/// The facts of metric lines that were read from the stored log.
pub fn reread_to_facts(job: JobKey, stream: &str, lines: Vec<MetricLine>) -> Vec<Recorded> {
    facts("read", job, stream, lines)
}

fn facts(kind: &str, job: JobKey, stream: &str, mut lines: Vec<MetricLine>) -> Vec<Recorded> {
    lines.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    lines.chunks(MAX_LINES_PER_FACT).filter_map(|lines| one_fact(kind, job, stream, lines)).collect()
}

/// The natural key has the first event id and a digest of all: a delivery that comes again may cut its batch elsewhere,
/// and so begin at the same event and yet hold other lines.
fn one_fact(kind: &str, job: JobKey, stream: &str, lines: &[MetricLine]) -> Option<Recorded> {
    let (first, last) = (lines.first()?, lines.last()?);
    let ids: Vec<&str> = lines.iter().map(|line| line.id.as_str()).collect();
    let digest = incarnation(ids.join("\n").as_bytes());
    let key = format!("{kind}#{job}#{stream}#{}#{digest}", first.id);
    let fact = Fact::MetricsLogged { job, stream: stream.to_owned(), lines: lines.to_vec() };
    Some(Recorded { key, at: last.at, fact })
}

/// Whether it may be the id of an event: bounded, and of characters that take little room in JSON.
pub fn is_id(id: &str) -> bool {
    (1..=MAX_ID_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, EventError> {
    let limit = u64::try_from(MAX_BATCH_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    GzDecoder::new(packed)
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| Unreadable::Encoding { path: DATA_PATH, reason: error.to_string() })?;
    if bytes.len() > MAX_BATCH_BYTES {
        return Err(EventError::TooLarge { what: "the log batch", limit_bytes: MAX_BATCH_BYTES });
    }
    Ok(bytes)
}

impl From<String> for MessageType {
    fn from(text: String) -> Self {
        match text.as_str() {
            "DATA_MESSAGE" => Self::Data,
            "CONTROL_MESSAGE" => Self::Control,
            _ => Self::Other(text),
        }
    }
}

impl From<MessageType> for String {
    fn from(message_type: MessageType) -> Self {
        match message_type {
            MessageType::Data => "DATA_MESSAGE".to_owned(),
            MessageType::Control => "CONTROL_MESSAGE".to_owned(),
            MessageType::Other(text) => text,
        }
    }
}
