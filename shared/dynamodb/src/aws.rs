//! The table of an AWS account, for the functions: settings from the environment, one client a process.
//!
//! Assumes the environment that Lambda gives (region, credentials). `AWS_ENDPOINT_URL_DYNAMODB` leads elsewhere, as in
//! every AWS SDK. Must never be called more than once a process: a client is made of connections.

use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::Client;
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use thiserror::Error;

use crate::table::DynamoTable;

/// Longest time for one call, its retries included; below every function's own.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// What a function is told by its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `TABLE_NAME`.
    pub table_name: String,
    /// `STACK_NAME`: on every training job of this stack as a tag.
    pub stack_name: String,
}

/// A setting is missing or empty: the function does not start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the environment variable {0} is missing or empty")]
pub struct SettingsError(pub &'static str);

impl Settings {
    /// Reads the settings; `variable` gives the value of an environment variable.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let text =
            |name: &'static str| variable(name).filter(|text| !text.is_empty()).ok_or(SettingsError(name));
        Ok(Self { table_name: text("TABLE_NAME")?, stack_name: text("STACK_NAME")? })
    }
}

/// The table of these settings.
pub async fn table(settings: &Settings) -> DynamoTable {
    let http = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    let timeouts = TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build();
    let config = aws_config::defaults(BehaviorVersion::latest())
        .http_client(http)
        .timeout_config(timeouts)
        .load()
        .await;
    DynamoTable::new(Client::new(&config), settings.table_name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_setting_is_named() {
        let only_table = |name: &str| (name == "TABLE_NAME").then(|| "t".to_owned());
        assert_eq!(Settings::read(only_table), Err(SettingsError("STACK_NAME")));
        assert_eq!(Settings::read(|_| Some(String::new())), Err(SettingsError("TABLE_NAME")));
        let settings = Settings::read(|name| Some(name.to_lowercase())).unwrap();
        assert_eq!(settings.stack_name, "stack_name");
    }
}
