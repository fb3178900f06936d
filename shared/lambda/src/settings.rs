//! The settings of a function, from its environment variables.
//!
//! A function with a missing or invalid setting does not start: an unreadable cap must never mean "no cap".

use serde_json::Number;
use thiserror::Error;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Millis;
use wire::request::micro_usd_down;

const MONTHLY_CAP: &str = "MONTHLY_CAP_USD";
/// How long fact rows are kept.
const FACT_DAYS: &str = "FACT_DAYS";
/// At least as long as a message can stay in a failure queue, and as a week-long training job.
const FACT_DAYS_ALLOWED: std::ops::RangeInclusive<u32> = 7..=3_650;

/// A missing or invalid setting. The function does not start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// The variable is missing or empty.
    #[error("missing environment variable {0}: set it in the stack's template")]
    Missing(&'static str),
    /// The variable has an invalid value.
    #[error("invalid environment variable {name}: expected {expected}")]
    Unreadable {
        /// The variable.
        name: &'static str,
        /// The expected value, with an example.
        expected: &'static str,
    },
}

/// The settings of every function: its stack's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSettings {
    /// `TABLE_NAME`.
    pub table_name: String,
    /// `STACK_NAME`: a tag on every training job of this stack.
    pub stack_name: String,
    /// `FACT_DAYS`: for how many days fact rows are kept; missing or empty = the default of `dynamodb`.
    pub fact_days: Option<u32>,
}

impl TableSettings {
    /// Reads the settings; `variable` returns the value of an environment variable.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let days = variable(FACT_DAYS).filter(|text| !text.is_empty());
        let fact_days = days.map(|text| text.parse().ok().filter(|days| FACT_DAYS_ALLOWED.contains(days)));
        if fact_days == Some(None) {
            let expected = "a whole number of days from 7 to 3650";
            return Err(SettingsError::Unreadable { name: FACT_DAYS, expected });
        }
        Ok(Self {
            table_name: setting(&variable, "TABLE_NAME")?,
            stack_name: setting(&variable, "STACK_NAME")?,
            fact_days: fact_days.flatten(),
        })
    }
}

/// Returns the setting `name`, which must not be empty. `variable` returns the value of an environment variable.
pub fn setting(
    variable: impl Fn(&str) -> Option<String>,
    name: &'static str,
) -> Result<String, SettingsError> {
    variable(name).filter(|text| !text.is_empty()).ok_or(SettingsError::Missing(name))
}

/// Returns the setting `name`, `true` or `false`; missing or empty = `false`.
pub fn flag(variable: impl Fn(&str) -> Option<String>, name: &'static str) -> Result<bool, SettingsError> {
    match variable(name).unwrap_or_default().as_str() {
        "" | "false" => Ok(false),
        "true" => Ok(true),
        _ => Err(SettingsError::Unreadable { name, expected: "true or false" }),
    }
}

/// Returns `MONTHLY_CAP_USD`, such as `1000` or `99.5`; missing or empty = no cap.
pub fn monthly_cap(variable: impl Fn(&str) -> Option<String>) -> Result<Option<MicroUsd>, SettingsError> {
    cap(variable, MONTHLY_CAP)
}

/// Reads a number of days from 1 to 9,999. A missing or empty variable means no limit.
pub fn days(
    variable: impl Fn(&str) -> Option<String>,
    name: &'static str,
) -> Result<Option<Millis>, SettingsError> {
    let Some(text) = variable(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    let days: Option<u64> = text.parse().ok().filter(|days| (1..=9_999).contains(days));
    let span = days.map(|days| Millis::from_seconds(days.saturating_mul(86_400)));
    span.map(Some).ok_or(SettingsError::Unreadable { name, expected: "a number of days from 1 to 9999" })
}

/// Reads a cap in US dollars. A missing or empty variable means no cap.
pub fn cap(
    variable: impl Fn(&str) -> Option<String>,
    name: &'static str,
) -> Result<Option<MicroUsd>, SettingsError> {
    let Some(text) = variable(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    let number: Option<Number> = text.parse().ok();
    let cap = number.as_ref().and_then(micro_usd_down).map(MicroUsd);
    cap.map(Some).ok_or(SettingsError::Unreadable { name, expected: "US dollars, for example 1000 or 99.5" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_table_setting_is_reported() {
        let only_table = |name: &str| (name == "TABLE_NAME").then(|| "t".to_owned());
        assert_eq!(TableSettings::read(only_table), Err(SettingsError::Missing("STACK_NAME")));
        assert_eq!(TableSettings::read(|_| Some(String::new())), Err(SettingsError::Missing("TABLE_NAME")));
        let text = |name: &str| (name != FACT_DAYS).then(|| name.to_lowercase());
        let settings = TableSettings::read(text).unwrap();
        assert_eq!((settings.stack_name.as_str(), settings.fact_days), ("stack_name", None));
    }

    #[test]
    fn days_are_read_and_missing_days_mean_no_limit() {
        let read = |value: &str| days(|_| Some(value.to_owned()), "TUNING_DAYS");
        assert_eq!((read(""), read("1")), (Ok(None), Ok(Some(Millis::from_seconds(86_400)))));
        for wrong in ["0", "10000", "a week", "-1", "1.5"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn facts_are_kept_for_at_least_a_week() {
        let read = |days: &str| {
            TableSettings::read(|name| Some(if name == FACT_DAYS { days } else { "x" }.to_owned()))
        };
        for (days, expected) in [("7", Some(7)), ("3650", Some(3_650)), ("", None)] {
            assert_eq!(read(days).unwrap().fact_days, expected);
        }
        for days in ["6", "3651", "-1", "30.5", "a month"] {
            let error = read(days).unwrap_err().to_string();
            let expected =
                "invalid environment variable FACT_DAYS: expected a whole number of days from 7 to 3650";
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn a_missing_or_empty_setting_is_reported() {
        assert_eq!(setting(|_| None, "TABLE_NAME"), Err(SettingsError::Missing("TABLE_NAME")));
        assert_eq!(setting(|_| Some(String::new()), "TABLE_NAME"), Err(SettingsError::Missing("TABLE_NAME")));
        assert_eq!(setting(|name| Some(name.to_lowercase()), "TABLE_NAME"), Ok("table_name".to_owned()));
    }

    #[test]
    fn a_flag_is_true_or_false() {
        let read = |text: Option<&str>| flag(|_| text.map(str::to_owned), "REQUIRE_VPC");
        assert_eq!((read(None), read(Some("")), read(Some("false"))), (Ok(false), Ok(false), Ok(false)));
        assert_eq!(read(Some("true")), Ok(true));
        let error = read(Some("yes")).unwrap_err().to_string();
        assert_eq!(error, "invalid environment variable REQUIRE_VPC: expected true or false");
    }

    #[test]
    fn an_invalid_monthly_cap_is_rejected() {
        let read = |cap: Option<&str>| monthly_cap(|_| cap.map(str::to_owned));
        assert_eq!((read(None), read(Some(""))), (Ok(None), Ok(None)));
        assert_eq!(read(Some("99.5")), Ok(Some(MicroUsd(99_500_000))));
        assert_eq!(read(Some("0")), Ok(Some(MicroUsd(0))));
        for text in ["-1", "a lot", "1 000", "$5", "NaN", "1e30"] {
            let error = read(Some(text)).unwrap_err().to_string();
            assert_eq!(
                error,
                "invalid environment variable MONTHLY_CAP_USD: expected US dollars, for example 1000 or 99.5"
            );
        }
    }
}
