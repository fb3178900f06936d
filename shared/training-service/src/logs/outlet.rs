//! Writes lines to CloudWatch Logs, one stream per call.
//!
//! Creates a missing log group or stream when CloudWatch Logs reports it, so no state is kept. Expects lines in order
//! of time. Batches stay within the service's limits, because CloudWatch Logs refuses larger batches as a whole.

use aws::{Failure, at_most};
use aws_sdk_cloudwatchlogs::Client;
use aws_sdk_cloudwatchlogs::config::Builder;
use aws_sdk_cloudwatchlogs::types::InputLogEvent;
use wire::events::logs::LogEvent;

use super::buffer::size;
use crate::LogsTo;

const BATCH_LINES_MAX: usize = 10_000;
const BATCH_BYTES_MAX: usize = 1_048_576;
/// CloudWatch Logs' limit: the lines of a batch span less than 24 hours.
const BATCH_SPAN_MAX_MS: i64 = 24 * 3_600 * 1_000 - 1;
/// One attempt per call: the next round retries.
const ATTEMPTS: u32 = 1;
const NOT_FOUND: &str = "ResourceNotFoundException";
const EXISTS: &str = "ResourceAlreadyExistsException";

/// A log group and the client that writes to it.
#[derive(Debug)]
pub(super) struct Outlet {
    client: Client,
    group: String,
}

/// The outcome of writing the lines of a stream.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// The lines to retry.
    pub(super) left: Vec<LogEvent>,
    /// The size of the other lines.
    pub(super) settled_bytes: usize,
    /// The number of other lines that CloudWatch Logs refused.
    pub(super) dropped: usize,
    /// The last error.
    pub(super) error: Option<String>,
}

impl Outlet {
    pub(super) fn new(LogsTo { account, group }: LogsTo) -> Self {
        let config = Builder::from(&account).retry_config(at_most(ATTEMPTS)).build();
        Self { client: Client::from_conf(config), group }
    }

    /// Sends the lines in batches, until a batch fails that can be retried.
    pub(super) async fn send(&self, stream: &str, lines: Vec<LogEvent>) -> Sent {
        let mut sent = Sent { left: lines, ..Sent::default() };
        while !sent.left.is_empty() {
            let batch = &sent.left[..batch_lines(&sent.left)];
            match self.put(stream, batch).await {
                Ok(rejected) => sent.dropped += rejected,
                Err(Failure::Refused { code, message }) => {
                    sent.error = Some(format!("{stream}: {code}: {message}"));
                    sent.dropped += batch.len();
                }
                Err(Failure::Throttled) => {
                    sent.error = Some(format!("{stream}: throttled"));
                    return sent;
                }
                Err(Failure::Unavailable(reason)) => {
                    sent.error = Some(format!("{stream}: {reason}"));
                    return sent;
                }
            }
            sent.settled_bytes += batch.iter().map(size).sum::<usize>();
            let settled = batch.len();
            sent.left.drain(..settled);
        }
        sent
    }

    /// Puts a batch; creates a missing log group or stream. Returns the number of rejected lines.
    async fn put(&self, stream: &str, batch: &[LogEvent]) -> Result<usize, Failure> {
        match self.try_put(stream, batch).await {
            Err(Failure::Refused { code, .. }) if code == NOT_FOUND => {
                self.create(stream).await?;
                self.try_put(stream, batch).await
            }
            done => done,
        }
    }

    async fn try_put(&self, stream: &str, batch: &[LogEvent]) -> Result<usize, Failure> {
        let events = batch.iter().filter_map(|line| {
            // Never fails: empty lines are removed earlier.
            InputLogEvent::builder().timestamp(line.timestamp).message(&line.message).build().ok()
        });
        let call = self.client.put_log_events().log_group_name(&self.group).log_stream_name(stream);
        let answer = call.set_log_events(Some(events.collect())).send().await;
        let answer = answer.map_err(|error| Failure::of(&error))?;
        let rejected = answer.rejected_log_events_info().map_or(0, |rejected| {
            let old = rejected.too_old_log_event_end_index().into_iter();
            let old = old.chain(rejected.expired_log_event_end_index()).max().unwrap_or(0);
            let old = usize::try_from(old).unwrap_or(0).min(batch.len());
            let new = rejected.too_new_log_event_start_index().and_then(|start| usize::try_from(start).ok());
            old + new.map_or(0, |start| batch.len().saturating_sub(start.max(old)))
        });
        Ok(rejected)
    }

    async fn create(&self, stream: &str) -> Result<(), Failure> {
        let group = self.client.create_log_group().log_group_name(&self.group).send().await;
        created_or_exists(group.map(drop).map_err(|error| Failure::of(&error)))?;
        let create = self.client.create_log_stream().log_group_name(&self.group).log_stream_name(stream);
        created_or_exists(create.send().await.map(drop).map_err(|error| Failure::of(&error)))
    }
}

fn created_or_exists(created: Result<(), Failure>) -> Result<(), Failure> {
    match created {
        Err(Failure::Refused { code, .. }) if code == EXISTS => Ok(()),
        created => created,
    }
}

/// Returns the number of leading lines that fit into a batch; at least one.
fn batch_lines(lines: &[LogEvent]) -> usize {
    let (mut bytes, mut last) = (0_usize, i64::MIN);
    let first = lines.first().map_or(0, |line| line.timestamp);
    let fitting = lines.iter().take(BATCH_LINES_MAX).take_while(|line| {
        bytes = bytes.saturating_add(size(line));
        let in_order = line.timestamp >= std::mem::replace(&mut last, line.timestamp);
        bytes <= BATCH_BYTES_MAX && in_order && line.timestamp.saturating_sub(first) <= BATCH_SPAN_MAX_MS
    });
    fitting.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(timestamp: i64, bytes: usize) -> LogEvent {
        LogEvent { id: "1".to_owned(), timestamp, message: "x".repeat(bytes) }
    }

    #[test]
    fn a_batch_is_within_the_service_limits() {
        assert_eq!(batch_lines(&vec![line(1, 1); 12_000]), 10_000);
        // CloudWatch Logs adds 26 bytes to each line.
        assert_eq!(batch_lines(&vec![line(1, 1_024 - 26); 2_000]), 1_024);
        assert_eq!(batch_lines(&vec![line(1, 1_025 - 26); 2_000]), 1_023);
        let day = 24 * 3_600 * 1_000;
        assert_eq!(batch_lines(&[line(5, 1), line(4 + day, 1), line(5 + day, 1)]), 2);
        assert_eq!(batch_lines(&[line(5, 1), line(4, 1)]), 1, "a batch is in order of time");
        assert_eq!(batch_lines(&[line(5, 2 * 1_048_576)]), 1, "a line that never fits is sent alone");
    }
}
