//! Prices of training instances and volumes, from AWS's price list.
//!
//! Asks by the usage type that a bill would show, exactly, since the list's other attributes are empty in some rows. Must
//! never guess: no row, or a region whose usage types are not known here, is an unknown price. Of several rows the dearest
//! counts. Spot has no price in the list; a cap is kept on the price on demand.

mod product;
mod region;

use aws_connection::{Failure, SdkConfig, at_most, tried_again};
use aws_sdk_pricing::Client;
use aws_sdk_pricing::config::{Builder, Region};
use aws_sdk_pricing::types::{Filter, FilterType};
use service::ports::{Prices, PricesError};

/// How often a price is asked for at most.
const TRIES: u32 = 3;
/// Rows of one answer. One usage type has one row, or a few.
const ROWS: i32 = 100;
/// SageMaker in the price list.
const SERVICE: &str = "AmazonSageMaker";
/// Hours of the shortest month: an hour's share of a month's price is never more.
const LEAST_HOURS_OF_A_MONTH: u64 = 28 * 24;

/// The price list, for one region.
#[derive(Debug, Clone)]
pub struct PriceList {
    client: Client,
    /// How usage types of the region begin; `None` = not known here.
    prefixes: Option<&'static [&'static str]>,
}

impl PriceList {
    /// The prices in the region of `account`. `AWS_ENDPOINT_URL_PRICING` leads elsewhere.
    pub fn new(account: &SdkConfig) -> Self {
        let region = account.region().map(AsRef::as_ref).unwrap_or_default();
        let config = Builder::from(account)
            .region(Region::new(region::endpoint(region)))
            .retry_config(at_most(TRIES))
            .timeout_config(tried_again())
            .build();
        Self { client: Client::from_conf(config), prefixes: region::prefixes(region) }
    }

    /// The dearest price of a usage type, in micro-dollars a unit.
    async fn price(&self, usage: &str, unit: product::Unit) -> Result<Option<u64>, PricesError> {
        for prefix in self.prefixes.unwrap_or_default() {
            let usage = format!("{prefix}{usage}");
            let filter =
                Filter::builder().r#type(FilterType::TermMatch).field("usagetype").value(&usage).build();
            let filter = filter.map_err(|error| PricesError::Unavailable(error.to_string()))?;
            let ask = self.client.get_products().service_code(SERVICE).filters(filter).max_results(ROWS);
            let answer = ask.send().await.map_err(|error| untold(Failure::of(&error)))?;
            let rows = answer.price_list().iter();
            let prices: Result<Vec<Option<u64>>, PricesError> =
                rows.map(|row| product::price(row, &usage, unit)).collect();
            if let Some(price) = prices?.into_iter().flatten().max() {
                return Ok(Some(price));
            }
        }
        Ok(None)
    }
}

fn untold(failure: Failure) -> PricesError {
    match failure {
        Failure::Unavailable(reason) => PricesError::Unavailable(reason),
        Failure::Throttled => PricesError::Unavailable("it is throttling".to_owned()),
        Failure::Refused { code, message } => PricesError::Refused(format!("{code}: {message}")),
    }
}

impl Prices for PriceList {
    async fn instance_hour(&self, instance_type: &str) -> Result<Option<u64>, PricesError> {
        self.price(&format!("Train:{instance_type}"), product::Unit::Hour).await
    }

    async fn volume_kilo_gib_hour(&self) -> Result<Option<u64>, PricesError> {
        let month = self.price("Train:VolumeUsage.gp2", product::Unit::GigabyteMonth).await?;
        Ok(month.map(|month| month.saturating_mul(1_000).div_ceil(LEAST_HOURS_OF_A_MONTH)))
    }
}
