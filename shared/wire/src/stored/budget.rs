//! The row of a month: the part of the stack's monthly cap that is granted to tunings.
//!
//! | row | partition key | sort key |
//! |---|---|---|
//! | month | `BUDGET` | `<year>-<month>`, UTC |
//!
//! Every change is conditional on the revision of the row, and in one transaction with the fact for the tuning.

use tuning::unit::money::MicroUsd;

use super::{REVISION, StoredError, checked, row};
use crate::item::{Item, Key};

/// Partition of the rows of months.
pub const BUDGET: &str = "BUDGET";

/// The grants of one month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonthRow {
    /// The month (UTC), such as `2026-11`.
    pub month: String,
    /// Amount granted to tunings, less returned grants.
    pub granted: MicroUsd,
    /// The highest share of the cap that was reached so far, in percent. An event is published once per share.
    pub reached: u32,
    /// Number of changes of the row.
    pub revision: i64,
}

impl MonthRow {
    /// Returns a month without grants.
    pub fn new(month: &str) -> Self {
        Self { month: month.to_owned(), granted: MicroUsd::ZERO, reached: 0, revision: 0 }
    }

    /// Returns the key of a month.
    pub fn key(month: &str) -> Key {
        Key::new(BUDGET, month)
    }

    /// Returns the part of `cap` that is not granted yet.
    pub fn left(&self, cap: MicroUsd) -> MicroUsd {
        cap.minus(self.granted)
    }

    /// Returns the stored row.
    pub fn row(&self) -> Item {
        row(Self::key(&self.month), "month")
            .with("granted", i64::try_from(self.granted.0).unwrap_or(i64::MAX))
            .with("reached", i64::from(self.reached))
            .with(REVISION, self.revision)
    }

    /// Reads the month in a row.
    pub fn read(item: &Item) -> Result<Self, StoredError> {
        let item = checked(item, "month")?;
        let missing = |name: &str| StoredError::missing(&item.key, name);
        let granted = item.number("granted").and_then(|n| u64::try_from(n).ok());
        let reached = item.number("reached").and_then(|n| u32::try_from(n).ok());
        Ok(Self {
            month: item.key.sk.clone(),
            granted: MicroUsd(granted.ok_or_else(|| missing("granted"))?),
            reached: reached.ok_or_else(|| missing("reached"))?,
            revision: item.number(REVISION).ok_or_else(|| missing(REVISION))?,
        })
    }
}
