//! What a function that performs is told by its environment.
//!
//! Checked as a whole before anything is done: a function with a setting that cannot be read does not start.

use aws_connection::{SettingsError, setting};
use serde_json::Number;
use tuning::money::MicroUsd;
use wire::request::micro_usd_down;

const MONTHLY_CAP: &str = "MONTHLY_CAP_USD";

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `TABLE_NAME` and `STACK_NAME`.
    pub table: dynamodb::aws::Settings,
    /// `EVENT_BUS_NAME`.
    pub event_bus_name: String,
    /// `MONTHLY_CAP_USD`, such as `1000` or `99.5`; missing or empty = there is none.
    pub monthly_cap: Option<MicroUsd>,
}

impl Settings {
    /// Reads the settings; `variable` gives the value of an environment variable.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        Ok(Self {
            table: dynamodb::aws::Settings::read(&variable)?,
            event_bus_name: setting(&variable, "EVENT_BUS_NAME")?,
            monthly_cap: monthly_cap(&variable)?,
        })
    }
}

fn monthly_cap(variable: impl Fn(&str) -> Option<String>) -> Result<Option<MicroUsd>, SettingsError> {
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

    fn read(cap: Option<&str>) -> Result<Settings, SettingsError> {
        Settings::read(|name| match name {
            MONTHLY_CAP => cap.map(str::to_owned),
            _ => Some(name.to_lowercase()),
        })
    }

    #[test]
    fn a_cap_is_dollars_and_what_is_none_is_refused_by_its_name() {
        assert_eq!(read(None).unwrap().monthly_cap, None);
        assert_eq!(read(Some("")).unwrap().monthly_cap, None);
        assert_eq!(read(Some("99.5")).unwrap().monthly_cap, Some(MicroUsd(99_500_000)));
        assert_eq!(read(Some("0")).unwrap().monthly_cap, Some(MicroUsd(0)));
        for text in ["-1", "a lot", "1 000", "$5", "NaN", "1e30"] {
            let error = read(Some(text)).unwrap_err().to_string();
            assert_eq!(
                error,
                "the environment variable MONTHLY_CAP_USD must be dollars, such as 1000 or 99.5"
            );
        }
    }

    #[test]
    fn a_missing_bus_is_named() {
        let no_bus = |name: &str| (name != "EVENT_BUS_NAME").then(|| name.to_lowercase());
        assert_eq!(Settings::read(no_bus), Err(SettingsError::Missing("EVENT_BUS_NAME")));
    }
}
