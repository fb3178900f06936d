//! The settings of the api function: the stack's table, and the limits that the stack's owner set.
//!
//! All are read at start-up. A function with an invalid limit does not start.

use lambda::settings::{SettingsError, TableSettings, flag, monthly_cap, setting};
use tuning::money::MicroUsd;
use use_cases::describe::Place;
use use_cases::submit::{AllowList, Guardrails};

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `TABLE_NAME` and `STACK_NAME`.
    pub(crate) table: TableSettings,
    /// The account and Region, from `STACK_ARN`.
    pub(crate) place: Place,
    /// `MONTHLY_CAP_USD`; missing or empty = no cap.
    pub(crate) monthly_cap: Option<MicroUsd>,
    /// `REQUIRE_COST_CAP`, `REQUIRE_VPC`, `LISTED_PRICES_ONLY` (true or false), `ALLOWED_INSTANCE_TYPES`,
    /// `ALLOWED_IMAGES`, `ALLOWED_ROLE_ARNS` (separated by commas).
    pub(crate) guardrails: Guardrails,
}

impl Settings {
    /// Reads the settings; `variable` gives the value of an environment variable.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let list = |name: &str| AllowList::read(&variable(name).unwrap_or_default());
        Ok(Self {
            table: TableSettings::read(&variable)?,
            place: Place::of_arn(&setting(&variable, "STACK_ARN")?),
            monthly_cap: monthly_cap(&variable)?,
            guardrails: Guardrails {
                require_cost_cap: flag(&variable, "REQUIRE_COST_CAP")?,
                instance_types: list("ALLOWED_INSTANCE_TYPES"),
                images: list("ALLOWED_IMAGES"),
                role_arns: list("ALLOWED_ROLE_ARNS"),
                require_vpc: flag(&variable, "REQUIRE_VPC")?,
                listed_prices_only: flag(&variable, "LISTED_PRICES_ONLY")?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let table = [("TABLE_NAME", "t"), ("STACK_NAME", "s"), ("STACK_ARN", "arn")];
        let variables: Vec<(&str, &str)> = table.iter().chain(given).copied().collect();
        Settings::read(|name| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_stack_without_limits_allows_everything() {
        let settings = read(&[("REQUIRE_VPC", "false"), ("ALLOWED_IMAGES", "")]).unwrap();
        assert_eq!((settings.guardrails, settings.monthly_cap), (Guardrails::default(), None));
    }

    #[test]
    fn an_invalid_limit_prevents_the_start() {
        let error = read(&[("REQUIRE_COST_CAP", "True")]).unwrap_err().to_string();
        assert_eq!(error, "invalid environment variable REQUIRE_COST_CAP: expected true or false");
        assert!(read(&[("MONTHLY_CAP_USD", "a lot")]).is_err());
    }

    #[test]
    fn limits_are_read() {
        let given = [
            ("REQUIRE_COST_CAP", "true"),
            ("ALLOWED_INSTANCE_TYPES", "ml.m5.*"),
            ("LISTED_PRICES_ONLY", "true"),
        ];
        let guardrails = read(&given).unwrap().guardrails;
        assert!(guardrails.require_cost_cap && guardrails.listed_prices_only && !guardrails.require_vpc);
        assert!(!guardrails.instance_types.allows("ml.p4d.24xlarge"));
    }
}
