//! What jobs print, brought to CloudWatch Logs: in order per stream, in batches, within a second or so.
//!
//! A line may arrive twice when an answer is lost. While the endpoint is away, lines are kept up to a bound; then the
//! oldest go, and are counted. Must never stop reading the feed: a full feed holds the training processes back.

mod buffer;
mod outlet;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::sleep;
use wire::events::logs::LogBatch;

use crate::{LogsTo, Tell};
use buffer::Buffer;
use outlet::{Outlet, Sent};

/// Lines that are kept, in bytes.
const KEPT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Time between two rounds; with so long a pause a line has at most two calls a second to itself.
const ROUND_EVERY: Duration = Duration::from_millis(500);
/// The longest pause while the endpoint is away.
const PAUSE_MAX: Duration = Duration::from_secs(15);
/// Streams at once.
const CALLS_MAX: usize = 8;

/// Carries the feed to the log group until it ends, and what is kept then.
pub(crate) async fn carry(mut feed: mpsc::Receiver<Vec<u8>>, to: Option<LogsTo>, tell: Tell) {
    let Some(to) = to else {
        // The lines are in the jobs' folder.
        while feed.recv().await.is_some() {}
        return;
    };
    let kept = Arc::new(Kept { buffer: Mutex::new(Buffer::new(KEPT_BYTES_MAX)), ended: Notify::new() });
    // Ends with this future, too.
    let mut writer = JoinSet::new();
    writer.spawn(write(Outlet::new(to), Arc::clone(&kept), Arc::clone(&tell)));
    while let Some(delivery) = feed.recv().await {
        match read(&delivery) {
            Ok(batch) => kept.lock().push(batch.log_stream, batch.events),
            Err(reason) => tell(&format!("lines of a log were lost: {reason}")),
        }
    }
    kept.lock().end();
    kept.ended.notify_one();
    writer.join_next().await;
}

fn read(delivery: &[u8]) -> Result<LogBatch, String> {
    let delivery = serde_json::from_slice(delivery).map_err(|error| error.to_string())?;
    LogBatch::parse(&delivery).map_err(|error| error.to_string())
}

struct Kept {
    buffer: Mutex<Buffer>,
    ended: Notify,
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes what is kept, round by round, until all is written and no more will come.
async fn write(outlet: Outlet, kept: Arc<Kept>, tell: Tell) {
    let outlet = Arc::new(outlet);
    let room = Arc::new(Semaphore::new(CALLS_MAX));
    let mut pause = ROUND_EVERY;
    let mut away = false;
    loop {
        tokio::select! {
            () = sleep(pause) => {}
            () = kept.ended.notified() => {}
        }
        let trouble = round(&outlet, &kept, &room).await;
        let lost = kept.lock().take_lost();
        if lost > 0 {
            tell(&format!(
                "{lost} lines of logs were lost: they were not taken, or more waited than can be kept"
            ));
        }
        if let Some(trouble) = trouble {
            if !std::mem::replace(&mut away, true) {
                tell(&format!("logs are not written: {trouble}"));
            }
            pause = pause.saturating_mul(2).min(PAUSE_MAX);
        } else {
            if std::mem::take(&mut away) {
                tell("logs are written again");
            }
            pause = ROUND_EVERY;
        }
        if kept.lock().is_over() {
            return;
        }
    }
}

/// Writes what is kept now; what hindered it.
async fn round(outlet: &Arc<Outlet>, kept: &Arc<Kept>, room: &Arc<Semaphore>) -> Option<String> {
    let mut calls = JoinSet::new();
    let taken = kept.lock().take();
    for (stream, lines) in taken {
        let (outlet, room) = (Arc::clone(outlet), Arc::clone(room));
        calls.spawn(async move {
            let _room = room.acquire().await;
            let sent = outlet.send(&stream, lines).await;
            (stream, sent)
        });
    }
    let mut hindered = None;
    while let Some(done) = calls.join_next().await {
        let Ok((stream, Sent { left, written_bytes, lost, trouble })) = done else { continue };
        kept.lock().give_back(stream, left, written_bytes, lost);
        hindered = trouble.or(hindered);
    }
    hindered
}
