//! The changes of the embedded table, in the JSON form in which Lambda receives a DynamoDB stream.
//!
//! Each stream is one consumer with its own position. Like Lambda, a reader finishes a batch before it reads the next.
//! To resume in a new process, the reader stores the sequence number of the last finished record. A write wakes the
//! reader immediately. The reader polls once a second to find the writes of an attached process.

use std::sync::Arc;
use std::time::Duration;

use dynoxide::actions::get_records::Record;
use serde_json::{Map, Value};
use tokio::sync::watch;
use use_cases::ports::table::TableError;

use super::engine::Engine;
use super::{Failure, REGION, StreamStart, blocking};

/// The polling interval of a reader that no write wakes.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// A consumer of the table's changes.
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

    /// Waits for the next records and returns 1 to `max_records` of them, in order. `max_records` is capped to 1 to
    /// 1000. Dropping the future loses no record.
    pub async fn next_batch(&mut self, max_records: usize) -> Result<Vec<Value>, TableError> {
        loop {
            let records = self.ready(max_records).await?;
            if !records.is_empty() {
                return Ok(records);
            }
            // The sender lives in `self.engine`, so `changed` cannot fail. After the time-out, poll again.
            let _ = tokio::time::timeout(POLL_EVERY, self.writes.changed()).await;
        }
    }

    /// Returns at most `max_records` of the next records without waiting; may return none.
    pub async fn ready(&mut self, max_records: usize) -> Result<Vec<Value>, TableError> {
        // Before the read, so that a write after the read ends the next wait.
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

/// Returns the Lambda event that delivers these records.
pub fn event(records: Vec<Value>) -> Value {
    Value::Object(Map::from_iter([("Records".to_owned(), Value::Array(records))]))
}

fn to_json(record: &Record, arn: &str) -> Value {
    let mut json = serde_json::to_value(record).unwrap_or_default();
    json["awsRegion"] = REGION.into();
    json["eventSourceARN"] = arn.into();
    // Whole seconds, as in Lambda's events.
    if let Some(time) = json.pointer_mut("/dynamodb/ApproximateCreationDateTime") {
        *time = whole_seconds(time);
    }
    json
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "`as` saturates; a time is far below 2^53"
)]
fn whole_seconds(number: &Value) -> Value {
    number.as_f64().map_or_else(|| number.clone(), |seconds| Value::from(seconds as i64))
}
