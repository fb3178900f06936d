//! The sweeper's own row: who sweeps, until when, and where the next sweep goes on.
//!
//! It lies in the partition of the active tunings, before all of them, so that one query tells an idle sweep both that
//! nothing is active and when running jobs are to be listed next. Every change is conditional on the fencing number. What
//! it remembers is a help, never the truth: lost or damaged, sweeps begin anew and only take longer.

use serde::{Deserialize, Serialize};
use tuning::fact::JobKey;

use super::{ACTIVE, DATA, StoredError, checked, data, json, row};
use crate::item::{Item, Key};

/// Its sort key: less than the first character of any id.
pub(super) const SWEEP: &str = "#SWEEP";
/// Attribute with the fencing number: it counts how often the lease was taken.
pub const FENCE: &str = "fence";

/// The sweeper's row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SweepRow {
    /// How often the lease was taken; what its holder must find unchanged.
    pub fence: i64,
    /// Who took it last. A lease in one's own name is left from before one was restarted.
    pub owner: String,
    /// The lease is good until then, ms; 0 = it was given back.
    pub expires: i64,
    /// Where the next sweep goes on.
    pub cursor: SweepCursor,
}

/// Where the next sweep goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepCursor {
    /// The round that heals goes on after this tuning ("" = with the first).
    pub heal: String,
    /// The round that looks at silent jobs goes on after this job.
    pub look: Option<LookedAt>,
    /// Every running job created before this was checked, ms.
    pub checked: i64,
    /// The listing of all running jobs that is under way.
    pub listing: Option<FullListing>,
    /// When the next one is due, ms.
    pub listing_due: i64,
}

/// The silent job that was looked at last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LookedAt {
    /// Its tuning.
    pub tuning: String,
    /// The job.
    pub job: JobKey,
}

/// A listing of all running jobs, oldest first, that did not fit one sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullListing {
    /// When it began, ms.
    pub begun: i64,
    /// It goes on with jobs created then, ms. A time, unlike a page token, does not expire.
    pub from: i64,
    /// Jobs that must be seen again sooner than in an hour: when, ms.
    pub again: Option<i64>,
    /// Whether some job could not be checked.
    pub gaps: bool,
}

impl SweepRow {
    /// Its key.
    pub fn key() -> Key {
        Key::new(ACTIVE, SWEEP)
    }

    /// The stored form.
    pub fn row(&self) -> Item {
        row(Self::key(), "sweep")
            .with(FENCE, self.fence)
            .with("owner", self.owner.as_str())
            .with("expires", self.expires)
            .with(DATA, json(&self.cursor))
    }

    /// The sweeper's row in a row.
    pub fn read(item: &Item) -> Result<Self, StoredError> {
        let item = checked(item, "sweep")?;
        let missing = |name: &str| StoredError::unreadable(&item.key, format!("no {name}"));
        Ok(Self {
            fence: item.number(FENCE).ok_or_else(|| missing(FENCE))?,
            owner: item.text("owner").ok_or_else(|| missing("owner"))?.to_owned(),
            expires: item.number("expires").ok_or_else(|| missing("expires"))?,
            cursor: data(item, DATA)?,
        })
    }
}
