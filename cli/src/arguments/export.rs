//! The options of `hyperband export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::Source;

pub(super) const EXAMPLES: &str = "\
Examples:
  hyperband export xgb-1 > trials.csv
  hyperband export xgb-1 --format jsonl -o trials.jsonl";

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Name of the tuning
    pub(crate) name: String,
    /// Format of the rows; each trial has one row
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format: Format,
    /// File to write [default: standard output]
    #[arg(short = 'o', long = "file", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: Source,
}

/// The format of exported rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// A table with a header and a column for each hyperparameter
    #[default]
    Csv,
    /// A JSON object on each line, with the values of each epoch
    Jsonl,
}
