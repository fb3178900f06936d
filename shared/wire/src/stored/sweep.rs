//! The sweeper's row: the lease and the position of the next sweep.
//!
//! The row sorts first in the partition of the active tunings. One query therefore shows an idle sweeper that no tuning
//! is active, and when to list running jobs next. Every change is conditional on the fencing number. The cursors only
//! save time: if they are lost, sweeps start from the beginning.

use serde::{Deserialize, Serialize};
use tuning::log::fact::JobKey;
use tuning::unit::time::Time;

use super::{ACTIVE, DATA, StoredError, checked, data, json, row};
use crate::item::{Item, Key};

/// Sort key, which sorts before every tuning ID.
pub(super) const SWEEP: &str = "#SWEEP";
/// Attribute with the fencing number, which counts the leases.
pub const FENCE: &str = "fence";

/// The sweeper's row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SweepRow {
    /// Fencing number: the number of leases so far. Every write of the holder is conditional on it.
    pub fence: i64,
    /// The last holder. A sweeper that finds its own name held the lease before it restarted.
    pub owner: String,
    /// End of the lease, in ms since the epoch; 0 = released.
    pub expires: Time,
    /// Position of the next sweep.
    pub cursor: SweepCursor,
}

/// Position of the next sweep.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepCursor {
    /// The healing round continues after this tuning; empty = with the first.
    pub heal: String,
    /// The round of silent jobs continues after this job; `None` = with the first.
    pub look: Option<LookedAt>,
    /// Every running job created before this time was checked, in ms since the epoch.
    pub checked: Time,
    /// The current listing of all running jobs; `None` = no listing is in progress.
    pub listing: Option<FullListing>,
    /// Due time of the next listing, in ms since the epoch.
    pub listing_due: Time,
    /// The pass over tunings that ended long ago continues after this name; `None` = with the first.
    pub retired: Option<String>,
}

/// The silent job that the sweeper checked last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LookedAt {
    /// Tuning ID.
    pub tuning: String,
    /// Job key.
    pub job: JobKey,
}

/// A listing of all running jobs, oldest first, that spans several sweeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullListing {
    /// Start time, in ms since the epoch.
    pub begun: Time,
    /// Creation time of the next jobs to list, in ms since the epoch. Unlike a page token, a time does not expire.
    pub from: Time,
    /// Time of the next listing if jobs need a check within an hour, in ms since the epoch.
    pub again: Option<Time>,
    /// Whether the check of a job failed.
    pub gaps: bool,
}

impl SweepRow {
    /// Returns the key of the row.
    pub fn key() -> Key {
        Key::new(ACTIVE, SWEEP)
    }

    /// Returns the stored row.
    pub fn row(&self) -> Item {
        row(Self::key(), "sweep")
            .with(FENCE, self.fence)
            .with("owner", self.owner.as_str())
            .with("expires", self.expires)
            .with(DATA, json(&self.cursor))
    }

    /// Reads the sweeper's row.
    pub fn read(item: &Item) -> Result<Self, StoredError> {
        let item = checked(item, "sweep")?;
        let missing = |name: &str| StoredError::missing(&item.key, name);
        Ok(Self {
            fence: item.number(FENCE).ok_or_else(|| missing(FENCE))?,
            owner: item.text("owner").ok_or_else(|| missing("owner"))?.to_owned(),
            expires: item.time("expires").ok_or_else(|| missing("expires"))?,
            cursor: data(item, DATA)?,
        })
    }
}
