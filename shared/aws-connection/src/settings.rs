//! What a function is told by its environment, one setting at a time.
//!
//! A function with a setting that is missing or cannot be read does not start: a cap that is not understood must not be
//! taken for none.

use serde_json::Number;
use thiserror::Error;
use tuning::money::MicroUsd;
use wire::request::micro_usd_down;

/// The stack's cap of a month.
const MONTHLY_CAP: &str = "MONTHLY_CAP_USD";

/// What a function's environment lacks: it does not start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// It is missing or empty.
    #[error("the environment variable {0} is missing or empty")]
    Missing(&'static str),
    /// It is something else than it must be.
    #[error("the environment variable {name} must be {expected}")]
    Unreadable {
        /// Its name.
        name: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

/// The setting `name`, which must not be empty; `variable` gives the value of an environment variable.
pub fn setting(
    variable: impl Fn(&str) -> Option<String>,
    name: &'static str,
) -> Result<String, SettingsError> {
    variable(name).filter(|text| !text.is_empty()).ok_or(SettingsError::Missing(name))
}

/// The setting `name`, `true` or `false`; missing or empty = `false`.
pub fn flag(variable: impl Fn(&str) -> Option<String>, name: &'static str) -> Result<bool, SettingsError> {
    match variable(name).unwrap_or_default().as_str() {
        "" | "false" => Ok(false),
        "true" => Ok(true),
        _ => Err(SettingsError::Unreadable { name, expected: "true or false" }),
    }
}

/// `MONTHLY_CAP_USD`, such as `1000` or `99.5`; missing or empty = there is none.
pub fn monthly_cap(variable: impl Fn(&str) -> Option<String>) -> Result<Option<MicroUsd>, SettingsError> {
    let Some(text) = variable(MONTHLY_CAP).filter(|text| !text.is_empty()) else { return Ok(None) };
    let number: Option<Number> = text.parse().ok();
    match number.as_ref().and_then(micro_usd_down) {
        Some(cap) => Ok(Some(MicroUsd(cap))),
        None => {
            Err(SettingsError::Unreadable { name: MONTHLY_CAP, expected: "dollars, such as 1000 or 99.5" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_or_empty_setting_is_named() {
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
        assert_eq!(error, "the environment variable REQUIRE_VPC must be true or false");
    }

    #[test]
    fn a_cap_is_dollars_and_what_is_none_is_refused_by_its_name() {
        let read = |cap: Option<&str>| monthly_cap(|_| cap.map(str::to_owned));
        assert_eq!((read(None), read(Some(""))), (Ok(None), Ok(None)));
        assert_eq!(read(Some("99.5")), Ok(Some(MicroUsd(99_500_000))));
        assert_eq!(read(Some("0")), Ok(Some(MicroUsd(0))));
        for text in ["-1", "a lot", "1 000", "$5", "NaN", "1e30"] {
            let error = read(Some(text)).unwrap_err().to_string();
            assert_eq!(
                error,
                "the environment variable MONTHLY_CAP_USD must be dollars, such as 1000 or 99.5"
            );
        }
    }
}
