//! The pumps that deliver records between the use cases, with retries.
//!
//! Unreadable records go to a file, as they go to a failure queue on AWS. The sweeper recovers from deliveries that
//! fail for good.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dynamodb::{ChangeStream, DynamoTable, Embedded, event};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tuning::unit::time::Time;
use use_cases::batch::Batch;
use use_cases::decide::{Decided, Decider};
use use_cases::job_events::{About, JobEvents, RecordError, Recorded};
use use_cases::job_logs::JobLogs;
use use_cases::perform::ActionBatch;
use use_cases::ports::Clock;
use use_cases::store::Store;
use use_cases::sweep::Sweeper;
use wire::stored::{ACTION_PREFIX, ACTIVE, FACT_PREFIX, RING_PREFIX, active_id};

use super::{EventFile, LocalActuator, SystemClock};
use crate::training::TrainingService;

/// The maximum number of records in a batch.
const BATCH_RECORDS: usize = 100;
/// Batches that wait for the decider or the actuator. Further records stay in the stream.
const BATCHES_WAITING_MAX: usize = 16;
/// The maximum number of concurrent actions.
const ACTIONS_MAX: usize = 8;
/// The maximum number of deliveries of a record. After that, the sweeper recovers it.
const DELIVERIES_MAX: u32 = 5;
/// The pause before the second delivery. It doubles with each further delivery.
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

/// Routes stream records by the prefix of their key, like the filters of the event source mappings.
async fn records(
    mut stream: ChangeStream,
    decider: mpsc::Sender<Vec<Value>>,
    actuator: mpsc::Sender<Vec<Value>>,
) {
    loop {
        let Ok(batch) = stream.next_batch(BATCH_RECORDS).await else {
            // A failed read loses no record.
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
    let permits = Arc::new(Semaphore::new(ACTIONS_MAX));
    let mut running = JoinSet::new();
    while let Some(batch) = batches.recv().await {
        for record in batch {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            let actuator = Arc::clone(&actuator);
            running.spawn(async move {
                let mut batch = vec![record];
                for delivery in 0..DELIVERIES_MAX {
                    let mut done = ActionBatch::default();
                    actuator.handle(&event(batch.clone()), || true, &mut done).await;
                    batch = failed(&done, batch);
                    if batch.is_empty() {
                        break;
                    }
                    sleep(REDELIVERY_WAIT * 2_u32.pow(delivery)).await;
                }
                drop(permit);
            });
            while running.try_join_next().is_some() {}
        }
    }
}

fn failed<D>(done: &Batch<D>, batch: Vec<Value>) -> Vec<Value> {
    let failures: BTreeSet<&str> = done.failed().collect();
    let sequence =
        |record: &Value| record["dynamodb"]["SequenceNumber"].as_str().unwrap_or_default().to_owned();
    batch.into_iter().filter(|record| failures.contains(sequence(record).as_str())).collect()
}

/// Holds the current table error; `None` while the table works.
pub(super) type TableErrors = watch::Sender<Option<String>>;

/// Where ingest reports unreadable records and table errors.
#[derive(Debug, Clone)]
pub(super) struct Failures {
    pub(super) unreadable: PathBuf,
    pub(super) table_error: TableErrors,
}

/// Delivers state changes to ingest.
pub(super) async fn events(
    mut feed: mpsc::Receiver<Value>,
    ingest: JobEvents<DynamoTable, SystemClock>,
    failures: Failures,
) {
    while let Some(event) = feed.recv().await {
        for delivery in 0..DELIVERIES_MAX {
            if failures.is_settled(ingest.handle(&event, &mut About::default()).await, &event) {
                break;
            }
            sleep(REDELIVERY_WAIT * 2_u32.pow(delivery)).await;
        }
    }
}

/// Delivers log batches to ingest.
pub(super) async fn logs(
    mut feed: mpsc::Receiver<Vec<u8>>,
    ingest: JobLogs<DynamoTable, SystemClock>,
    failures: Failures,
) {
    while let Some(batch) = feed.recv().await {
        let event = serde_json::from_slice(&batch).unwrap_or(Value::Null);
        for delivery in 0..DELIVERIES_MAX {
            if failures.is_settled(ingest.handle(&event, &mut About::default()).await, &event) {
                break;
            }
            sleep(REDELIVERY_WAIT * 2_u32.pow(delivery)).await;
        }
    }
}

impl Failures {
    /// Reports the result of a delivery. Returns false when the delivery must be retried.
    fn is_settled(&self, result: Result<Recorded, RecordError>, event: &Value) -> bool {
        match result {
            Ok(recorded) => {
                if recorded == Recorded::Stored {
                    set_table_error(&self.table_error, None);
                }
                true
            }
            Err(RecordError::Unreadable(reason)) => {
                let line = serde_json::json!({"reason": reason, "event": event});
                let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.unreadable);
                // If this write fails too, the record is dropped.
                let _ = file.and_then(|mut file| writeln!(file, "{line}"));
                true
            }
            Err(RecordError::Store(error)) => {
                set_table_error(&self.table_error, Some(error.to_string()));
                false
            }
        }
    }
}

fn set_table_error(errors: &TableErrors, error: Option<String>) {
    errors.send_if_modified(|current| {
        let changed = *current != error;
        *current = error;
        changed
    });
}

/// The time between two removals of expired rows and old stream records from the embedded table.
const CLEAN_EVERY: Duration = Duration::from_hours(1);

/// The time between two looks for a deadline that has passed.
const DEADLINES_EVERY: Duration = Duration::from_secs(1);

/// Runs the sweeper at once, again after `claim`, when the claims of a killed process have expired, then every `every`,
/// and earlier when a deadline of a tuning has passed.
pub(super) async fn sweeps(
    sweeper: Sweeper<DynamoTable, TrainingService, EventFile, SystemClock>,
    (table, store): (Embedded, Arc<Store<DynamoTable>>),
    every: Duration,
    claim: Duration,
    errors: TableErrors,
) {
    let mut cleaned = Instant::now();
    let claims_expire = Instant::now() + claim;
    loop {
        let begun = SystemClock.now();
        // The next sweep retries. A sweep without an error does not clear the table error, because it may have written
        // nothing.
        if let Some(error) = sweeper.sweep().await.map_or_else(Some, |swept| swept.last_error) {
            set_table_error(&errors, Some(error.to_string()));
        }
        if cleaned.elapsed() >= CLEAN_EVERY {
            let _ = table.sweep().await;
            cleaned = Instant::now();
        }
        let now = Instant::now();
        let next = now + every;
        let next = if now < claims_expire { claims_expire.min(next) } else { next };
        while Instant::now() < next {
            sleep(DEADLINES_EVERY.min(next.saturating_duration_since(Instant::now()))).await;
            if has_deadline(&store, begun).await {
                break;
            }
        }
    }
}

/// Returns whether a deadline of an active tuning has passed since `begun`, or was set in the past by a later step. The
/// sweep that began then has served all others.
async fn has_deadline(store: &Store<DynamoTable>, begun: Time) -> bool {
    let now = SystemClock.now();
    // An unreadable table is reported by the next sweep.
    let active = store.all(ACTIVE, "").await.unwrap_or_default();
    for id in active.iter().filter_map(active_id) {
        let Some(head) = store.head(id).await.ok().flatten() else { continue };
        if head.deadline.is_some_and(|deadline| begun < deadline.max(head.at) && deadline <= now) {
            return true;
        }
    }
    false
}
