//! Prices of training instances and volumes, from AWS's price list.
//!
//! Queries by the exact usage type of a bill, since other attributes of the list are empty in some rows. Must never
//! guess: without a row, or in a Region with unknown usage types, the price is unknown. If several rows match, the
//! highest price counts. The list has no spot prices; a cap uses on-demand prices.

use crate::{Failure, SdkConfig, at_most, retried};
use aws_sdk_pricing::Client;
use aws_sdk_pricing::config::{Builder, Region};
use aws_sdk_pricing::types::{Filter, FilterType};
use use_cases::ports::{Prices, PricesError};
use use_cases::prices::kilo_gib_hour;
use wire::price_list::{self, SERVICE, Unit, VOLUME};

/// Maximum attempts to query a price.
const TRIES: u32 = 3;
/// Maximum rows of a response. A usage type has one row or a few.
const ROWS: i32 = 100;

/// The price list of one Region.
#[derive(Debug, Clone)]
pub struct PriceList {
    client: Client,
    /// Prefixes of the Region's usage types; `None` = unknown.
    prefixes: Option<&'static [&'static str]>,
}

impl PriceList {
    /// Creates a client for the Region of `account`. `AWS_ENDPOINT_URL_PRICING` overrides the endpoint.
    pub fn new(account: &SdkConfig) -> Self {
        let region = account.region().map(AsRef::as_ref).unwrap_or_default();
        let config = Builder::from(account)
            .region(Region::new(price_list::endpoint(region)))
            .retry_config(at_most(TRIES))
            .timeout_config(retried())
            .build();
        Self { client: Client::from_conf(config), prefixes: price_list::prefixes(region) }
    }

    /// Returns the highest price of a usage type, in micro-dollars a unit.
    async fn price(&self, usage: &str, unit: Unit) -> Result<Option<u64>, PricesError> {
        for prefix in self.prefixes.unwrap_or_default() {
            let usage = format!("{prefix}{usage}");
            let filter =
                Filter::builder().r#type(FilterType::TermMatch).field("usagetype").value(&usage).build();
            let filter = filter.map_err(|error| PricesError::Unavailable(error.to_string()))?;
            let ask = self.client.get_products().service_code(SERVICE).filters(filter).max_results(ROWS);
            let answer = ask.send().await.map_err(|error| prices_error(Failure::of(&error)))?;
            let rows = answer.price_list().iter();
            let prices: Result<Vec<Option<u64>>, _> =
                rows.map(|row| price_list::price(row, &usage, unit)).collect();
            let prices = prices.map_err(|error| PricesError::Unavailable(error.to_string()))?;
            if let Some(price) = prices.into_iter().flatten().max() {
                return Ok(Some(price));
            }
        }
        Ok(None)
    }
}

fn prices_error(failure: Failure) -> PricesError {
    match failure {
        Failure::Unavailable(reason) => PricesError::Unavailable(reason),
        Failure::Throttled => PricesError::Unavailable("the price list is throttling".to_owned()),
        Failure::Refused { code, message } => PricesError::Refused(format!("{code}: {message}")),
    }
}

impl Prices for PriceList {
    async fn instance_hour(&self, instance_type: &str) -> Result<Option<u64>, PricesError> {
        self.price(&price_list::instance(instance_type), Unit::Hour).await
    }

    async fn volume_kilo_gib_hour(&self) -> Result<Option<u64>, PricesError> {
        let month = self.price(VOLUME, Unit::GigabyteMonth).await?;
        Ok(month.map(kilo_gib_hour))
    }
}
