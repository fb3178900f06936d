//! The options of `hyperband init`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::init::Range;

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Hyperparameters to tune, see below
    #[arg(value_name = "RANGE", value_parser = str::parse::<Range>)]
    pub(crate) ranges: Vec<Range>,
    /// File to write, or `-` for standard output
    #[arg(short = 'o', long, value_name = "FILE", default_value = "request.json", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Overwrite the file
    #[arg(long)]
    pub(crate) force: bool,
    /// Log of a training run, from which the command proposes the metric, patterns and number of epochs
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) log: Option<PathBuf>,
    /// Name of the metric to optimize
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Option<String>,
    /// Pattern whose group captures the value of the metric in a log line
    #[arg(long, value_name = "REGEX")]
    pub(crate) metric_pattern: Option<String>,
    /// Direction of the metric; the default follows from names such as loss and accuracy
    #[arg(long, value_enum)]
    pub(crate) goal: Option<Goal>,
    /// Pattern whose group captures the epoch in a line of the metric; without a pattern, each line counts as one epoch
    #[arg(long, value_name = "REGEX")]
    pub(crate) epoch_pattern: Option<String>,
    /// Epochs of a complete training run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) max_resource: Option<u32>,
    /// Hyperparameter that sets the program's number of epochs
    #[arg(long, value_name = "NAME")]
    pub(crate) resource_hyperparameter: Option<String>,
    /// Total number of training jobs; the default is 30, or the number of configurations if it is lower
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) jobs: Option<u32>,
    /// Number of parallel training jobs; the default is 4
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) parallel: Option<u32>,
    /// Name of the tuning; the default is the name of the current folder
    #[arg(long)]
    pub(crate) name: Option<String>,
}

/// The direction of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Goal {
    /// Greater is better
    Maximize,
    /// Smaller is better
    Minimize,
}
