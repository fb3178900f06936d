//! The pumps between the parts: they carry, deliver again what was not taken, and decide nothing.
//!
//! What cannot be read goes to a file, as it would to a failure queue. What is lost here all the same is found again by
//! the sweeper.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dynamodb::{ChangeStream, DynamoTable, Embedded, event};
use serde_json::Value;
use service::batch::Batch;
use service::decide::{Decided, Decider};
use service::job_events::{About, JobEvents, RecordError, Recorded};
use service::job_logs::JobLogs;
use service::perform::Acts;
use service::sweep::Sweeper;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use wire::stored::{ACTION_PREFIX, FACT_PREFIX, RING_PREFIX};

use super::{EventFile, LocalActuator, SystemClock};
use crate::training::TrainingService;

/// Records handed over at once.
const BATCH_RECORDS: usize = 100;
/// Batches waiting for the decider; the stream itself holds what comes after.
const BATCHES_WAITING_MAX: usize = 16;
/// Actions performed at once.
const ACTIONS_AT_ONCE: usize = 8;
/// How often a delivery is tried before it is left to the sweeper.
const DELIVERIES_MAX: u32 = 5;
/// Wait before the second delivery; it doubles.
const REDELIVERY_WAIT: Duration = Duration::from_millis(50);

/// Starts the pumps from the table to decider and actuator.
pub(super) fn table(
    pumps: &mut JoinSet<()>,
    stream: ChangeStream,
    decider: Decider<DynamoTable>,
    actuator: Arc<LocalActuator>,
    steps: watch::Sender<u64>,
) {
    let (to_decider, for_decider) = mpsc::channel(BATCHES_WAITING_MAX);
    let (to_actuator, for_actuator) = mpsc::channel(BATCHES_WAITING_MAX);
    pumps.spawn(records(stream, to_decider, to_actuator));
    pumps.spawn(decide(for_decider, decider, steps));
    pumps.spawn(perform(for_actuator, actuator));
}

/// Sorts stream records by their key's prefix, as the filters of the event source mappings do.
async fn records(
    mut stream: ChangeStream,
    decider: mpsc::Sender<Vec<Value>>,
    actuator: mpsc::Sender<Vec<Value>>,
) {
    loop {
        let Ok(batch) = stream.next_batch(BATCH_RECORDS).await else {
            // The records stay in the stream.
            sleep(Duration::from_millis(200)).await;
            continue;
        };
        let mut facts = Vec::new();
        let mut actions = Vec::new();
        for record in batch {
            let pk = record.pointer("/dynamodb/Keys/pk/S").and_then(Value::as_str).unwrap_or_default();
            if pk.starts_with(FACT_PREFIX) || pk.starts_with(RING_PREFIX) {
                facts.push(record);
            } else if pk.starts_with(ACTION_PREFIX) && record["eventName"] == "INSERT" {
                actions.push(record);
            }
        }
        let sent = (facts.is_empty() || decider.send(facts).await.is_ok())
            && (actions.is_empty() || actuator.send(actions).await.is_ok());
        if !sent {
            return;
        }
    }
}

async fn decide(
    mut batches: mpsc::Receiver<Vec<Value>>,
    decider: Decider<DynamoTable>,
    steps: watch::Sender<u64>,
) {
    while let Some(mut batch) = batches.recv().await {
        for delivery in 0..DELIVERIES_MAX {
            let mut done = Decided::default();
            decider.handle(&event(batch.clone()), || true, &mut done).await;
            batch = failed(&done, batch);
            if batch.is_empty() {
                break;
            }
            sleep(REDELIVERY_WAIT * 2_u32.pow(delivery)).await;
        }
        steps.send_modify(|n| *n = n.wrapping_add(1));
    }
}

async fn perform(mut batches: mpsc::Receiver<Vec<Value>>, actuator: Arc<LocalActuator>) {
    let places = Arc::new(Semaphore::new(ACTIONS_AT_ONCE));
    let mut running = JoinSet::new();
    while let Some(batch) = batches.recv().await {
        for record in batch {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let actuator = Arc::clone(&actuator);
            running.spawn(async move {
                let mut batch = vec![record];
                for delivery in 0..DELIVERIES_MAX {
                    let mut done = Acts::default();
                    actuator.handle(&event(batch.clone()), || true, &mut done).await;
                    batch = failed(&done, batch);
                    if batch.is_empty() {
                        break;
                    }
                    sleep(REDELIVERY_WAIT * 2_u32.pow(delivery)).await;
                }
                drop(place);
            });
            while running.try_join_next().is_some() {}
        }
    }
}

/// The records of `batch` that are not done.
fn failed<D>(done: &Batch<D>, batch: Vec<Value>) -> Vec<Value> {
    let failures: BTreeSet<&str> = done.failed().collect();
    let sequence =
        |record: &Value| record["dynamodb"]["SequenceNumber"].as_str().unwrap_or_default().to_owned();
    batch.into_iter().filter(|record| failures.contains(sequence(record).as_str())).collect()
}

/// Why the table cannot be worked with, while that is so.
pub(super) type Trouble = watch::Sender<Option<String>>;

/// Where ingest puts what it cannot read, and whom it tells of trouble.
#[derive(Debug, Clone)]
pub(super) struct Failures {
    pub(super) unreadable: PathBuf,
    pub(super) trouble: Trouble,
}

/// Carries state changes to ingest.
pub(super) async fn events(
    mut feed: mpsc::Receiver<Value>,
    ingest: JobEvents<DynamoTable, SystemClock>,
    failures: Failures,
) {
    while let Some(event) = feed.recv().await {
        for delivery in 0..DELIVERIES_MAX {
            if failures.taken(ingest.handle(&event, &mut About::default()).await, &event) {
                break;
            }
            sleep(REDELIVERY_WAIT * 2_u32.pow(delivery)).await;
        }
    }
}

/// Carries log batches to ingest.
pub(super) async fn logs(
    mut feed: mpsc::Receiver<Vec<u8>>,
    ingest: JobLogs<DynamoTable, SystemClock>,
    failures: Failures,
) {
    while let Some(batch) = feed.recv().await {
        let event = serde_json::from_slice(&batch).unwrap_or(Value::Null);
        for delivery in 0..DELIVERIES_MAX {
            if failures.taken(ingest.handle(&event, &mut About::default()).await, &event) {
                break;
            }
            sleep(REDELIVERY_WAIT * 2_u32.pow(delivery)).await;
        }
    }
}

impl Failures {
    /// Whether a delivery is done with; if not, it is to be made again.
    fn taken(&self, result: Result<Recorded, RecordError>, event: &Value) -> bool {
        match result {
            Ok(recorded) => {
                if recorded == Recorded::Stored {
                    tell(&self.trouble, None);
                }
                true
            }
            Err(RecordError::Unreadable(reason)) => {
                let line = serde_json::json!({"reason": reason, "event": event});
                let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.unreadable);
                // A disk that refuses this too leaves nothing more to be done.
                let _ = file.and_then(|mut file| writeln!(file, "{line}"));
                true
            }
            Err(RecordError::Store(error)) => {
                tell(&self.trouble, Some(error.to_string()));
                false
            }
        }
    }
}

fn tell(trouble: &Trouble, news: Option<String>) {
    trouble.send_if_modified(|trouble| {
        let changed = *trouble != news;
        *trouble = news;
        changed
    });
}

/// Time between two removals of old rows and stream records from the embedded table.
const CLEAN_EVERY: Duration = Duration::from_hours(1);

/// Wakes the sweeper: at once, again when the claims of a process that was killed have run out, then every `every`.
pub(super) async fn minutes(
    sweeper: Sweeper<DynamoTable, TrainingService, EventFile, SystemClock>,
    table: Embedded,
    every: Duration,
    claim: Duration,
    trouble: Trouble,
) {
    let mut cleaned = Instant::now();
    let mut wait = claim.min(every);
    loop {
        // What failed is swept again the next time. A sweep that had nothing to write proves nothing.
        if let Some(error) = sweeper.sweep().await.map_or_else(Some, |swept| swept.last_error) {
            tell(&trouble, Some(error.to_string()));
        }
        if cleaned.elapsed() >= CLEAN_EVERY {
            let _ = table.sweep().await;
            cleaned = Instant::now();
        }
        sleep(wait).await;
        wait = every;
    }
}
