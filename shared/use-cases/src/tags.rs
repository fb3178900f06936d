//! The tags of a tuning job: those of its request, and those added later.
//!
//! SageMaker copies the tags of a request to the training jobs. Tags that are added later stay with the tuning job, as
//! in Automatic Model Tuning.

use std::collections::BTreeMap;

use thiserror::Error;
use wire::item::Item;
use wire::names::{TAG_PREFIX, TAGS_MAX};
use wire::stored::{self, REVISION, StoredError};

use crate::ports::table::{Condition, Table, TableError, Write};
use crate::store::{Store, StoreError};

/// Maximum characters of a key, as in AWS.
const KEY_CHARS_MAX: usize = 128;
/// Maximum characters of a value, as in AWS.
const VALUE_CHARS_MAX: usize = 256;
/// Attempts to add tags while other callers add tags too.
const TRIES: u32 = 5;

/// Why tags were not added.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum TagError {
    /// The tuning does not exist.
    #[error("no such hyperparameter tuning job")]
    NotFound,
    /// A tag is invalid, or there are too many.
    #[error("{0}")]
    Refused(String),
    /// The table failed. A retry may help.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns the tags of tuning `id`; `None` if it does not exist.
pub async fn tags<T: Table>(
    store: &Store<T>,
    id: &str,
) -> Result<Option<BTreeMap<String, String>>, StoreError> {
    let Some(tuning) = store.tuning(id).await? else { return Ok(None) };
    let mut tags = tuning.request.sent_tags();
    tags.extend(added(store, id).await?.0);
    Ok(Some(tags))
}

/// Adds tags to tuning `id`, or replaces their values. Returns all its tags.
pub async fn add<T: Table>(
    store: &Store<T>,
    id: &str,
    new: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, TagError> {
    for (key, value) in new {
        check(key, value)?;
    }
    let mut tries = 0;
    loop {
        let mut tags = tags(store, id).await?.ok_or(TagError::NotFound)?;
        let (mut kept, before) = added(store, id).await?;
        kept.extend(new.clone());
        tags.extend(kept.clone());
        if tags.len() > TAGS_MAX {
            return Err(TagError::Refused(format!(
                "too many tags: the tuning job would have {}, the maximum is {TAGS_MAX}",
                tags.len()
            )));
        }
        let condition = before.map_or(Condition::NotExists, |n| Condition::equals(REVISION, n));
        let row = stored::tags_row(id, &kept, before.unwrap_or(0).saturating_add(1));
        tries += 1;
        match store.table.write(Write::Put(row, condition)).await {
            Ok(()) => return Ok(tags),
            Err(TableError::Conflict(_)) if tries < TRIES => {}
            Err(error) => return Err(StoreError::from(error).into()),
        }
    }
}

fn check(key: &str, value: &str) -> Result<(), TagError> {
    let is_usual = |text: &str| {
        text.chars().all(|one| {
            one.is_alphanumeric() || one.is_whitespace() && !one.is_control() || "_.:/=+-@".contains(one)
        })
    };
    let refused = |message: String| Err(TagError::Refused(message));
    if [TAG_PREFIX, "aws:"].iter().any(|prefix| key.to_ascii_lowercase().starts_with(prefix)) {
        return refused(format!("invalid tag key {key}: the prefixes {TAG_PREFIX} and aws: are reserved"));
    }
    if !(1..=KEY_CHARS_MAX).contains(&key.chars().count()) || !is_usual(key) {
        return refused(format!(
            "invalid tag key: expected 1 to {KEY_CHARS_MAX} letters, digits, spaces or _.:/=+-@"
        ));
    }
    if value.chars().count() > VALUE_CHARS_MAX || !is_usual(value) {
        return refused(format!(
            "invalid value of tag {key}: expected at most {VALUE_CHARS_MAX} letters, digits, spaces or _.:/=+-@"
        ));
    }
    Ok(())
}

/// Returns the tags that were added to tuning `id`, and the revision of their row.
async fn added<T: Table>(
    store: &Store<T>,
    id: &str,
) -> Result<(BTreeMap<String, String>, Option<i64>), StoreError> {
    let item: Option<Item> = store.table.get(&stored::tags_key(id)).await?;
    let Some(item) = item else { return Ok((BTreeMap::new(), None)) };
    let (tags, revision) = stored::tags(&item).map_err(|error: StoredError| StoreError::from(error))?;
    Ok((tags, Some(revision)))
}
