//! What a function that performs is told by its environment.
//!
//! Checked as a whole before anything is done: a function with a setting that cannot be read does not start.

use aws_connection::{SettingsError, monthly_cap, setting};
use service::describe::Place;
use tuning::money::MicroUsd;

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `TABLE_NAME` and `STACK_NAME`.
    pub table: dynamodb::aws::Settings,
    /// `EVENT_BUS_NAME`.
    pub event_bus_name: String,
    /// Of `STACK_ARN`.
    pub place: Place,
    /// `MONTHLY_CAP_USD`, such as `1000` or `99.5`; missing or empty = there is none.
    pub monthly_cap: Option<MicroUsd>,
}

impl Settings {
    /// Reads the settings; `variable` gives the value of an environment variable.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        Ok(Self {
            table: dynamodb::aws::Settings::read(&variable)?,
            event_bus_name: setting(&variable, "EVENT_BUS_NAME")?,
            place: Place::of_arn(&setting(&variable, "STACK_ARN")?),
            monthly_cap: monthly_cap(&variable)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_bus_is_named() {
        let no_bus = |name: &str| ["TABLE_NAME", "STACK_NAME"].contains(&name).then(|| name.to_lowercase());
        assert_eq!(Settings::read(no_bus), Err(SettingsError::Missing("EVENT_BUS_NAME")));
    }
}
