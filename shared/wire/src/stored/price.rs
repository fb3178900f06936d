//! The row of a price, as the price list gave it, and when.
//!
//! | row | partition key | sort key |
//! |---|---|---|
//! | price | `PRICE` | what it is the price of |

use super::{StoredError, checked, row};
use crate::item::{Item, Key};

/// Partition of the prices.
pub const PRICE: &str = "PRICE";

/// A price that was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceRow {
    /// What it is the price of.
    pub of: String,
    /// In micro-dollars.
    pub micro_usd: u64,
    /// When it was looked up, ms since the epoch.
    pub at: i64,
}

impl PriceRow {
    /// The key of the price of `of`.
    pub fn key(of: &str) -> Key {
        Key::new(PRICE, of)
    }

    /// The row.
    pub fn row(&self) -> Item {
        let micro_usd = i64::try_from(self.micro_usd).unwrap_or(i64::MAX);
        row(Self::key(&self.of), "price").with("micro_usd", micro_usd).with("at", self.at)
    }

    /// The price in a row.
    pub fn read(item: &Item) -> Result<Self, StoredError> {
        let item = checked(item, "price")?;
        let missing = |name: &str| StoredError::unreadable(&item.key, format!("no {name}"));
        let micro_usd = item.number("micro_usd").and_then(|n| u64::try_from(n).ok());
        Ok(Self {
            of: item.key.sk.clone(),
            micro_usd: micro_usd.ok_or_else(|| missing("micro_usd"))?,
            at: item.number("at").ok_or_else(|| missing("at"))?,
        })
    }
}
