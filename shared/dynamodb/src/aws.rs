//! The table of an AWS account, for the functions: settings from the environment, one client a process.
//!
//! Assumes the environment that Lambda gives (region, credentials). `AWS_ENDPOINT_URL_DYNAMODB` leads elsewhere, as in
//! every AWS SDK. Must never be called more than once a process: a client is made of connections.

use aws_connection::{SdkConfig, SettingsError, account, setting};
use aws_sdk_dynamodb::Client;

use crate::table::DynamoTable;

/// What a function is told by its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `TABLE_NAME`.
    pub table_name: String,
    /// `STACK_NAME`: on every training job of this stack as a tag.
    pub stack_name: String,
}

impl Settings {
    /// Reads the settings; `variable` gives the value of an environment variable.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let text = |name| setting(&variable, name);
        Ok(Self { table_name: text("TABLE_NAME")?, stack_name: text("STACK_NAME")? })
    }
}

/// The table of these settings, for a function that calls nothing else.
pub async fn table(settings: &Settings) -> DynamoTable {
    table_of(&account().await, settings)
}

/// The table of these settings, in an account that is asked for other services too.
pub fn table_of(account: &SdkConfig, settings: &Settings) -> DynamoTable {
    DynamoTable::new(Client::new(account), settings.table_name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_setting_is_named() {
        let only_table = |name: &str| (name == "TABLE_NAME").then(|| "t".to_owned());
        assert_eq!(Settings::read(only_table), Err(SettingsError::Missing("STACK_NAME")));
        assert_eq!(Settings::read(|_| Some(String::new())), Err(SettingsError::Missing("TABLE_NAME")));
        let settings = Settings::read(|name| Some(name.to_lowercase())).unwrap();
        assert_eq!(settings.stack_name, "stack_name");
    }
}
