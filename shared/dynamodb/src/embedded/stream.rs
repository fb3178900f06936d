//! The changes of the embedded table, as the JSON in which Lambda gets a DynamoDB stream.
//!
//! One stream is one consumer with its own place. Whoever reads must finish with a batch before the next, as Lambda
//! does; a place outlives the process only by the sequence number of the last record that was finished. A write wakes
//! the reader at once; only for the writes of an attached process it looks by itself, once a second.

use std::sync::Arc;
use std::time::Duration;

use dynoxide::actions::get_records::Record;
use serde_json::{Map, Value};
use service::ports::table::TableError;
use tokio::sync::watch;

use super::engine::Engine;
use super::{Failure, REGION, blocking};

/// How long a reader waits for a wake-up before it looks by itself.
const FALLBACK: Duration = Duration::from_secs(1);

/// Where a stream begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamStart {
    /// At the oldest record that is kept.
    TrimHorizon,
    /// After the newest record.
    Latest,
    /// After the record with this sequence number.
    After(String),
}

/// The changes from some place on.
#[derive(Debug)]
pub struct ChangeStream {
    engine: Arc<Engine>,
    writes: watch::Receiver<u64>,
    iterator: String,
    arn: String,
}

impl ChangeStream {
    pub(super) async fn open(engine: Arc<Engine>, start: StreamStart) -> Result<Self, TableError> {
        let writes = engine.writes();
        let opening = move |engine: &Engine| Ok((engine.iterator(&start)?, engine.stream_arn()?));
        let (iterator, arn) = blocking(Arc::clone(&engine), opening).await?;
        Ok(Self { engine, writes, iterator, arn: arn.replace(dynoxide::streams::LOCAL_REGION, REGION) })
    }

    /// The next records, 1 to `max_records` (at least 1, at most 1000) of them, in order; waits until there is one.
    /// Dropping the future loses no record.
    pub async fn next_batch(&mut self, max_records: usize) -> Result<Vec<Value>, TableError> {
        loop {
            let records = self.ready(max_records).await?;
            if !records.is_empty() {
                return Ok(records);
            }
            // The sender lives in `self.engine`, so `changed` cannot fail; a timeout only means to look again.
            let _ = tokio::time::timeout(FALLBACK, self.writes.changed()).await;
        }
    }

    /// The next records that are there already, at most `max_records`; may be none.
    pub async fn ready(&mut self, max_records: usize) -> Result<Vec<Value>, TableError> {
        // Before the read: a write that comes after it must wake the next wait.
        self.writes.mark_unchanged();
        let (iterator, arn, limit) = (self.iterator.clone(), self.arn.clone(), max_records.max(1));
        let read = move |engine: &Engine| -> Result<(Vec<Value>, Option<String>), Failure> {
            let answer = engine.records(iterator, limit)?;
            Ok((
                answer.records.iter().map(|record| to_json(record, &arn)).collect(),
                answer.next_shard_iterator,
            ))
        };
        let (records, next) = blocking(Arc::clone(&self.engine), read).await?;
        if let Some(next) = next {
            self.iterator = next;
        }
        Ok(records)
    }
}

/// The Lambda event that delivers these records.
pub fn event(records: Vec<Value>) -> Value {
    Value::Object(Map::from_iter([("Records".to_owned(), Value::Array(records))]))
}

fn to_json(record: &Record, arn: &str) -> Value {
    let mut json = serde_json::to_value(record).unwrap_or_default();
    json["awsRegion"] = REGION.into();
    json["eventSourceARN"] = arn.into();
    // Whole seconds, as Lambda sends them; the engine has no more either.
    if let Some(time) = json.pointer_mut("/dynamodb/ApproximateCreationDateTime") {
        *time = whole(time);
    }
    json
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "`as` saturates; a time is far below 2^53"
)]
fn whole(number: &Value) -> Value {
    number.as_f64().map_or_else(|| number.clone(), |seconds| Value::from(seconds as i64))
}
