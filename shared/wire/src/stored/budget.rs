//! The row of a month's budget: what of the stack's month's cap is granted to tunings.
//!
//! | row | partition key | sort key |
//! |---|---|---|
//! | month | `BUDGET` | `<year>-<month>`, UTC |
//!
//! Every change is conditional on the row's revision and comes in one transaction with the fact that tells the tuning.

use tuning::money::MicroUsd;

use super::{REVISION, StoredError, checked, row};
use crate::events::timestamp::format_utc;
use crate::item::{Item, Key};

/// Partition of the months.
pub const BUDGET: &str = "BUDGET";

/// A month's budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonthRow {
    /// The month (UTC), such as `2026-11`.
    pub month: String,
    /// Granted to tunings, less what they gave back.
    pub granted: MicroUsd,
    /// The highest share of the cap, in percent, that was reached so far: people are told of each once.
    pub reached: u32,
    /// Counts every change.
    pub revision: i64,
}

/// The month (UTC) of a time in ms since the epoch, such as `2026-11`.
///
/// ```
/// assert_eq!(wire::stored::month_of(1_793_491_199_999), "2026-10");
/// assert_eq!(wire::stored::month_of(1_793_491_200_000), "2026-11");
/// ```
pub fn month_of(ms: i64) -> String {
    format_utc(ms).chars().take(7).collect()
}

impl MonthRow {
    /// A month of which nothing is granted yet.
    pub fn new(month: &str) -> Self {
        Self { month: month.to_owned(), granted: MicroUsd::ZERO, reached: 0, revision: 0 }
    }

    /// The key of a month's row.
    pub fn key(month: &str) -> Key {
        Key::new(BUDGET, month)
    }

    /// What of `cap` may still be granted.
    pub fn left(&self, cap: MicroUsd) -> MicroUsd {
        cap.minus(self.granted)
    }

    /// The row.
    pub fn row(&self) -> Item {
        row(Self::key(&self.month), "month")
            .with("granted", i64::try_from(self.granted.0).unwrap_or(i64::MAX))
            .with("reached", i64::from(self.reached))
            .with(REVISION, self.revision)
    }

    /// The month in a row.
    pub fn read(item: &Item) -> Result<Self, StoredError> {
        let item = checked(item, "month")?;
        let missing = |name: &str| StoredError::unreadable(&item.key, format!("no {name}"));
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
