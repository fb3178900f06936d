//! The table of an AWS account, for the functions: settings from the environment, one client a process.
//!
//! Assumes the environment that Lambda gives (region, credentials). `AWS_ENDPOINT_URL_DYNAMODB` leads elsewhere, as in
//! every AWS SDK. Must never be called more than once a process: a client is made of connections.

use aws_connection::{SdkConfig, SettingsError, account, setting, tried_again};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Builder;

use crate::table::DynamoTable;

/// How long facts are kept.
const FACT_DAYS: &str = "FACT_DAYS";
/// Long enough for a queue's messages of today to find the facts they are about, and for a training job of a week.
const FACT_DAYS_ALLOWED: std::ops::RangeInclusive<u32> = 7..=3_650;

/// What a function is told by its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `TABLE_NAME`.
    pub table_name: String,
    /// `STACK_NAME`: on every training job of this stack as a tag.
    pub stack_name: String,
    /// `FACT_DAYS`: for how many days the rows of facts are kept; missing or empty = as many as the code says.
    pub fact_days: Option<u32>,
}

impl Settings {
    /// Reads the settings; `variable` gives the value of an environment variable.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let text = |name| setting(&variable, name);
        let days = variable(FACT_DAYS).filter(|text| !text.is_empty());
        let fact_days = days.map(|text| text.parse().ok().filter(|days| FACT_DAYS_ALLOWED.contains(days)));
        if fact_days == Some(None) {
            let expected = "a whole number of days from 7 to 3650";
            return Err(SettingsError::Unreadable { name: FACT_DAYS, expected });
        }
        Ok(Self {
            table_name: text("TABLE_NAME")?,
            stack_name: text("STACK_NAME")?,
            fact_days: fact_days.flatten(),
        })
    }
}

/// The table of these settings, for a function that calls nothing else.
pub async fn table(settings: &Settings) -> DynamoTable {
    table_of(&account().await, settings)
}

/// The table of these settings, in an account that is asked for other services too.
pub fn table_of(account: &SdkConfig, settings: &Settings) -> DynamoTable {
    // A write that is sent again is safe: by its condition, and a transaction by its token.
    let client = Client::from_conf(Builder::from(account).timeout_config(tried_again()).build());
    let table = DynamoTable::new(client, settings.table_name.clone());
    match settings.fact_days {
        Some(days) => table.keeping_facts(days),
        None => table,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_setting_is_named() {
        let only_table = |name: &str| (name == "TABLE_NAME").then(|| "t".to_owned());
        assert_eq!(Settings::read(only_table), Err(SettingsError::Missing("STACK_NAME")));
        assert_eq!(Settings::read(|_| Some(String::new())), Err(SettingsError::Missing("TABLE_NAME")));
        let text = |name: &str| (name != FACT_DAYS).then(|| name.to_lowercase());
        let settings = Settings::read(text).unwrap();
        assert_eq!((settings.stack_name.as_str(), settings.fact_days), ("stack_name", None));
    }

    #[test]
    fn facts_are_kept_for_a_week_at_least() {
        let read =
            |days: &str| Settings::read(|name| Some(if name == FACT_DAYS { days } else { "x" }.to_owned()));
        for (days, expected) in [("7", Some(7)), ("3650", Some(3_650)), ("", None)] {
            assert_eq!(read(days).unwrap().fact_days, expected);
        }
        for days in ["6", "3651", "-1", "30.5", "a month"] {
            let error = read(days).unwrap_err().to_string();
            let expected = "the environment variable FACT_DAYS must be a whole number of days from 7 to 3650";
            assert_eq!(error, expected);
        }
    }
}
