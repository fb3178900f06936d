//! The rows of the table: keys, and how each kind of row is written and read.
//!
//! | row | partition key | sort key |
//! |---|---|---|
//! | fact | `F#<id>` | `<job or ->#<natural key>` |
//! | ring | `R#<id>` | `RING` |
//! | action (outbox) | `A#<id>` | `<action>` |
//! | definition, head, steps, snapshots, job summaries | `T#<id>` | `META`, `HEAD`, `STEP#…`, `SNAP#…`, `JOB#…` |
//! | names of all tunings | `INDEX` | `<name in lower case>` |
//! | tunings that are not at rest | `ACTIVE` | `<id>` |
//! | what of a month's cap is granted | `BUDGET` | `<year>-<month>` |
//! | prices of the price list | `PRICE` | `<instance type>`, `volume` |
//! | the sweeper's lease and cursors | `ACTIVE` | `#SWEEP`, before every id |
//!
//! `<id>` is `<name>-<incarnation>`. Facts and state lie in different partitions. Every row carries `type` and `version`;
//! a version this code does not know is an error to be tried again by newer code, never a guess. Snapshots alone are
//! compressed; all else reads as text in any DynamoDB tool.

mod action;
mod budget;
mod head;
mod price;
mod snapshot;
mod sweep;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tuning::definition::Definition;
use tuning::fact::{Fact, JobKey, Recorded};
use tuning::step::Step;
use tuning::summary::JobSummary;

pub use action::{ActionRow, ActionStatus, REVISION};
pub use budget::{BUDGET, MonthRow, month_of};
pub use head::{Head, IndexRow, status_word};
pub use price::{PRICE, PriceRow};
pub use snapshot::{snapshot_chunks, snapshot_key_prefix, snapshot_state};
pub use sweep::{FENCE, FullListing, LookedAt, SweepCursor, SweepRow};

use crate::item::{EXPIRES_AT, Item, Key};

/// Version of every row written by this code.
pub const ROW_VERSION: i64 = 1;

/// Partition of the index of names.
pub const INDEX: &str = "INDEX";
/// Partition of tunings that are not at rest, and of the sweeper's own row.
pub const ACTIVE: &str = "ACTIVE";
/// Prefix of fact partitions, for stream filters.
pub const FACT_PREFIX: &str = "F#";
/// Prefix of ring partitions, for stream filters.
pub const RING_PREFIX: &str = "R#";
/// Prefix of action partitions, for stream filters.
pub const ACTION_PREFIX: &str = "A#";
/// Sort key of the head.
pub const HEAD: &str = "HEAD";
/// Sort key of the definition.
pub const META: &str = "META";
/// Attribute that holds a row's JSON.
pub const DATA: &str = "data";
/// Attribute with the number of the last step, on the head.
pub const STEP_NUMBER: &str = "step";

/// Days a fact row is kept after it was put, unless a stack keeps them for longer or shorter; steps, which embed the facts that
/// mattered, are kept for ever.
pub const FACT_DAYS: i64 = 30;

/// Longest reason why a row cannot be read.
const REASON_CHARS_MAX: usize = 200;

/// A stored row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StoredError {
    /// Written by newer code: leave it to newer code, try again later.
    #[error("row {key} has version {version}, this code reads up to {ROW_VERSION}")]
    Newer {
        /// Its key.
        key: String,
        /// Its version.
        version: i64,
    },
    /// Damaged, or not a row of this kind.
    #[error("row {key} cannot be read: {reason}")]
    Unreadable {
        /// Its key.
        key: String,
        /// What is wrong.
        reason: String,
    },
}

impl StoredError {
    /// A decoder's words may repeat what is in the row: they are cut, so that they fit a log.
    fn unreadable(key: &Key, reason: impl Into<String>) -> Self {
        let reason = reason.into().chars().take(REASON_CHARS_MAX).collect();
        Self::Unreadable { key: format!("{}/{}", key.pk, key.sk), reason }
    }
}

/// Partition of the state of tuning `id`.
pub fn tuning_partition(id: &str) -> String {
    format!("T#{id}")
}

/// Partition of the facts of tuning `id`.
pub fn fact_partition(id: &str) -> String {
    format!("{FACT_PREFIX}{id}")
}

/// Partition of the actions of tuning `id`.
pub fn action_partition(id: &str) -> String {
    format!("{ACTION_PREFIX}{id}")
}

/// Prefix of the sort keys of the facts of `job`, or of those that concern no job.
pub fn fact_prefix(job: Option<JobKey>) -> String {
    job.map_or_else(|| "-#".to_owned(), |job| format!("{job}#"))
}

/// The key of the ring of tuning `id`.
pub fn ring_key(id: &str) -> Key {
    Key::new(format!("{RING_PREFIX}{id}"), "RING")
}

/// The key of the head of tuning `id`.
pub fn head_key(id: &str) -> Key {
    Key::new(tuning_partition(id), HEAD)
}

/// The key of the definition of tuning `id`.
pub fn meta_key(id: &str) -> Key {
    Key::new(tuning_partition(id), META)
}

/// The key of step `n` of tuning `id`.
pub fn step_key(id: &str, n: u64) -> Key {
    Key::new(tuning_partition(id), format!("STEP#{n:010}"))
}

/// The key of the summary of `job`.
pub fn job_key(id: &str, job: JobKey) -> Key {
    Key::new(tuning_partition(id), format!("JOB#{:06}-{:02}-{:03}", job.trial, job.rung, job.attempt))
}

/// The key of an action's row.
pub fn action_key(id: &str, action: &str) -> Key {
    Key::new(action_partition(id), action)
}

/// The id a partition key of kind `prefix` belongs to.
pub fn id_of<'a>(key: &'a Key, prefix: &str) -> Option<&'a str> {
    key.pk.strip_prefix(prefix)
}

fn row(key: Key, kind: &str) -> Item {
    Item::new(key).with("type", kind).with("version", ROW_VERSION)
}

fn checked<'a>(item: &'a Item, kind: &str) -> Result<&'a Item, StoredError> {
    let version = item.number("version").unwrap_or(0);
    if version > ROW_VERSION {
        return Err(StoredError::Newer { key: format!("{}/{}", item.key.pk, item.key.sk), version });
    }
    match item.text("type") {
        Some(found) if found == kind => Ok(item),
        found => Err(StoredError::unreadable(&item.key, format!("its type is {found:?}, not {kind}"))),
    }
}

fn json<T: Serialize>(value: &T) -> String {
    // Our own types have string keys and finite or absent numbers only: writing them as JSON cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

fn data<T: DeserializeOwned>(item: &Item, attribute: &str) -> Result<T, StoredError> {
    let text = item.text(attribute).ok_or_else(|| StoredError::unreadable(&item.key, "no data"))?;
    serde_json::from_str(text).map_err(|error| StoredError::unreadable(&item.key, error.to_string()))
}

/// The row of a fact of tuning `id`, to be put only if it does not exist.
pub fn fact_row(id: &str, recorded: &Recorded) -> Item {
    let sk = format!("{}{}", fact_prefix(recorded.fact.job()), recorded.key);
    let expires_at = (recorded.at / 1_000).saturating_add(FACT_DAYS * 86_400);
    row(Key::new(fact_partition(id), sk), "fact")
        .with("key", recorded.key.as_str())
        .with("at", recorded.at)
        .with(DATA, json(&recorded.fact))
        .with(EXPIRES_AT, expires_at)
}

/// The fact in a row.
pub fn fact(item: &Item) -> Result<Recorded, StoredError> {
    let item = checked(item, "fact")?;
    let key = item.text("key").ok_or_else(|| StoredError::unreadable(&item.key, "no key"))?;
    let at = item.number("at").ok_or_else(|| StoredError::unreadable(&item.key, "no time"))?;
    Ok(Recorded { key: key.to_owned(), at, fact: data::<Fact>(item, DATA)? })
}

/// The row of step `step` of tuning `id`.
pub fn step_row(id: &str, step: &Step) -> Item {
    row(step_key(id, step.n), "step").with("at", step.at).with(DATA, json(step))
}

/// The step in a row.
pub fn step(item: &Item) -> Result<Step, StoredError> {
    data(checked(item, "step")?, DATA)
}

/// The row of a concluded job's summary.
pub fn job_row(id: &str, summary: &JobSummary) -> Item {
    row(job_key(id, summary.job), "job").with(DATA, json(summary))
}

/// The summary in a row.
pub fn job(item: &Item) -> Result<JobSummary, StoredError> {
    data(checked(item, "job")?, DATA)
}

/// The row of a tuning's definition and of the request it was made from (JSON text).
pub fn meta_row(definition: &Definition, request: &str) -> Item {
    row(meta_key(&definition.id()), "tuning").with("definition", json(definition)).with("request", request)
}

/// The definition and the request (JSON text) in a row.
pub fn meta(item: &Item) -> Result<(Definition, String), StoredError> {
    let item = checked(item, "tuning")?;
    let request = item.text("request").ok_or_else(|| StoredError::unreadable(&item.key, "no request"))?;
    Ok((data(item, "definition")?, request.to_owned()))
}

/// The row of a ring; `nonce` makes two rings in a row different changes.
pub fn ring_row(id: &str, nonce: i64) -> Item {
    row(ring_key(id), "ring").with("nonce", nonce)
}

/// The row that marks a tuning as not at rest.
pub fn active_row(id: &str) -> Item {
    row(Key::new(ACTIVE, id), "active")
}

/// The id in a row of partition [`ACTIVE`]; `None` for the sweeper's own row, which lies there too.
pub fn active_id(item: &Item) -> Option<&str> {
    (item.key.sk != sweep::SWEEP).then_some(item.key.sk.as_str())
}
