//! The rows of the table: their keys, and how each kind of row is written and read.
//!
//! | row | partition key | sort key |
//! |---|---|---|
//! | fact | `F#<id>` | `<job or ->#<natural key>` |
//! | ring | `R#<id>` | `RING` |
//! | action (outbox) | `A#<id>` | `<action>` |
//! | definition, head, steps, snapshots, job summaries | `T#<id>` | `META`, `HEAD`, `STEP#…`, `SNAP#…`, `JOB#…` |
//! | names of all tunings | `INDEX` | `<name in lower case>` |
//! | active tunings | `ACTIVE` | `<id>` |
//! | grants from a month's cap | `BUDGET` | `<year>-<month>` |
//! | turns of calls with a rate limit of the account | `PACE` | `starts`, `log-pages` |
//! | deleted tunings whose rows are not all removed yet | `DELETED` | `<id>` |
//! | prices from the price list | `PRICE` | `<instance type>`, `volume` |
//! | the sweeper's lease and cursors | `ACTIVE` | `#SWEEP`, which sorts before every id |
//!
//! `<id>` is `<name>-<incarnation>`. Facts and state are in different partitions. Every row has `type` and `version`. A
//! row with an unknown version yields an error, so that a newer release can retry it. Only snapshots are compressed;
//! any DynamoDB tool shows the other rows as text.

mod action;
mod budget;
mod head;
mod pace;
mod price;
mod snapshot;
mod sweep;

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;
use tuning::definition::Definition;
use tuning::log::fact::{Fact, JobKey, Recorded};
use tuning::step::Step;
use tuning::trial::summary::JobSummary;
use tuning::unit::time::Time;

pub use action::{ActionRow, ActionStatus, REVISION};
pub use budget::{BUDGET, MonthRow};
pub use head::{Head, IndexRow, status_word};
pub use pace::{PACE, PaceRow};
pub use price::{PRICE, PriceRow};
pub use snapshot::{snapshot_chunks, snapshot_key_prefix, snapshot_state};
pub use sweep::{FENCE, FullListing, LookedAt, SweepCursor, SweepRow};

use crate::item::{EXPIRES_AT, Item, Key};

/// Version of every row that this release writes.
pub const ROW_VERSION: i64 = 1;

/// Partition of the index of names.
pub const INDEX: &str = "INDEX";
/// Partition of active tunings and of the sweeper's row.
pub const ACTIVE: &str = "ACTIVE";
/// Partition of deleted tunings whose rows are not all removed yet.
pub const DELETED: &str = "DELETED";
/// Prefix of fact partitions. Stream filters depend on it.
pub const FACT_PREFIX: &str = "F#";
/// Prefix of ring partitions. Stream filters depend on it.
pub const RING_PREFIX: &str = "R#";
/// Prefix of action partitions. Stream filters depend on it.
pub const ACTION_PREFIX: &str = "A#";
/// Sort key of the head.
pub const HEAD: &str = "HEAD";
/// Sort key of the definition.
pub const META: &str = "META";
/// Attribute with the JSON of a row.
pub const DATA: &str = "data";
/// Attribute of the head with the number of the last step.
pub const STEP_NUMBER: &str = "step";

/// Default number of days for which a fact row is kept. Steps, which contain the facts that had an effect, never
/// expire.
pub const FACT_DAYS: i64 = 30;

/// Maximum length of the reason in [`StoredError::Unreadable`], in characters.
const REASON_CHARS_MAX: usize = 200;

/// An unreadable row.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StoredError {
    /// A newer release wrote the row. Leave it to the newer release and retry later.
    #[error(
        "unsupported version {version} of row {key}: this release reads versions up to {ROW_VERSION}; use a newer \
         release"
    )]
    Newer {
        /// Partition key and sort key of the row.
        key: String,
        /// Version of the row.
        version: i64,
    },
    /// A newer release wrote the fact in the row. Leave it to the newer release and retry soon: without the fact, other
    /// facts would be folded too early.
    #[error("unknown fact in row {key}: {reason}; use a newer release")]
    NewerFact {
        /// Partition key and sort key of the row.
        key: String,
        /// The reason.
        reason: String,
    },
    /// The row is damaged, or is a row of another kind.
    #[error("unreadable row {key}: {reason}")]
    Unreadable {
        /// Partition key and sort key of the row.
        key: String,
        /// The reason.
        reason: String,
    },
}

impl StoredError {
    /// Returns the error with a shortened reason, since a decoder's message may repeat the content of the row.
    pub fn unreadable(key: &Key, reason: impl Into<String>) -> Self {
        let reason = reason.into().chars().take(REASON_CHARS_MAX).collect();
        Self::Unreadable { key: format!("{}/{}", key.pk, key.sk), reason }
    }

    /// Returns the error for a row without a valid `attribute`.
    fn missing(key: &Key, attribute: &str) -> Self {
        Self::unreadable(key, format!("missing or invalid attribute {attribute:?}"))
    }
}

/// Returns the partition of the state of tuning `id`.
pub fn tuning_partition(id: &str) -> String {
    format!("T#{id}")
}

/// Returns the partition of the facts of tuning `id`.
pub fn fact_partition(id: &str) -> String {
    format!("{FACT_PREFIX}{id}")
}

/// Returns the partition of the actions of tuning `id`.
pub fn action_partition(id: &str) -> String {
    format!("{ACTION_PREFIX}{id}")
}

/// Returns the prefix of the sort keys of the facts of `job`; `None` = of the facts that belong to no job.
pub fn fact_prefix(job: Option<JobKey>) -> String {
    job.map_or_else(|| "-#".to_owned(), |job| format!("{job}#"))
}

/// Returns the key of the ring of tuning `id`.
pub fn ring_key(id: &str) -> Key {
    Key::new(format!("{RING_PREFIX}{id}"), "RING")
}

/// Returns the key of the head of tuning `id`.
pub fn head_key(id: &str) -> Key {
    Key::new(tuning_partition(id), HEAD)
}

/// Returns the key of the definition of tuning `id`.
pub fn meta_key(id: &str) -> Key {
    Key::new(tuning_partition(id), META)
}

/// Returns the key of step `n` of tuning `id`.
pub fn step_key(id: &str, n: u64) -> Key {
    Key::new(tuning_partition(id), format!("STEP#{n:010}"))
}

/// Returns the key of the summary of `job` of tuning `id`.
pub fn job_key(id: &str, job: JobKey) -> Key {
    Key::new(tuning_partition(id), format!("JOB#{:06}-{:02}-{:03}", job.trial, job.rung, job.attempt))
}

/// Returns the key of an action of tuning `id`.
pub fn action_key(id: &str, action: &str) -> Key {
    Key::new(action_partition(id), action)
}

/// Returns the tuning ID in a partition key with `prefix`; `None` for another kind of key.
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
        found => Err(StoredError::unreadable(&item.key, format!("expected type {kind:?}, found {found:?}"))),
    }
}

fn json<T: Serialize>(value: &T) -> String {
    // Serialization cannot fail: the types have string keys and finite or absent numbers.
    serde_json::to_string(value).unwrap_or_default()
}

fn data<T: DeserializeOwned>(item: &Item, attribute: &str) -> Result<T, StoredError> {
    let text = item.text(attribute).ok_or_else(|| StoredError::missing(&item.key, attribute))?;
    serde_json::from_str(text).map_err(|error| StoredError::unreadable(&item.key, error.to_string()))
}

/// Returns the row of a fact of tuning `id`. Put it only if it does not exist.
pub fn fact_row(id: &str, recorded: &Recorded) -> Item {
    let sk = format!("{}{}", fact_prefix(recorded.fact.job()), recorded.key);
    row(Key::new(fact_partition(id), sk), "fact")
        .with("key", recorded.key.as_str())
        .with("at", recorded.at)
        .with(DATA, json(&recorded.fact))
        .with(EXPIRES_AT, expiry(recorded.at))
}

/// Returns when a row of `at` expires, in seconds since the epoch.
fn expiry(at: Time) -> i64 {
    (at - Time::EPOCH).as_seconds().saturating_add(FACT_DAYS * 86_400)
}

/// Reads the fact in a row. JSON that is no fact of this release is one of a newer release. A row without JSON is damaged.
pub fn fact(item: &Item) -> Result<Recorded, StoredError> {
    recorded(item).map_err(|error| match error {
        StoredError::Newer { ref key, .. } => {
            StoredError::NewerFact { key: key.clone(), reason: error.to_string() }
        }
        StoredError::Unreadable { key, reason } if has_json(item) => StoredError::NewerFact { key, reason },
        error => error,
    })
}

/// Returns whether the JSON of a fact row is readable, whatever its content.
fn has_json(item: &Item) -> bool {
    let is_fact =
        item.text("type") == Some("fact") && item.text("key").is_some() && item.time("at").is_some();
    let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    is_fact && item.text(DATA).is_some_and(is_json)
}

fn recorded(item: &Item) -> Result<Recorded, StoredError> {
    let item = checked(item, "fact")?;
    let key = item.text("key").ok_or_else(|| StoredError::missing(&item.key, "key"))?;
    let at = item.time("at").ok_or_else(|| StoredError::missing(&item.key, "at"))?;
    Ok(Recorded { key: key.to_owned(), at, fact: data::<Fact>(item, DATA)? })
}

/// Returns the row of a step of tuning `id`.
pub fn step_row(id: &str, step: &Step) -> Item {
    row(step_key(id, step.n), "step").with("at", step.at).with(DATA, json(step))
}

/// Reads the step in a row.
pub fn step(item: &Item) -> Result<Step, StoredError> {
    data(checked(item, "step")?, DATA)
}

/// Returns the row with the summary of a concluded job.
pub fn job_row(id: &str, summary: &JobSummary) -> Item {
    row(job_key(id, summary.job), "job").with(DATA, json(summary))
}

/// Reads the summary in a row.
pub fn job(item: &Item) -> Result<JobSummary, StoredError> {
    data(checked(item, "job")?, DATA)
}

/// Returns the row with the definition of a tuning and its request (JSON text).
pub fn meta_row(definition: &Definition, request: &str) -> Item {
    row(meta_key(&definition.id()), "tuning").with("definition", json(definition)).with("request", request)
}

/// Returns the row with the ARN of the principal that submitted the tuning.
pub fn with_submitter(row: Item, submitter: Option<&str>) -> Item {
    match submitter {
        Some(submitter) => row.with("submitter", submitter),
        None => row,
    }
}

/// Returns the ARN of the principal in a row of the index or with a definition.
pub fn submitter(row: &Item) -> Option<String> {
    row.text("submitter").map(str::to_owned)
}

const OTHER_PARENTS: &str = "other_parents";

/// Returns the row of a definition with the best training job of each parent that another controller ran, as JSON.
pub fn with_other_parents(row: Item, best_jobs: &[Value]) -> Item {
    if best_jobs.is_empty() {
        return row;
    }
    row.with(OTHER_PARENTS, json(&best_jobs))
}

/// Returns by how many bytes these jobs lengthen a row.
pub fn other_parents_bytes(best_jobs: &[Value]) -> usize {
    if best_jobs.is_empty() { 0 } else { OTHER_PARENTS.len().saturating_add(json(&best_jobs).len()) }
}

/// Returns the jobs in a row of [`with_other_parents`].
pub fn other_parents(row: &Item) -> Result<Vec<Value>, StoredError> {
    row.text(OTHER_PARENTS).map_or_else(|| Ok(Vec::new()), |_| data(row, OTHER_PARENTS))
}

/// Reads the definition and the request (JSON text) in a row.
pub fn meta(item: &Item) -> Result<(Definition, String), StoredError> {
    let item = checked(item, "tuning")?;
    let request = item.text("request").ok_or_else(|| StoredError::missing(&item.key, "request"))?;
    Ok((data(item, "definition")?, request.to_owned()))
}

/// Returns the key of the tags that were added to tuning `id` after its submission.
pub fn tags_key(id: &str) -> Key {
    Key::new(tuning_partition(id), "TAGS")
}

/// Returns the row with the tags that were added to tuning `id`.
pub fn tags_row(id: &str, tags: &BTreeMap<String, String>, revision: i64) -> Item {
    row(tags_key(id), "tags").with(DATA, json(tags)).with(REVISION, revision)
}

/// Reads the tags in a row, and its revision.
pub fn tags(item: &Item) -> Result<(BTreeMap<String, String>, i64), StoredError> {
    let item = checked(item, "tags")?;
    let revision = item.number(REVISION).ok_or_else(|| StoredError::missing(&item.key, REVISION))?;
    Ok((data(item, DATA)?, revision))
}

/// Returns the row of a ring. A new time makes each ring a change of the row, and so a stream record. It expires, since a
/// late delivery may ring for a tuning whose other rows are deleted.
pub fn ring_row(id: &str, now: Time) -> Item {
    row(ring_key(id), "ring").with("nonce", now).with(EXPIRES_AT, expiry(now))
}

/// Returns the row that marks a tuning as active.
pub fn active_row(id: &str) -> Item {
    row(Key::new(ACTIVE, id), "active")
}

/// Returns the key of the row that orders the removal of all rows of a deleted tuning.
pub fn deleted_key(id: &str) -> Key {
    Key::new(DELETED, id)
}

/// Returns the row that orders the removal of all rows of a deleted tuning.
pub fn deleted_row(id: &str, now: Time) -> Item {
    row(deleted_key(id), "deleted").with("at", now)
}

/// Returns the tuning ID in a row of partition [`DELETED`].
pub fn deleted_id(item: &Item) -> &str {
    &item.key.sk
}

/// Returns the tuning ID in a row of partition [`ACTIVE`]; `None` for the sweeper's row, which is in the same
/// partition.
pub fn active_id(item: &Item) -> Option<&str> {
    (item.key.sk != sweep::SWEEP).then_some(item.key.sk.as_str())
}
