//! The settings of the api function: the stack's table, and the limits that the stack's owner set.
//!
//! All are read at start-up. A function with an invalid limit does not start.

use lambda::settings::{SettingsError, TableSettings, cap, flag, monthly_cap, setting};
use tuning::money::MicroUsd;
use use_cases::describe::Place;
use use_cases::submit::{AllowList, Guardrails, RequestPrices};

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `TABLE_NAME` and `STACK_NAME`.
    pub(crate) table: TableSettings,
    /// The account and Region, from `STACK_ARN`.
    pub(crate) place: Place,
    /// `MONTHLY_CAP_USD`; missing or empty = no cap.
    pub(crate) monthly_cap: Option<MicroUsd>,
    /// `REQUIRE_COST_CAP`, `REQUIRE_VPC` (true or false), `MAX_TUNING_COST_USD` (empty = no maximum),
    /// `PRICES_IN_REQUESTS` (empty = not below the list), `ALLOWED_INSTANCE_TYPES`, `ALLOWED_IMAGES`,
    /// `ALLOWED_ROLE_ARNS` (separated by commas).
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
                max_tuning_cost: cap(&variable, "MAX_TUNING_COST_USD")?,
                request_prices: request_prices(&variable("PRICES_IN_REQUESTS").unwrap_or_default())?,
            },
        })
    }
}

fn request_prices(text: &str) -> Result<RequestPrices, SettingsError> {
    match text {
        "Any" => Ok(RequestPrices::Any),
        "" | "NotBelowList" => Ok(RequestPrices::NotBelowList),
        "Refused" => Ok(RequestPrices::Refused),
        _ => Err(SettingsError::Unreadable {
            name: "PRICES_IN_REQUESTS",
            expected: "NotBelowList, Refused or Any",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let table = [("TABLE_NAME", "t"), ("STACK_NAME", "s"), ("STACK_ARN", "arn")];
        let variables: Vec<(&str, &str)> = given.iter().chain(&table).copied().collect();
        Settings::read(|name| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_stack_without_limits_refuses_only_prices_below_the_list() {
        let settings = read(&[("REQUIRE_VPC", "false"), ("ALLOWED_IMAGES", "")]).unwrap();
        let limits = Guardrails { request_prices: RequestPrices::NotBelowList, ..Guardrails::default() };
        assert_eq!((settings.guardrails, settings.monthly_cap), (limits, None));
    }

    #[test]
    fn an_invalid_limit_prevents_the_start() {
        let error = read(&[("REQUIRE_COST_CAP", "True")]).unwrap_err().to_string();
        assert_eq!(error, "invalid environment variable REQUIRE_COST_CAP: expected true or false");
        for (name, value) in
            [("MONTHLY_CAP_USD", "a lot"), ("MAX_TUNING_COST_USD", "-1"), ("PRICES_IN_REQUESTS", "true")]
        {
            assert!(read(&[(name, value)]).is_err(), "{name}");
        }
    }

    #[test]
    fn limits_are_read() {
        let given = [
            ("REQUIRE_COST_CAP", "true"),
            ("ALLOWED_INSTANCE_TYPES", "ml.m5.*"),
            ("MAX_TUNING_COST_USD", "99.5"),
            ("PRICES_IN_REQUESTS", "Refused"),
        ];
        let guardrails = read(&given).unwrap().guardrails;
        assert!(guardrails.require_cost_cap && !guardrails.require_vpc);
        assert_eq!(guardrails.max_tuning_cost, Some(MicroUsd(99_500_000)));
        assert_eq!(guardrails.request_prices, RequestPrices::Refused);
        assert!(!guardrails.instance_types.allows("ml.p4d.24xlarge"));
    }
}
