//! Prices kept in the table, with the time when they were looked up.
//!
//! Prices change a few times a year and the price list is slow and throttled. A price is asked for anew after a day; while
//! the list gives no answer an older one stands in for it, for a week. Must never make up a price: what the list does not
//! know is unknown, and what it cannot tell is an error.

use std::sync::Arc;

use wire::stored::PriceRow;

use crate::ports::table::{Condition, Table, Write};
use crate::ports::{Clock, Millis, Prices, PricesError};

/// How long a price counts as today's.
pub const FRESH_MS: Millis = 24 * 3_600_000;
/// How long a price may stand in while the list gives no answer.
pub const STALE_MS: Millis = 7 * FRESH_MS;

/// What the price of a volume is kept under; instance types begin with `ml.`.
const VOLUME: &str = "volume";

/// Prices of `list`, kept in `table`.
#[derive(Debug)]
pub struct KeptPrices<T, P, C> {
    /// Keeps them.
    pub table: Arc<T>,
    /// Where they come from.
    pub list: P,
    /// Time.
    pub clock: C,
}

impl<T: Table, P: Prices, C: Clock> KeptPrices<T, P, C> {
    /// The price of `of` that was looked up last. What cannot be read counts as not there.
    async fn kept(&self, of: &str) -> Option<PriceRow> {
        let item = self.table.get(&PriceRow::key(of)).await.ok()??;
        PriceRow::read(&item).ok()
    }

    async fn price(
        &self,
        of: &str,
        ask: impl Future<Output = Result<Option<u64>, PricesError>> + Send,
    ) -> Result<Option<u64>, PricesError> {
        let now = self.clock.now();
        let kept = self.kept(of).await;
        let within = |age: Millis| kept.as_ref().filter(|row| now.saturating_sub(row.at) < age);
        if let Some(row) = within(FRESH_MS) {
            return Ok(Some(row.micro_usd));
        }
        match ask.await {
            Ok(Some(micro_usd)) => {
                let row = PriceRow { of: of.to_owned(), micro_usd, at: now };
                // Only to be quicker the next time: without it the list is asked again.
                let _ = self.table.write(Write::Put(row.row(), Condition::Always)).await;
                Ok(Some(micro_usd))
            }
            Ok(None) => Ok(None),
            Err(error) => match within(STALE_MS) {
                Some(row) => Ok(Some(row.micro_usd)),
                None => Err(error),
            },
        }
    }
}

impl<T: Table, P: Prices, C: Clock> Prices for KeptPrices<T, P, C> {
    async fn instance_hour(&self, instance_type: &str) -> Result<Option<u64>, PricesError> {
        self.price(instance_type, self.list.instance_hour(instance_type)).await
    }

    async fn volume_kilo_gib_hour(&self) -> Result<Option<u64>, PricesError> {
        self.price(VOLUME, self.list.volume_kilo_gib_hour()).await
    }
}
