//! Log batches as CloudWatch Logs delivers them (gzip, base64), and the objective's values in their lines.
//!
//! Bounded: a batch that unpacks to more than any real one is refused while unpacking. A user's pattern is compiled with
//! limits and runs in linear time.

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tuning::fact::{Fact, JobKey, MetricLine, Recorded};
use tuning::limits::MAX_LINES_PER_FACT;

use super::EventError;
use crate::request::{PatternError, compile_pattern};

/// Largest batch, unpacked, in bytes.
const MAX_BATCH_BYTES: usize = 16 * 1024 * 1024;
/// Longest line that is searched for a metric.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// A batch of lines of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogBatch {
    /// `DATA_MESSAGE`, or `CONTROL_MESSAGE` which only tests the way.
    pub message_type: String,
    /// Log group.
    #[serde(default)]
    pub log_group: String,
    /// Log stream.
    #[serde(default)]
    pub log_stream: String,
    /// The lines.
    #[serde(default, rename = "logEvents")]
    pub events: Vec<LogEvent>,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEvent {
    /// Unique in its stream.
    pub id: String,
    /// Milliseconds since the epoch.
    pub timestamp: i64,
    /// The text.
    pub message: String,
}

impl LogBatch {
    /// Reads a delivery; a control message gives a batch without lines.
    pub fn parse(event: &Value) -> Result<Self, EventError> {
        let unreadable = |reason: &dyn std::fmt::Display| EventError::Unreadable(reason.to_string());
        let data = event["awslogs"]["data"].as_str().ok_or_else(|| unreadable(&"no awslogs.data"))?;
        if data.len() > MAX_BATCH_BYTES {
            return Err(EventError::TooLarge(MAX_BATCH_BYTES));
        }
        let packed = STANDARD.decode(data).map_err(|error| unreadable(&error))?;
        let mut bytes = Vec::new();
        let limit = u64::try_from(MAX_BATCH_BYTES).unwrap_or(u64::MAX);
        MultiGzDecoder::new(packed.as_slice())
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable(&error))?;
        if bytes.len() > MAX_BATCH_BYTES {
            return Err(EventError::TooLarge(MAX_BATCH_BYTES));
        }
        let mut batch: Self = serde_json::from_slice(&bytes).map_err(|error| unreadable(&error))?;
        if batch.message_type != "DATA_MESSAGE" {
            batch.events.clear();
        }
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

/// Finds the objective's value and epoch in a line.
#[derive(Debug, Clone)]
pub struct MetricPattern {
    metric: Regex,
    /// How tabs must be written for the metric's pattern to see them as it expects.
    tabs: Tabs,
    epoch: Option<Regex>,
}

/// CloudWatch shows the tabs of some containers as the text `#011`; patterns are written for one or the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tabs {
    AsIs,
    ToText,
    FromText,
}

impl MetricPattern {
    /// Compiles the objective's pattern and the epoch's.
    pub fn new(metric_regex: &str, epoch_pattern: Option<&str>) -> Result<Self, PatternError> {
        let tabs = if metric_regex.contains("#011") {
            Tabs::ToText
        } else if metric_regex.contains("\\t") {
            Tabs::FromText
        } else {
            Tabs::AsIs
        };
        let epoch = epoch_pattern.map(compile_pattern).transpose()?;
        Ok(Self { metric: compile_pattern(metric_regex)?, tabs, epoch })
    }

    /// The metric in a line, if there is one.
    pub fn line(&self, event: &LogEvent) -> Option<MetricLine> {
        if event.message.len() > MAX_LINE_BYTES {
            return None;
        }
        let value = self.value(&event.message)?;
        let index = self.epoch.as_ref().and_then(|epoch| group(epoch, &event.message)?.parse().ok());
        let value = Some(value).filter(|value| value.is_finite());
        Some(MetricLine { id: event.id.clone(), at: event.timestamp, index, value })
    }

    fn value(&self, message: &str) -> Option<f64> {
        let found = group(&self.metric, message).and_then(number);
        found.or_else(|| match self.tabs {
            Tabs::ToText if message.contains('\t') => {
                number(group(&self.metric, &message.replace('\t', "#011"))?)
            }
            Tabs::FromText if message.contains("#011") => {
                number(group(&self.metric, &message.replace("#011", "\t"))?)
            }
            Tabs::AsIs | Tabs::ToText | Tabs::FromText => None,
        })
    }
}

/// The first group that takes part in the match.
fn group<'a>(pattern: &Regex, text: &'a str) -> Option<&'a str> {
    let captures = pattern.captures(text)?;
    captures.iter().skip(1).flatten().next().map(|group| group.as_str())
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

/// The facts of metric lines that were delivered.
pub fn lines_to_facts(job: JobKey, stream: &str, lines: Vec<MetricLine>) -> Vec<Recorded> {
    facts("logs", job, stream, lines)
}

/// The facts of metric lines that were read from the stored log. Their keys differ from those of deliveries, which may
/// have held fewer of the same lines.
pub fn reread_to_facts(job: JobKey, stream: &str, lines: Vec<MetricLine>) -> Vec<Recorded> {
    facts("read", job, stream, lines)
}

/// A batch may be cut anew when it is delivered again, so the key has its first and its last line.
fn facts(kind: &str, job: JobKey, stream: &str, mut lines: Vec<MetricLine>) -> Vec<Recorded> {
    lines.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    let fact = |lines: &[MetricLine]| {
        let (first, last) = (lines.first()?, lines.last()?);
        let key = format!("{kind}#{stream}#{}#{}#{}", first.id, last.id, lines.len());
        let fact = Fact::MetricsLogged { job, stream: stream.to_owned(), lines: lines.to_vec() };
        Some(Recorded { key, at: last.at, fact })
    };
    lines.chunks(MAX_LINES_PER_FACT).filter_map(fact).collect()
}
