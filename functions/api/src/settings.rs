//! The settings of the api function: the stack's table, and the limits that the stack's owner set.
//!
//! All are read at start-up. A function with an invalid limit does not start.

use http_api::{Access, Principals};
use lambda::settings::{SettingsError, TableSettings, cap, flag, monthly_cap, setting};
use tuning::definition::Allowances;
use tuning::unit::money::MicroUsd;
use use_cases::describe::Place;
use use_cases::prices::OwnerPrices;
use use_cases::submit::{AllowList, DefaultTags, Guardrails, RequestPrices};

use crate::calls::Calls;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `TABLE_NAME` and `STACK_NAME`.
    pub(crate) table: TableSettings,
    /// `CALLS_FROM`, `API_SECRET`.
    pub(crate) calls: Calls,
    /// The account and Region, from `ACCOUNT_ARN`.
    pub(crate) place: Place,
    /// `MONTHLY_CAP_USD`; missing or empty = no cap.
    pub(crate) monthly_cap: Option<MicroUsd>,
    /// `REQUIRE_COST_CAP`, `REQUIRE_VPC` (true or false), `MAX_TUNING_COST_USD` (empty = no maximum),
    /// `PRICES_IN_REQUESTS` (empty = not below the list), `ALLOWED_INSTANCE_TYPES`, `ALLOWED_IMAGES`,
    /// `ALLOWED_ROLE_ARNS`, `ALLOWED_SUBNETS`, `ALLOWED_SECURITY_GROUPS`, `REQUIRED_TAGS` (separated by commas),
    /// `JOB_TAGS` (`key=value`, separated by commas), `STARTUP_ALLOWANCE_SECONDS`, `UPLOAD_ALLOWANCE_SECONDS` (empty = 0).
    pub(crate) guardrails: Guardrails,
    /// `ALLOWED_PRINCIPALS`, `READ_ONLY_PRINCIPALS`, `OWNER_PRINCIPALS` (separated by commas), `OWN_TUNINGS_ONLY`. Direct
    /// calls have no principal, so the lists do not apply to them.
    pub(crate) access: Access,
    /// `INSTANCE_PRICES`, `PRICE_FACTOR`.
    pub(crate) owner_prices: OwnerPrices,
}

impl Settings {
    /// Reads the settings; `variable` gives the value of an environment variable.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let text = |name: &str| variable(name).unwrap_or_default();
        let list = |name: &str| AllowList::read(&text(name));
        let principals = |name: &'static str| {
            let expected = "ARNs of roles or users separated by commas, with a part of the name before a *, such as \
                            arn:aws:iam::111122223333:role/team-*";
            Principals::parse(&text(name)).ok_or(SettingsError::Unreadable { name, expected })
        };
        let calls = Calls::read(&variable)?;
        let own_tunings_only = flag(&variable, "OWN_TUNINGS_ONLY")?;
        let access = match calls {
            Calls::Invoke => Access::of_direct_calls(own_tunings_only),
            Calls::ApiGateway(_) => Access {
                users: principals("ALLOWED_PRINCIPALS")?,
                readers: principals("READ_ONLY_PRINCIPALS")?,
                owners: principals("OWNER_PRINCIPALS")?,
                own_tunings_only,
            },
        };
        Ok(Self {
            table: TableSettings::read(&variable)?,
            calls,
            place: Place::of_arn(&setting(&variable, "ACCOUNT_ARN")?),
            monthly_cap: monthly_cap(&variable)?,
            guardrails: Guardrails {
                require_cost_cap: flag(&variable, "REQUIRE_COST_CAP")?,
                instance_types: list("ALLOWED_INSTANCE_TYPES"),
                images: list("ALLOWED_IMAGES"),
                role_arns: list("ALLOWED_ROLE_ARNS"),
                require_vpc: flag(&variable, "REQUIRE_VPC")?,
                subnets: list("ALLOWED_SUBNETS"),
                security_groups: list("ALLOWED_SECURITY_GROUPS"),
                job_tags: job_tags(&text("JOB_TAGS"))?,
                required_tags: keys(&text("REQUIRED_TAGS")),
                max_tuning_cost: cap(&variable, "MAX_TUNING_COST_USD")?,
                request_prices: request_prices(&text("PRICES_IN_REQUESTS"))?,
                least_allowances: Allowances {
                    startup_seconds: seconds(&variable, "STARTUP_ALLOWANCE_SECONDS")?,
                    upload_seconds: seconds(&variable, "UPLOAD_ALLOWANCE_SECONDS")?,
                },
            },
            access,
            owner_prices: OwnerPrices::read(&text("INSTANCE_PRICES"), &text("PRICE_FACTOR")).ok_or(
                SettingsError::Unreadable {
                    name: "INSTANCE_PRICES or PRICE_FACTOR",
                    expected: "prices in USD such as ml.m5.xlarge=0.23,volume=0.14, and a factor such as 0.72",
                },
            )?,
        })
    }
}

fn job_tags(text: &str) -> Result<DefaultTags, SettingsError> {
    let expected =
        "tags such as team=ml,stage=prod, whose keys are unique and begin with neither aws: nor hyperband:";
    DefaultTags::parse(text).ok_or(SettingsError::Unreadable { name: "JOB_TAGS", expected })
}

/// Reads a number of seconds, at most a day. A missing or empty variable means 0.
fn seconds(variable: impl Fn(&str) -> Option<String>, name: &'static str) -> Result<u64, SettingsError> {
    let Some(text) = variable(name).filter(|text| !text.is_empty()) else { return Ok(0) };
    let seconds: Option<u64> = text.parse().ok().filter(|seconds| *seconds <= 86_400);
    seconds.ok_or(SettingsError::Unreadable { name, expected: "a number of seconds from 0 to 86400" })
}

fn keys(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned).collect()
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
        let stack = [
            ("TABLE_NAME", "t"),
            ("STACK_NAME", "s"),
            ("ACCOUNT_ARN", "arn"),
            ("CALLS_FROM", "ApiGateway"),
            ("API_SECRET", "0123456789abcdefABCDEF"),
        ];
        let variables: Vec<(&str, &str)> = given.iter().chain(&stack).copied().collect();
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
        for (name, value) in [
            ("MONTHLY_CAP_USD", "a lot"),
            ("MAX_TUNING_COST_USD", "-1"),
            ("PRICES_IN_REQUESTS", "true"),
            ("OWN_TUNINGS_ONLY", "yes"),
            ("OWNER_PRINCIPALS", "arn:aws:iam::111122223333:role/teams/*"),
            ("INSTANCE_PRICES", "ml.m5.large"),
            ("PRICE_FACTOR", "72 %"),
            ("JOB_TAGS", "team"),
            ("UPLOAD_ALLOWANCE_SECONDS", "ten minutes"),
        ] {
            assert!(read(&[(name, value)]).is_err(), "{name}");
        }
    }

    #[test]
    fn the_lists_of_principals_do_not_apply_to_direct_calls() {
        let lists = [("CALLS_FROM", "Invoke"), ("OWNER_PRINCIPALS", "*"), ("READ_ONLY_PRINCIPALS", "*")];
        let settings = read(&lists).unwrap();
        assert_eq!((settings.calls, settings.access), (Calls::Invoke, Access::of_direct_calls(false)));
        let own_only = read(&[("CALLS_FROM", "Invoke"), ("OWN_TUNINGS_ONLY", "true")]).unwrap();
        assert_eq!(own_only.access, Access::of_direct_calls(true));
    }

    #[test]
    fn limits_are_read() {
        let given = [
            ("REQUIRE_COST_CAP", "true"),
            ("ALLOWED_INSTANCE_TYPES", "ml.m5.*"),
            ("MAX_TUNING_COST_USD", "99.5"),
            ("PRICES_IN_REQUESTS", "Refused"),
            ("OWNER_PRINCIPALS", "arn:aws:iam::111122223333:role/platform"),
            ("INSTANCE_PRICES", "ml.m5.large=0.1"),
            ("ALLOWED_SUBNETS", "subnet-1,subnet-2"),
            ("JOB_TAGS", "team=ml"),
            ("REQUIRED_TAGS", "team, owner,"),
            ("STARTUP_ALLOWANCE_SECONDS", "600"),
        ];
        let Settings { guardrails, access, owner_prices, .. } = read(&given).unwrap();
        assert!(access.owners.has("arn:aws:sts::111122223333:assumed-role/platform/olga"));
        assert_eq!(Some(owner_prices), OwnerPrices::read("ml.m5.large=0.1", ""));
        assert!(guardrails.require_cost_cap && !guardrails.require_vpc);
        assert_eq!(guardrails.max_tuning_cost, Some(MicroUsd(99_500_000)));
        assert_eq!(guardrails.request_prices, RequestPrices::Refused);
        assert!(!guardrails.instance_types.allows("ml.p4d.24xlarge"));
        assert!(guardrails.subnets.allows("subnet-2") && !guardrails.subnets.allows("subnet-3"));
        assert!(guardrails.security_groups.allows("any"));
        assert_eq!(Some(guardrails.job_tags), DefaultTags::parse("team=ml"));
        assert_eq!(guardrails.required_tags, ["team", "owner"]);
        let least = Allowances { startup_seconds: 600, upload_seconds: 0 };
        assert_eq!(guardrails.least_allowances, least);
    }
}
