//! The row of a price from the price list, with the time of the lookup.
//!
//! | row | partition key | sort key |
//! |---|---|---|
//! | price | `PRICE` | `<instance type>` or `volume` |

use super::{StoredError, checked, row};
use crate::item::{Item, Key};
use tuning::unit::time::Time;

/// Partition of the prices.
pub const PRICE: &str = "PRICE";

/// A price from the price list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceRow {
    /// The priced item: an instance type or `volume`.
    pub of: String,
    /// The price in micro-dollars.
    pub micro_usd: u64,
    /// Time of the lookup, in ms since the epoch.
    pub at: Time,
}

impl PriceRow {
    /// Returns the key of the price of item `of`.
    pub fn key(of: &str) -> Key {
        Key::new(PRICE, of)
    }

    /// Returns the stored row.
    pub fn row(&self) -> Item {
        let micro_usd = i64::try_from(self.micro_usd).unwrap_or(i64::MAX);
        row(Self::key(&self.of), "price").with("micro_usd", micro_usd).with("at", self.at)
    }

    /// Reads the price in a row.
    pub fn read(item: &Item) -> Result<Self, StoredError> {
        let item = checked(item, "price")?;
        let missing = |name: &str| StoredError::missing(&item.key, name);
        let micro_usd = item.number("micro_usd").and_then(|n| u64::try_from(n).ok());
        Ok(Self {
            of: item.key.sk.clone(),
            micro_usd: micro_usd.ok_or_else(|| missing("micro_usd"))?,
            at: item.time("at").ok_or_else(|| missing("at"))?,
        })
    }
}
