//! CloudWatch Logs, one stream at a time.
//!
//! Its log group and its streams are made when it says that they are not there, so that nothing need be remembered.
//! Assumes lines in order of time. Must never send a batch beyond the service's limits: it would be refused whole.

use aws_connection::{Failure, at_most};
use aws_sdk_cloudwatchlogs::Client;
use aws_sdk_cloudwatchlogs::config::Builder;
use aws_sdk_cloudwatchlogs::types::InputLogEvent;
use wire::events::logs::LogEvent;

use super::buffer::size;
use crate::LogsTo;

const BATCH_LINES_MAX: usize = 10_000;
const BATCH_BYTES_MAX: usize = 1_048_576;
/// Less than a day.
const BATCH_SPAN_MAX_MS: i64 = 24 * 3_600 * 1_000 - 1;
/// The next round tries again.
const TRIES: u32 = 1;
const NOT_FOUND: &str = "ResourceNotFoundException";
const EXISTS: &str = "ResourceAlreadyExistsException";

/// The log group.
#[derive(Debug)]
pub(super) struct Outlet {
    client: Client,
    group: String,
}

/// What became of the lines of a stream.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// Those to try again.
    pub(super) left: Vec<LogEvent>,
    /// Size of the others.
    pub(super) written_bytes: usize,
    /// How many of the others were not taken.
    pub(super) lost: usize,
    /// What hindered it.
    pub(super) trouble: Option<String>,
}

impl Outlet {
    /// The group of an account.
    pub(super) fn new(LogsTo { account, group }: LogsTo) -> Self {
        let config = Builder::from(&account).retry_config(at_most(TRIES)).build();
        Self { client: Client::from_conf(config), group }
    }

    /// Sends lines in as many batches as they take, until one fails.
    pub(super) async fn send(&self, stream: &str, lines: Vec<LogEvent>) -> Sent {
        let mut sent = Sent { left: lines, ..Sent::default() };
        while !sent.left.is_empty() {
            let batch = &sent.left[..batch_lines(&sent.left)];
            match self.put(stream, batch).await {
                Ok(rejected) => sent.lost += rejected,
                Err(Failure::Refused { code, message }) => {
                    sent.trouble = Some(format!("{stream}: {code}: {message}"));
                    sent.lost += batch.len();
                }
                Err(Failure::Throttled) => {
                    sent.trouble = Some(format!("{stream}: too many calls"));
                    return sent;
                }
                Err(Failure::Unavailable(reason)) => {
                    sent.trouble = Some(format!("{stream}: {reason}"));
                    return sent;
                }
            }
            sent.written_bytes += batch.iter().map(size).sum::<usize>();
            let rest = batch.len();
            sent.left.drain(..rest);
        }
        sent
    }

    /// Puts a batch, and makes what it needs; how many lines of it were not taken.
    async fn put(&self, stream: &str, batch: &[LogEvent]) -> Result<usize, Failure> {
        match self.try_put(stream, batch).await {
            Err(Failure::Refused { code, .. }) if code == NOT_FOUND => {
                self.make(stream).await?;
                self.try_put(stream, batch).await
            }
            done => done,
        }
    }

    async fn try_put(&self, stream: &str, batch: &[LogEvent]) -> Result<usize, Failure> {
        let events = batch.iter().filter_map(|line| {
            // No text is empty: such lines are left out before.
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

    async fn make(&self, stream: &str) -> Result<(), Failure> {
        let group = self.client.create_log_group().log_group_name(&self.group).send().await;
        is_there(group.map(drop).map_err(|error| Failure::of(&error)))?;
        let made = self.client.create_log_stream().log_group_name(&self.group).log_stream_name(stream);
        is_there(made.send().await.map(drop).map_err(|error| Failure::of(&error)))
    }
}

fn is_there(made: Result<(), Failure>) -> Result<(), Failure> {
    match made {
        Err(Failure::Refused { code, .. }) if code == EXISTS => Ok(()),
        made => made,
    }
}

/// How many of the first lines make a batch; at least one.
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
    fn a_batch_is_within_the_limits_of_the_service() {
        assert_eq!(batch_lines(&vec![line(1, 1); 12_000]), 10_000);
        // A line counts 26 bytes more than its text.
        assert_eq!(batch_lines(&vec![line(1, 1_024 - 26); 2_000]), 1_024);
        assert_eq!(batch_lines(&vec![line(1, 1_025 - 26); 2_000]), 1_023);
        let day = 24 * 3_600 * 1_000;
        assert_eq!(batch_lines(&[line(5, 1), line(4 + day, 1), line(5 + day, 1)]), 2);
        assert_eq!(batch_lines(&[line(5, 1), line(4, 1)]), 1, "never against the order of time");
        assert_eq!(batch_lines(&[line(5, 2 * 1_048_576)]), 1, "what never fits is refused alone");
    }
}
