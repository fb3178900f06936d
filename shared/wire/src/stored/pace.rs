//! The row of a rate limit that all functions and tunings of a stack share: the turns that were given.
//!
//! | row | partition key | sort key |
//! |---|---|---|
//! | pace | `PACE` | `starts` or `log-pages` |
//!
//! Every change is conditional on the revision of the row. If the row is lost, only its turns are lost, so nothing
//! depends on it.

use std::collections::BTreeMap;

use tuning::unit::time::Time;

use super::{DATA, REVISION, StoredError, checked, data, json, row};
use crate::item::{Item, Key};

/// Partition of the rows of rate limits.
pub const PACE: &str = "PACE";

/// The turns of one rate limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaceRow {
    /// The limited call: `starts` or `log-pages`.
    pub of: String,
    /// The next free turn.
    pub next: Time,
    /// Turns to come, by the tuning that took them.
    pub taken: BTreeMap<String, Vec<Time>>,
    /// Number of changes of the row.
    pub revision: i64,
}

impl PaceRow {
    /// Returns a row from which no turn was taken.
    pub fn new(of: &str) -> Self {
        Self { of: of.to_owned(), next: Time::EPOCH, taken: BTreeMap::new(), revision: 0 }
    }

    /// Returns the key of the turns of calls `of`.
    pub fn key(of: &str) -> Key {
        Key::new(PACE, of)
    }

    /// Returns the stored row.
    pub fn row(&self) -> Item {
        row(Self::key(&self.of), "pace")
            .with("next", self.next)
            .with(DATA, json(&self.taken))
            .with(REVISION, self.revision)
    }

    /// Reads the turns in a row.
    pub fn read(item: &Item) -> Result<Self, StoredError> {
        let item = checked(item, "pace")?;
        let missing = |name: &str| StoredError::missing(&item.key, name);
        Ok(Self {
            of: item.key.sk.clone(),
            next: item.time("next").ok_or_else(|| missing("next"))?,
            taken: data(item, DATA)?,
            revision: item.number(REVISION).ok_or_else(|| missing(REVISION))?,
        })
    }
}
