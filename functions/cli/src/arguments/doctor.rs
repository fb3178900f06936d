//! The options of `hyperband doctor`.

#![expect(clippy::doc_markdown, reason = "these docs are the help, where backticks would be shown")]

use std::time::Duration;

use clap::{Args, ValueHint};

use super::{INTERVAL_DEFAULT, Output, RemotePlace, interval};

/// The most that the doctor may cost, in millionths of a dollar.
const MOST_MICRO_USD: u64 = 500_000;

/// `doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) place: RemotePlace,
    /// Role that the training jobs run with; one of the stack's ExecutionRoleArns
    #[arg(long, value_name = "ARN")]
    pub(crate) role: String,
    /// Training image of the jobs; what they do does not matter, nor whether they fail
    #[arg(long, value_name = "URI")]
    pub(crate) image: String,
    /// Where the jobs would put their models
    #[arg(long, value_name = "S3_URI", value_hint = ValueHint::Url)]
    pub(crate) s3_output: String,
    /// Instance of the jobs
    #[arg(long, value_name = "TYPE", default_value = "ml.m5.large")]
    pub(crate) instance_type: String,
    /// Hyperparameter that the image's program needs; may be given several times
    #[arg(long = "hyperparameter", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) hyperparameters: Vec<(String, String)>,
    /// Subnet that the jobs run in, where the stack asks for a VPC (RequireVpc); may be given several times
    #[arg(long = "subnet", value_name = "ID", requires = "security_groups")]
    pub(crate) subnets: Vec<String>,
    /// Security group of the jobs, with --subnet; may be given several times
    #[arg(long = "security-group", value_name = "ID", requires = "subnets")]
    pub(crate) security_groups: Vec<String>,
    /// Take spot instances
    #[arg(long)]
    pub(crate) spot: bool,
    /// Hard cap of all that is started, in dollars; 0.5 at most
    #[arg(long, value_name = "USD", default_value = "0.5", value_parser = dollars)]
    pub(crate) max_cost: Dollars,
    /// Name of the tuning [default: doctor- and six characters]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Do not ask; needed where there is no terminal to ask on
    #[arg(long)]
    pub(crate) yes: bool,
    /// Least seconds between two looks
    #[arg(long, value_name = "S", default_value = INTERVAL_DEFAULT, value_parser = interval)]
    pub(crate) interval: Duration,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

/// An amount, as it was typed: so it goes into the request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dollars {
    pub(crate) typed: serde_json::Number,
    pub(crate) micro: u64,
}

fn dollars(text: &str) -> Result<Dollars, String> {
    let wanted = || "dollars above 0 and up to 0.5 are wanted".to_owned();
    let typed: serde_json::Number = text.parse().map_err(|_| wanted())?;
    let micro = wire::request::micro_usd_down(&typed).ok_or_else(wanted)?;
    if (1..=MOST_MICRO_USD).contains(&micro) { Ok(Dollars { typed, micro }) } else { Err(wanted()) }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("NAME=VALUE is wanted, such as num_round=1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_half_a_dollar_is_taken() {
        for (text, micro) in [("0.5", 500_000), ("0.05", 50_000), ("0.000001", 1), ("5e-1", 500_000)] {
            assert_eq!(dollars(text).unwrap().micro, micro, "{text}");
        }
        for text in ["0", "0.500001", "1", "-0.1", "", "x", "1e9", "NaN", "0.0000001"] {
            assert!(dollars(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_hyperparameter_has_a_name() {
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(pair("a="), Ok(("a".to_owned(), String::new())));
        assert!(pair("=b").is_err() && pair("a").is_err());
    }
}
