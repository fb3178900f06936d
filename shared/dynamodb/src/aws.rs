//! Opens the table in an AWS account, for the Lambda functions.
//!
//! Reads Region and credentials from the environment that Lambda sets. `AWS_ENDPOINT_URL_DYNAMODB` overrides the
//! endpoint, as in every AWS SDK. Open the table once per process: each client has its own connections.

use aws::{SdkConfig, account, retried};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Builder;

use crate::table::DynamoTable;

/// Opens the table `name`, for a function that calls no other service. Fact rows expire after `fact_days` days; `None`
/// means the default of 30 days.
pub async fn table(name: &str, fact_days: Option<u32>) -> DynamoTable {
    table_of(&account().await, name, fact_days)
}

/// Like [`table`], but uses an `account` configuration that the function shares with other services.
pub fn table_of(account: &SdkConfig, name: &str, fact_days: Option<u32>) -> DynamoTable {
    // Retries are safe: a write has a condition, and a transaction has a token.
    let client = Client::from_conf(Builder::from(account).timeout_config(retried()).build());
    let table = DynamoTable::new(client, name.to_owned());
    match fact_days {
        Some(days) => table.with_fact_days(days),
        None => table,
    }
}
