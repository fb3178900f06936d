//! Prices stored in the table, with the time of the look-up.
//!
//! Prices change a few times a year, and the price list is slow and throttled. After a day a stored price is looked up
//! again. While the price list gives no answer, the stored price is used for up to a week. The price of an instance is
//! never invented: one that is not in the list is unknown, and a failed look-up is an error.
//!
//! The owner of a stack may set prices that replace those of the list ([`OwnerPrices`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Number;
use tuning::unit::time::Millis;
use wire::request::micro_usd_up;
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

/// Hours of the shortest month, so that a monthly price is never converted to too low an hourly price.
const LEAST_HOURS_OF_A_MONTH: u64 = 28 * 24;
/// The scale of [`OwnerPrices::factor_ppm`].
const PPM: u64 = 1_000_000;
/// The greatest factor, in [`PPM`].
const FACTOR_PPM_MAX: u64 = 10 * PPM;

/// Converts the price of a gibibyte for a month to that of 1,000 gibibyte-hours, rounded up, both in micro-dollars.
///
/// ```
/// assert_eq!(use_cases::prices::kilo_gib_hour(140_000), 208_334);
/// ```
pub fn kilo_gib_hour(gib_month: u64) -> u64 {
    gib_month.saturating_mul(1_000).div_ceil(LEAST_HOURS_OF_A_MONTH)
}

/// The prices that the owner of a stack set: for Regions and instance types that the price list lacks, or for private
/// prices. The default sets none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerPrices {
    /// Prices of an instance by type, in micro-dollars an hour.
    instance_hours: BTreeMap<String, u64>,
    /// Price of volumes, in micro-dollars per 1,000 gibibyte-hours.
    volume_kilo_gib_hour: Option<u64>,
    /// Factor of the listed prices of instances, in millionths, for example for a savings plan.
    factor_ppm: u64,
}

impl Default for OwnerPrices {
    fn default() -> Self {
        Self { instance_hours: BTreeMap::new(), volume_kilo_gib_hour: None, factor_ppm: PPM }
    }
}

impl OwnerPrices {
    /// Reads `TYPE=USD` entries separated by commas: US dollars per instance and hour, or per gibibyte and month for the
    /// type `volume`. `factor` multiplies the listed prices of instances; empty = 1. Returns `None` if a part is
    /// invalid.
    ///
    /// ```
    /// use use_cases::prices::OwnerPrices;
    /// assert!(OwnerPrices::read("ml.m5.xlarge=0.23, volume=0.14", "0.72").is_some());
    /// assert_eq!(OwnerPrices::read("", ""), Some(OwnerPrices::default()));
    /// assert_eq!(OwnerPrices::read("ml.m5.xlarge=free", ""), None);
    /// assert_eq!(OwnerPrices::read("", "0"), None);
    /// ```
    pub fn read(prices: &str, factor: &str) -> Option<Self> {
        let mut read = Self::default();
        for entry in prices.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (of, price) = entry.split_once('=')?;
            let micro_usd = micro(price.trim()).filter(|price| *price > 0)?;
            match of.trim() {
                VOLUME => read.volume_kilo_gib_hour = Some(kilo_gib_hour(micro_usd)),
                of if of.starts_with("ml.") => {
                    read.instance_hours.insert(of.to_owned(), micro_usd);
                }
                _ => return None,
            }
        }
        if !factor.is_empty() {
            read.factor_ppm = micro(factor).filter(|factor| (1..=FACTOR_PPM_MAX).contains(factor))?;
        }
        Some(read)
    }
}

fn micro(text: &str) -> Option<u64> {
    micro_usd_up(&text.parse::<Number>().ok()?)
}

/// The price of a volume that the list lacks, in micro-dollars per gibibyte and month. It is above every price that AWS is
/// known to list for the volume of a training instance.
pub const UNLISTED_VOLUME_GIB_MONTH: u64 = 300_000;

/// The prices of the owner, and those of `list` for all others.
#[derive(Debug)]
pub struct WithOwnerPrices<P> {
    /// The owner's prices.
    pub owner: OwnerPrices,
    /// The other prices.
    pub list: P,
}

impl<P: Prices> Prices for WithOwnerPrices<P> {
    async fn instance_hour(&self, instance_type: &str) -> Result<Option<u64>, PricesError> {
        if let Some(own) = self.owner.instance_hours.get(instance_type) {
            return Ok(Some(*own));
        }
        let listed = self.list.instance_hour(instance_type).await?;
        Ok(listed.map(|listed| listed.saturating_mul(self.owner.factor_ppm).div_ceil(PPM)))
    }

    async fn volume_kilo_gib_hour(&self) -> Result<Option<u64>, PricesError> {
        if let Some(own) = self.owner.volume_kilo_gib_hour {
            return Ok(Some(own));
        }
        let listed = self.list.volume_kilo_gib_hour().await?;
        Ok(Some(listed.unwrap_or(kilo_gib_hour(UNLISTED_VOLUME_GIB_MONTH))))
    }
}
