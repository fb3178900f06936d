//! Sends the log lines of jobs to CloudWatch Logs: in order per stream, in batches, within about a second.
//!
//! A line may arrive twice when an answer is lost. While the endpoint is unavailable, up to [`WAITING_BYTES_MAX`] bytes
//! of lines wait; beyond that, the oldest lines are dropped and counted. The feed is always read, because a full feed
//! blocks the training processes.

mod buffer;
mod outlet;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::sleep;
use wire::events::logs::LogBatch;

use crate::{LogsTo, Report};
use buffer::Buffer;
use outlet::{Outlet, Sent};

/// The maximum size of waiting lines.
const WAITING_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The pause between two rounds. It limits each stream to about two calls per second.
const ROUND_EVERY: Duration = Duration::from_millis(500);
/// The longest pause while the endpoint is unavailable.
const PAUSE_MAX: Duration = Duration::from_secs(15);
/// The maximum number of concurrent calls.
const CALLS_MAX: usize = 8;

/// Sends the lines of the feed until it ends, then the waiting lines.
pub(crate) async fn forward(mut feed: mpsc::Receiver<Vec<u8>>, to: Option<LogsTo>, report: Report) {
    let Some(to) = to else {
        // The lines are also in the jobs' folders.
        while feed.recv().await.is_some() {}
        return;
    };
    let waiting =
        Arc::new(Waiting { buffer: Mutex::new(Buffer::new(WAITING_BYTES_MAX)), ended: Notify::new() });
    // A set, because dropping it aborts the task.
    let mut writer = JoinSet::new();
    writer.spawn(write(Outlet::new(to), Arc::clone(&waiting), Arc::clone(&report)));
    while let Some(delivery) = feed.recv().await {
        match read(&delivery) {
            Ok(batch) => waiting.lock().push(batch.log_stream, batch.events),
            Err(reason) => report(&format!("dropped an unreadable batch of log lines: {reason}")),
        }
    }
    waiting.lock().end();
    waiting.ended.notify_one();
    writer.join_next().await;
}

fn read(delivery: &[u8]) -> Result<LogBatch, String> {
    let delivery = serde_json::from_slice(delivery).map_err(|error| error.to_string())?;
    LogBatch::parse(&delivery).map_err(|error| error.to_string())
}

struct Waiting {
    buffer: Mutex<Buffer>,
    ended: Notify,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the waiting lines in rounds, until the feed has ended and no line waits.
async fn write(outlet: Outlet, waiting: Arc<Waiting>, report: Report) {
    let outlet = Arc::new(outlet);
    let permits = Arc::new(Semaphore::new(CALLS_MAX));
    let mut pause = ROUND_EVERY;
    let mut failing = false;
    loop {
        tokio::select! {
            () = sleep(pause) => {}
            () = waiting.ended.notified() => {}
        }
        let error = write_round(&outlet, &waiting, &permits).await;
        let dropped = waiting.lock().take_dropped();
        if dropped > 0 {
            report(&format!(
                "dropped {dropped} log lines: CloudWatch Logs refused them, or too many were waiting"
            ));
        }
        if let Some(error) = error {
            if !std::mem::replace(&mut failing, true) {
                report(&format!("cannot write logs: {error}"));
            }
            pause = pause.saturating_mul(2).min(PAUSE_MAX);
        } else {
            if std::mem::take(&mut failing) {
                report("writing logs again");
            }
            pause = ROUND_EVERY;
        }
        if waiting.lock().is_done() {
            return;
        }
    }
}

/// Writes the lines that wait now. Returns the last error, if any.
async fn write_round(
    outlet: &Arc<Outlet>,
    waiting: &Arc<Waiting>,
    permits: &Arc<Semaphore>,
) -> Option<String> {
    let mut calls = JoinSet::new();
    let taken = waiting.lock().take();
    for (stream, lines) in taken {
        let (outlet, permits) = (Arc::clone(outlet), Arc::clone(permits));
        calls.spawn(async move {
            let _permit = permits.acquire().await;
            let sent = outlet.send(&stream, lines).await;
            (stream, sent)
        });
    }
    let mut last_error = None;
    while let Some(done) = calls.join_next().await {
        let Ok((stream, Sent { left, settled_bytes, dropped, error })) = done else { continue };
        waiting.lock().give_back(stream, left, settled_bytes, dropped);
        last_error = error.or(last_error);
    }
    last_error
}
