//! Batches of a CloudWatch Logs subscription: JSON, compressed with gzip and encoded as base64.
//!
//! This module reads a batch and makes facts of its metric lines. The whole account shares the log group, so check
//! [`LogBatch::log_stream`] with [`crate::names::log_stream`] and drop unrelated streams before trying a pattern.
//! CloudWatch Logs delivers each event at least once, possibly in another batch the second time, but always with the
//! same ID.

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

pub use super::metric::{Cut, Explanation, MetricPattern};
use super::{EventError, MAX_PAYLOAD_BYTES, Unreadable, decode_base64, field, not_json};
use crate::names::incarnation;

/// Maximum size of an uncompressed batch, in bytes. CloudWatch Logs sends about 1 MB. Text compresses up to a
/// thousandfold, so a payload within Lambda's limit could contain gigabytes.
pub const MAX_BATCH_BYTES: usize = 20 * 1024 * 1024;

/// Maximum length of the ID of a log event, in bytes; CloudWatch's IDs have 56 digits. IDs are part of a fact's key and
/// row, so this limit bounds their size.
pub const MAX_ID_BYTES: usize = 128;

const DATA_PATH: &str = "awslogs.data";

/// The kind of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum MessageType {
    /// Log events.
    Data,
    /// A reachability check of CloudWatch Logs, without events.
    Control,
    /// An unknown kind, which is ignored.
    Other(String),
}

/// One event of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEvent {
    /// Event ID, unique in its stream and equal in every delivery.
    pub id: String,
    /// Time of the event, in ms since the epoch.
    pub timestamp: i64,
    /// Text of the log line.
    pub message: String,
}

/// Log events of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogBatch {
    /// Kind of the batch.
    pub message_type: MessageType,
    /// Log group.
    #[serde(default)]
    pub log_group: String,
    /// Log stream; empty in a control message.
    #[serde(default)]
    pub log_stream: String,
    /// The events in order of timestamp and ID, without duplicates.
    #[serde(rename = "logEvents", default)]
    pub events: Vec<LogEvent>,
}

/// A delivery of which only the name of the stream was read. Most streams of an account belong to other jobs or hosts, and
/// their events are not worth the memory.
#[derive(Debug)]
pub struct Delivery {
    /// Log stream; empty in a control message.
    pub log_stream: String,
    json: Vec<u8>,
}

/// The members of a batch without its events.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    #[serde(default)]
    log_stream: String,
}

impl Delivery {
    /// Reads the name of the stream.
    pub fn parse(event: &Value) -> Result<Self, EventError> {
        let awslogs = field::present(event, "awslogs")
            .ok_or(Unreadable::Field { path: "awslogs", expected: "an object" })?;
        let data = field::text(awslogs, "data", DATA_PATH)?;
        if data.len() > MAX_PAYLOAD_BYTES {
            return Err(EventError::TooLarge { what: DATA_PATH, limit_bytes: MAX_PAYLOAD_BYTES });
        }
        let json = unpack(&decode_base64(data, DATA_PATH)?)?;
        let Header { log_stream } = serde_json::from_slice(&json).map_err(|error| not_json(&error))?;
        Ok(Self { log_stream, json })
    }

    /// Reads the whole batch.
    pub fn batch(&self) -> Result<LogBatch, Unreadable> {
        LogBatch::from_json(&self.json)
    }
}

impl LogBatch {
    /// Reads a delivery. A control message or an unknown kind yields a batch without events.
    pub fn parse(event: &Value) -> Result<Self, EventError> {
        Ok(Delivery::parse(event)?.batch()?)
    }

    /// Reads the uncompressed JSON of a batch.
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

    /// Returns the delivery of this batch, for the local host and the simulator.
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
        // Writing to memory cannot fail.
        let packed = encoder.write_all(body.to_string().as_bytes()).and_then(|()| encoder.finish());
        json!({"awslogs": {"data": STANDARD.encode(packed.unwrap_or_default())}})
    }
}

/// Returns the delivery of `events` of one stream, for the local host and the simulator.
pub fn encode_batch(log_group: &str, log_stream: &str, events: Vec<LogEvent>) -> Value {
    let (log_group, log_stream) = (log_group.to_owned(), log_stream.to_owned());
    LogBatch { message_type: MessageType::Data, log_group, log_stream, events }.encode()
}

/// Returns the facts of the delivered metric lines of a job. Each fact has at most [`MAX_LINES_PER_FACT`] lines.
pub fn lines_to_facts(job: JobKey, stream: &str, lines: Vec<MetricLine>) -> Vec<Recorded> {
    facts("logs", job, stream, lines)
}

/// Like [`lines_to_facts`], but for metric lines read from the stored log.
pub fn reread_to_facts(job: JobKey, stream: &str, lines: Vec<MetricLine>) -> Vec<Recorded> {
    facts("read", job, stream, lines)
}

fn facts(kind: &str, job: JobKey, stream: &str, mut lines: Vec<MetricLine>) -> Vec<Recorded> {
    lines.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    lines.chunks(MAX_LINES_PER_FACT).filter_map(|lines| one_fact(kind, job, stream, lines)).collect()
}

/// Returns the fact of `lines`. Its natural key has the first event ID and a digest of all IDs, because a second
/// delivery may split the batch differently: it may begin with the same event but contain other lines.
fn one_fact(kind: &str, job: JobKey, stream: &str, lines: &[MetricLine]) -> Option<Recorded> {
    let (first, last) = (lines.first()?, lines.last()?);
    let ids: Vec<&str> = lines.iter().map(|line| line.id.as_str()).collect();
    let digest = incarnation(ids.join("\n").as_bytes());
    let key = format!("{kind}#{job}#{stream}#{}#{digest}", first.id);
    let fact = Fact::MetricsLogged { job, stream: stream.to_owned(), lines: lines.to_vec() };
    Some(Recorded { key, at: last.at, fact })
}

/// Returns whether `id` is a valid event ID: at most [`MAX_ID_BYTES`], and without characters that JSON escapes at
/// length.
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
