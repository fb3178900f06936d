//! The options of `hyperband doctor`.

#![expect(clippy::doc_markdown, reason = "clap prints these docs as help, with the backticks")]

use std::time::Duration;

use clap::{ArgGroup, Args, ValueHint};

use super::{INTERVAL_DEFAULT, Output, RemotePlace, parse_interval};

/// Maximum of `--max-cost`, in micro-dollars.
const MAX_MICRO_USD: u64 = 500_000;

/// Heading of the options that need `--before`.
const BEFORE: &str = "Options with --before";
/// The stack of infra/samconfig.toml.
const STACK_NAME: &str = "hyperband-dev";
/// The options that need a deployed stack.
const STACK_OPTIONS: [&str; 10] = [
    "endpoint",
    "image",
    "input",
    "s3_output",
    "hyperparameters",
    "security_groups",
    "max_cost",
    "name",
    "yes",
    "interval",
];

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("subnet_use").args(["security_groups", "before"]).multiple(true)))]
pub(crate) struct Doctor {
    /// Check the account before a deployment; needs no stack, starts nothing and costs nothing
    #[arg(long, conflicts_with_all = STACK_OPTIONS)]
    pub(crate) before: bool,
    #[command(flatten)]
    pub(crate) place: RemotePlace,
    /// Execution role of the training jobs; one of the stack's ExecutionRoleArns
    #[arg(long, value_name = "ARN", required_unless_present = "before")]
    pub(crate) role: Option<String>,
    /// Training image; any image works, even if its jobs fail
    #[arg(long, value_name = "URI", required_unless_present = "before")]
    pub(crate) image: Option<String>,
    /// S3 location for model output
    #[arg(long, value_name = "S3_URI", value_hint = ValueHint::Url, required_unless_present = "before")]
    pub(crate) s3_output: Option<String>,
    /// S3 location of data that the jobs download (channel `train`), for the checks bill-past-limit and limit-start
    #[arg(long, value_name = "S3_URI", value_hint = ValueHint::Url)]
    pub(crate) input: Option<String>,
    /// Instance type of the training jobs; repeatable with --before
    #[arg(long = "instance-type", value_name = "TYPE", default_value = "ml.m5.large")]
    pub(crate) instance_types: Vec<String>,
    /// Hyperparameter that the training program requires; repeatable
    #[arg(long = "hyperparameter", value_name = "NAME=VALUE", value_parser = parse_pair)]
    pub(crate) hyperparameters: Vec<(String, String)>,
    /// Subnet of the training jobs, if the stack requires a VPC (RequireVpc); repeatable
    #[arg(long = "subnet", value_name = "ID", requires = "subnet_use", conflicts_with = "vpc")]
    pub(crate) subnets: Vec<String>,
    /// Security group of the training jobs, with --subnet; repeatable
    #[arg(long = "security-group", value_name = "ID", requires = "subnets")]
    pub(crate) security_groups: Vec<String>,
    /// Region of the stack [default: AWS_REGION or the profile]
    #[arg(long, requires = "before", value_parser = parse_region, help_heading = BEFORE)]
    pub(crate) region: Option<String>,
    /// Name of the stack [default: hyperband-dev]
    #[arg(long, value_name = "NAME", requires = "before", value_parser = parse_stack_name, help_heading = BEFORE)]
    pub(crate) stack_name: Option<String>,
    /// VPC of the training jobs, if they run in a VPC and --subnet is not given
    #[arg(long, value_name = "ID", requires = "before", help_heading = BEFORE)]
    pub(crate) vpc: Option<String>,
    /// Role or user that will deploy [default: the caller]
    #[arg(long, value_name = "ARN", requires = "before", value_parser = parse_principal, help_heading = BEFORE)]
    pub(crate) principal: Option<String>,
    /// Use spot instances
    #[arg(long)]
    pub(crate) spot: bool,
    /// Cost cap of the tuning, in dollars; at most 0.5
    #[arg(long, value_name = "USD", default_value = "0.5", value_parser = parse_dollars)]
    pub(crate) max_cost: Dollars,
    /// Name of the tuning [default: doctor- and 6 characters]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Skip the confirmation; required outside a terminal
    #[arg(long)]
    pub(crate) yes: bool,
    /// Seconds between two updates, at least 0.1
    #[arg(long, value_name = "S", default_value = INTERVAL_DEFAULT, value_parser = parse_interval)]
    pub(crate) interval: Duration,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

impl Doctor {
    /// Returns the first option that needs `--before`, if `--before` is missing. clap does not require an option that
    /// conflicts with a given one.
    pub(crate) fn misplaced(&self) -> Option<&'static str> {
        let options = [
            ("--region", self.region.is_some()),
            ("--stack-name", self.stack_name.is_some()),
            ("--vpc", self.vpc.is_some()),
            ("--principal", self.principal.is_some()),
        ];
        options.into_iter().find(|(_, given)| *given && !self.before).map(|(option, _)| option)
    }

    pub(crate) fn stack_name(&self) -> &str {
        self.stack_name.as_deref().unwrap_or(STACK_NAME)
    }

    /// Returns the instance type of the two training jobs.
    pub(crate) fn instance_type(&self) -> Result<&str, String> {
        match self.instance_types.as_slice() {
            [one] => Ok(one),
            types => Err(format!("{} values of --instance-type: expected one without --before", types.len())),
        }
    }
}

/// An amount of money.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dollars {
    /// Dollars as typed. The request contains this number unchanged.
    pub(crate) typed: serde_json::Number,
    /// Micro-dollars, rounded down.
    pub(crate) micro: u64,
}

fn parse_dollars(text: &str) -> Result<Dollars, String> {
    let expected = || "expected dollars above 0 and up to 0.5".to_owned();
    let typed: serde_json::Number = text.parse().map_err(|_| expected())?;
    let micro = wire::request::micro_usd_down(&typed).ok_or_else(expected)?;
    if (1..=MAX_MICRO_USD).contains(&micro) { Ok(Dollars { typed, micro }) } else { Err(expected()) }
}

fn parse_region(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    // The Region becomes a part of host names.
    let is_region =
        text.split('-').count() >= 3 && text.bytes().all(plain) && !text.split('-').any(str::is_empty);
    if is_region { Ok(text.to_owned()) } else { Err("expected a Region, for example eu-west-1".to_owned()) }
}

fn parse_principal(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    let is_principal = match parts.as_slice() {
        ["arn", partition, "iam", "", account, resource] => {
            let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
            let names = ["role/", "user/"].into_iter().find_map(|kind| resource.strip_prefix(kind));
            partition.starts_with("aws") && is_account && names.is_some_and(|name| !name.is_empty())
        }
        _ => false,
    };
    if is_principal {
        Ok(text.to_owned())
    } else {
        Err("expected a role or a user, for example arn:aws:iam::111122223333:role/deployer".to_owned())
    }
}

pub(super) fn parse_stack_name(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_name = text.len() <= 128 && text.starts_with(|first: char| first.is_ascii_alphabetic());
    if is_name && text.bytes().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("expected a letter, then letters, digits and hyphens, for example hyperband-dev".to_owned())
    }
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE, for example num_round=1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_cost_is_above_0_and_at_most_half_a_dollar() {
        for (text, micro) in [("0.5", 500_000), ("0.05", 50_000), ("0.000001", 1), ("5e-1", 500_000)] {
            assert_eq!(parse_dollars(text).unwrap().micro, micro, "{text}");
        }
        for text in ["0", "0.500001", "1", "-0.1", "", "x", "1e9", "NaN", "0.0000001"] {
            assert!(parse_dollars(text).is_err(), "{text}");
        }
    }

    #[test]
    fn regions_stacks_and_principals_have_their_forms() {
        for region in ["eu-west-1", "us-gov-west-1", "cn-north-1"] {
            assert!(parse_region(region).is_ok(), "{region}");
        }
        for region in ["", "eu", "eu-west", "EU-west-1", "eu--1", "eu-west-1.example.com", "eu-west-1/"] {
            assert!(parse_region(region).is_err(), "{region}");
        }
        assert!(parse_stack_name("hyperband-dev").is_ok());
        for stack in ["", "1a", "a_b", "a*"] {
            assert!(parse_stack_name(stack).is_err(), "{stack}");
        }
        for principal in ["arn:aws:iam::111122223333:role/a/b", "arn:aws-cn:iam::111122223333:user/a"] {
            assert!(parse_principal(principal).is_ok(), "{principal}");
        }
        for principal in ["deployer", "arn:aws:sts::111122223333:assumed-role/a/b", "arn:aws:iam::1:role/a"] {
            assert!(parse_principal(principal).is_err(), "{principal}");
        }
    }

    #[test]
    fn a_hyperparameter_needs_a_name() {
        assert_eq!(parse_pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(parse_pair("a="), Ok(("a".to_owned(), String::new())));
        assert!(parse_pair("=b").is_err() && parse_pair("a").is_err());
    }
}
