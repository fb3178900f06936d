//! The settings of the actuator and sweeper functions.
//!
//! All are read at start-up. A function with an invalid setting does not start.

use lambda::settings::{SettingsError, TableSettings, monthly_cap, setting};
use tuning::unit::money::MicroUsd;
use use_cases::describe::Place;

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `TABLE_NAME` and `STACK_NAME`.
    pub table: TableSettings,
    /// `EVENT_BUS_NAME`.
    pub event_bus_name: String,
    /// The account and Region, from `ACCOUNT_ARN`.
    pub place: Place,
    /// `MONTHLY_CAP_USD`, such as `1000` or `99.5`; missing or empty = no cap.
    pub monthly_cap: Option<MicroUsd>,
}

impl Settings {
    /// Reads the settings; `variable` returns the value of an environment variable.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        Ok(Self {
            table: TableSettings::read(&variable)?,
            event_bus_name: setting(&variable, "EVENT_BUS_NAME")?,
            place: Place::of_arn(&setting(&variable, "ACCOUNT_ARN")?),
            monthly_cap: monthly_cap(&variable)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_bus_is_reported() {
        let no_bus = |name: &str| ["TABLE_NAME", "STACK_NAME"].contains(&name).then(|| name.to_lowercase());
        assert_eq!(Settings::read(no_bus), Err(SettingsError::Missing("EVENT_BUS_NAME")));
    }
}
