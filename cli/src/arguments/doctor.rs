//! The options of `hyperband doctor`.

#![expect(clippy::doc_markdown, reason = "clap prints these docs as help, with the backticks")]

use std::time::Duration;

use clap::{Args, ValueHint};

use super::{INTERVAL_DEFAULT, Output, RemotePlace, parse_interval};

/// Maximum of `--max-cost`, in micro-dollars.
const MAX_MICRO_USD: u64 = 500_000;

/// `doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) place: RemotePlace,
    /// Execution role of the training jobs; one of the stack's ExecutionRoleArns
    #[arg(long, value_name = "ARN")]
    pub(crate) role: String,
    /// Training image; any image works, even if its jobs fail
    #[arg(long, value_name = "URI")]
    pub(crate) image: String,
    /// S3 location for model output
    #[arg(long, value_name = "S3_URI", value_hint = ValueHint::Url)]
    pub(crate) s3_output: String,
    /// Instance type of the training jobs
    #[arg(long, value_name = "TYPE", default_value = "ml.m5.large")]
    pub(crate) instance_type: String,
    /// Hyperparameter that the training program requires; repeatable
    #[arg(long = "hyperparameter", value_name = "NAME=VALUE", value_parser = parse_pair)]
    pub(crate) hyperparameters: Vec<(String, String)>,
    /// Subnet of the training jobs, if the stack requires a VPC (RequireVpc); repeatable
    #[arg(long = "subnet", value_name = "ID", requires = "security_groups")]
    pub(crate) subnets: Vec<String>,
    /// Security group of the training jobs, with --subnet; repeatable
    #[arg(long = "security-group", value_name = "ID", requires = "subnets")]
    pub(crate) security_groups: Vec<String>,
    /// Use spot instances
    #[arg(long)]
    pub(crate) spot: bool,
    /// Cost cap of the examination, in dollars; at most 0.5
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
    fn a_hyperparameter_needs_a_name() {
        assert_eq!(parse_pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(parse_pair("a="), Ok(("a".to_owned(), String::new())));
        assert!(parse_pair("=b").is_err() && parse_pair("a").is_err());
    }
}
