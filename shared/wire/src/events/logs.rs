//! Batches of a CloudWatch Logs subscription: JSON, compressed with gzip and encoded as base64.
//!
//! This module reads a batch and converts its metric lines to facts. The whole account shares the log group, so check
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
use tuning::log::fact::{Fact, JobKey, MetricLine, Recorded};
use tuning::log::problem::{LogProblem, QUIET_BEFORE_BURST};
use tuning::unit::limits::MAX_LINES_PER_FACT;
use tuning::unit::time::{Millis, Time};

pub use super::metric::{Cut, Explanation, Hints, MetricPattern, Reading, UNFINISHED, visible};
use super::surplus::{EpochSource, Surplus};
use super::{EventError, MAX_PAYLOAD_BYTES, Unreadable, decode_base64, field, not_json};
use crate::names::incarnation;

/// Maximum size of an uncompressed batch, in bytes. CloudWatch Logs sends about 1 MB. Text compresses up to a
/// thousandfold, so a payload within Lambda's limit could contain gigabytes.
pub const MAX_BATCH_BYTES: usize = 20 * 1024 * 1024;

/// Maximum length of the ID of a log event, in bytes; CloudWatch's IDs have 56 digits. IDs are part of a fact's key and
/// row, so this limit bounds their size.
pub const MAX_ID_BYTES: usize = 128;

/// Lines within this time arrived at once.
const BURST: Millis = Millis(5);
/// The least number of epochs in [`BURST`] that is a problem.
const BURST_EPOCHS: u32 = 3;

const DATA_PATH: &str = "awslogs.data";

/// The kind of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageType {
    /// Log events.
    #[serde(rename = "DATA_MESSAGE")]
    Data,
    /// A reachability check of CloudWatch Logs, without events.
    #[serde(rename = "CONTROL_MESSAGE")]
    Control,
    /// An unknown kind, which is ignored.
    #[serde(untagged)]
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
        let awslogs = field::object(event, "awslogs")?;
        let data = field::text(awslogs, DATA_PATH)?;
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

/// Collects what the log events of one stream show, in their order.
#[derive(Debug, Default)]
pub struct StreamLines {
    lines: Vec<MetricLine>,
    /// The epoch that the last line without a value began.
    begun: Option<Begun>,
    /// One problem of each kind.
    problems: Vec<LogProblem>,
    /// The time of the latest event.
    at: Option<Time>,
    /// The time of each event with values, and its last epoch.
    arrived: Vec<(Time, Option<u64>)>,
}

#[derive(Debug)]
struct Begun {
    at: Time,
    index: u64,
    has_value: bool,
}

impl StreamLines {
    /// Adds an event. A value without an epoch gets that of the line that began one before it.
    pub fn add(&mut self, event: &LogEvent, reading: &Reading) {
        let at = Time(event.timestamp);
        self.at = self.at.max(Some(at));
        for problem in reading.problems() {
            if self.problems.iter().all(|known| known.kind() != problem.kind()) {
                self.problems.push(problem);
            }
        }
        let mut is_value = false;
        for mut line in reading.lines(&event.id, at) {
            match (&mut self.begun, line.index) {
                (Some(begun), None) => {
                    line.index = Some(begun.index);
                    begun.has_value = true;
                }
                (begun, Some(_)) => *begun = None,
                (None, None) => {}
            }
            self.lines.push(line);
            is_value = true;
        }
        // A redrawn line arrives with all its states.
        if is_value {
            self.arrived.push((at, self.lines.last().and_then(|line| line.index)));
        }
        let is_new = |index: &u64| self.begun.as_ref().is_none_or(|begun| begun.index != *index);
        if let Some(index) = reading.epoch.filter(is_new) {
            self.begun = Some(Begun { at, index, has_value: false });
        }
    }

    /// Returns the number of metric lines.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns whether a line has an epoch.
    pub fn has_epochs(&self) -> bool {
        self.lines.iter().any(|line| line.index.is_some())
    }

    /// Returns whether there is no metric line.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the metric lines.
    pub fn into_lines(self) -> Vec<MetricLine> {
        self.lines
    }

    /// Drops the metric lines that can change no curve.
    pub fn drop_surplus(&mut self, stream: &str, source: EpochSource, surplus: &Surplus) {
        surplus.remove(stream, source, &mut self.lines);
    }

    /// Returns the facts of a delivery.
    pub fn into_facts(self, job: JobKey, stream: &str) -> Vec<Recorded> {
        self.facts("logs", job, stream)
    }

    /// Like [`Self::into_facts`], but for a part of the stored log.
    pub fn into_reread_facts(self, job: JobKey, stream: &str) -> Vec<Recorded> {
        self.facts("read", job, stream)
    }

    fn facts(self, kind: &str, job: JobKey, stream: &str) -> Vec<Recorded> {
        let begun = self.begun.filter(|begun| !begun.has_value).map(|begun| begun.fact(job, stream));
        let burst = burst(&self.arrived).map(|(at, problem)| Recorded {
            key: format!("problem#burst#{job}"),
            ..problem_to_fact(job, at, problem)
        });
        let problems = self.problems.into_iter();
        let problems = problems.filter_map(|problem| Some(problem_to_fact(job, self.at?, problem)));
        let problems: Vec<Recorded> = problems.collect();
        // Whether a burst is a problem depends on the lines before it.
        burst
            .into_iter()
            .chain(lines_to_facts(kind, job, stream, self.lines))
            .chain(begun)
            .chain(problems)
            .collect()
    }
}

/// Returns the facts of the metric lines of a job. Each fact has at most [`MAX_LINES_PER_FACT`] lines. `kind` begins their
/// natural keys: `logs` for delivered lines, `read` for lines of the stored log.
pub fn lines_to_facts(kind: &str, job: JobKey, stream: &str, mut lines: Vec<MetricLine>) -> Vec<Recorded> {
    lines.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    lines.chunks(MAX_LINES_PER_FACT).filter_map(|lines| one_fact(kind, job, stream, lines)).collect()
}

/// Returns the fact of a problem. A tuning has one fact of each kind, but one of a burst for each job: only the state
/// shows whether a burst is a problem.
pub fn problem_to_fact(job: JobKey, at: Time, problem: LogProblem) -> Recorded {
    let key = format!("problem#{}", problem.kind());
    Recorded { key, at, fact: Fact::LogProblemSeen { job, problem: Box::new(problem) } }
}

/// Returns the largest burst and its time. Values shortly before it show that the epochs are short. `arrived` is in the
/// order of the times.
fn burst(arrived: &[(Time, Option<u64>)]) -> Option<(Time, LogProblem)> {
    let mut most = (0, Time(0));
    let mut first = 0;
    for (last, (at, _)) in arrived.iter().enumerate() {
        while arrived.get(first).is_some_and(|(begin, _)| *at - *begin > BURST) {
            first += 1;
        }
        let together = arrived.get(first..=last).unwrap_or_default();
        let Some((begin, _)) = together.first() else { continue };
        let before = first.checked_sub(1).and_then(|before| arrived.get(before));
        if before.is_some_and(|(before, _)| *begin - *before < QUIET_BEFORE_BURST) {
            continue;
        }
        let ranked = together.iter().filter(|(_, index)| index.is_none()).count();
        let epochs = ranked + together.iter().filter_map(|(_, index)| *index).collect::<BTreeSet<_>>().len();
        if epochs > most.0 {
            most = (epochs, *begin);
        }
    }
    let epochs = u32::try_from(most.0).unwrap_or(u32::MAX);
    (epochs >= BURST_EPOCHS).then_some((most.1, LogProblem::Burst { epochs }))
}

impl Begun {
    /// Returns the fact. Each further line that shows the same epoch has the same natural key.
    fn fact(&self, job: JobKey, stream: &str) -> Recorded {
        let key = format!("epoch#{job}#{stream}#{}", self.index);
        let began = Some(self.index);
        let fact = Fact::MetricsLogged { job, stream: stream.to_owned(), lines: Vec::new(), began };
        Recorded { key, at: self.at, fact }
    }
}

/// Returns the fact of `lines`. Its natural key has the first event ID and a digest of all IDs, because a second
/// delivery may split the batch differently: it may begin with the same event but contain other lines.
fn one_fact(kind: &str, job: JobKey, stream: &str, lines: &[MetricLine]) -> Option<Recorded> {
    let (first, last) = (lines.first()?, lines.last()?);
    let ids: Vec<&str> = lines.iter().map(|line| line.id.as_str()).collect();
    let digest = incarnation(ids.join("\n").as_bytes());
    let key = format!("{kind}#{job}#{stream}#{}#{digest}", first.id);
    let fact = Fact::MetricsLogged { job, stream: stream.to_owned(), lines: lines.to_vec(), began: None };
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
