//! The options of `hyperband simulate`.

use std::ops::Range;
use std::path::PathBuf;

use clap::{Args, ValueHint};

#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// JSON file with a CreateHyperParameterTuningJob request, or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) request: PathBuf,
    /// Recorded learning curves: a .jsonl or .jsonl.gz file with a .space.json file beside it
    #[arg(long, value_name = "TABLE", value_hint = ValueHint::FilePath)]
    pub(crate) curves: PathBuf,
    /// Seeds A to B-1, one simulated tuning each
    #[arg(long, value_name = "A..B", default_value = "0..1", value_parser = parse_seeds)]
    pub(crate) seeds: Range<u64>,
    /// Number of parallel training jobs
    #[arg(long, value_name = "W", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) workers: u32,
    /// Seconds from the start of a training job to its first epoch
    #[arg(long, value_name = "S", default_value = "60", value_parser = parse_amount)]
    pub(crate) startup_seconds: f64,
    /// Mean seconds of a training job with all epochs
    #[arg(long, value_name = "M", default_value = "180", value_parser = parse_positive)]
    pub(crate) mean_job_seconds: f64,
    /// End each tuning after this virtual time
    #[arg(long, value_name = "T", value_parser = parse_positive)]
    pub(crate) until_seconds: Option<f64>,
    /// Number of configurations, instead of the request's MaxNumberOfTrainingJobs
    #[arg(long, value_name = "N", conflicts_with = "until_seconds", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) trials: Option<u32>,
    /// Spot interruptions per hour of a running training job
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = parse_amount)]
    pub(crate) spot_interruptions: f64,
    /// Period in which no training job gets instances, in virtual seconds
    #[arg(long, value_name = "FROM..TO", value_parser = parse_span)]
    pub(crate) capacity_outage: Option<Range<f64>>,
    /// Noise of each value, as a share of the difference between the best and the median configuration
    #[arg(long, value_name = "F", default_value = "0", value_parser = parse_amount)]
    pub(crate) noise: f64,
    /// Use each recorded configuration for one trial only
    #[arg(long)]
    pub(crate) unique_rows: bool,
    /// Multiply the time of each epoch and start-up by exp(F x standard normal)
    #[arg(long, value_name = "F", default_value = "0", value_parser = parse_amount)]
    pub(crate) time_jitter: f64,
    /// Seconds from the end of a training job to its bill
    #[arg(long, value_name = "S", default_value = "5", value_parser = parse_amount)]
    pub(crate) settle_seconds: f64,
}

fn parse_seeds(text: &str) -> Result<Range<u64>, String> {
    let expected = || "expected two numbers, for example 0..20 for the seeds 0 to 19".to_owned();
    let (from, to) = text.split_once("..").ok_or_else(expected)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| expected());
    let seeds = number(from)?..number(to)?;
    if seeds.is_empty() { Err(expected()) } else { Ok(seeds) }
}

fn parse_amount(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "expected a number of 0 or above, for example 0.2".to_owned())
}

fn parse_positive(text: &str) -> Result<f64, String> {
    let number = parse_amount(text).ok().filter(|number| *number > 0.0);
    number.ok_or_else(|| "expected a number above 0, for example 180".to_owned())
}

fn parse_span(text: &str) -> Result<Range<f64>, String> {
    let expected = || "expected two times in seconds, for example 600..22200".to_owned();
    let (from, to) = text.split_once("..").ok_or_else(expected)?;
    let span = parse_amount(from)?..parse_amount(to)?;
    if span.start < span.end { Ok(span) } else { Err(expected()) }
}
