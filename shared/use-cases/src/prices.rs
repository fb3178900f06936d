//! Prices stored in the table, with the time of the look-up.
//!
//! Prices change a few times a year, and the price list is slow and throttled. After a day a stored price is looked up
//! again. While the price list gives no answer, the stored price is used for up to a week. Prices are never invented: a
//! price that is not in the list is unknown, and a failed look-up is an error.

use std::sync::Arc;

use tuning::time::Millis;
use wire::stored::PriceRow;

use crate::ports::table::{Condition, Table, Write};
use crate::ports::{Clock, Prices, PricesError};

/// How long a stored price is used without a new look-up.
pub const FRESH: Millis = Millis::from_seconds(24 * 3_600);
/// How long a stored price is used while the price list gives no answer.
pub const STALE: Millis = Millis::from_seconds(7 * 24 * 3_600);

/// Key of the price of a volume. Instance types begin with `ml.`.
const VOLUME: &str = "volume";

/// The prices of `list`, stored in `table`.
#[derive(Debug)]
pub struct KeptPrices<T, P, C> {
    /// Stores the prices.
    pub table: Arc<T>,
    /// The source of the prices.
    pub list: P,
    /// The current time.
    pub clock: C,
}

impl<T: Table, P: Prices, C: Clock> KeptPrices<T, P, C> {
    /// Returns the stored price of `of`. An unreadable row counts as missing.
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
        let within = |age: Millis| kept.as_ref().filter(|row| now - row.at < age);
        if let Some(row) = within(FRESH) {
            return Ok(Some(row.micro_usd));
        }
        match ask.await {
            Ok(Some(micro_usd)) => {
                let row = PriceRow { of: of.to_owned(), micro_usd, at: now };
                // A failure only means that the next call asks the price list again.
                let _ = self.table.write(Write::Put(row.row(), Condition::Always)).await;
                Ok(Some(micro_usd))
            }
            Ok(None) => Ok(None),
            Err(error) => match within(STALE) {
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
