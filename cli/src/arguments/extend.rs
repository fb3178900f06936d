//! `extend`.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::Args;

use super::processes::{parse_time, parse_usd};
use super::{Output, Source};

pub(super) const EXAMPLES: &str = "\
The new tuning has the request of the ended one, without its initial configurations. It starts from the results of the \
ended one and of the parents of that one, the latest five. On this machine it runs the recorded command line. On a stack \
the command returns after the submission.

Examples:
  hyperband extend xgb-1 --jobs 20
  hyperband extend xgb-1 --jobs 20 --max-cost 5 --name xgb-longer
  hyperband extend xgb-1 --jobs 20 --endpoint https://abc123.execute-api.eu-west-1.amazonaws.com";

#[derive(Debug, Args)]
pub(crate) struct Extend {
    /// Name of the ended tuning
    #[arg(value_name = "NAME")]
    pub(crate) parent: String,
    /// Start at most N training jobs
    #[arg(long, value_name = "N")]
    pub(crate) jobs: NonZeroU32,
    /// Spend at most USD dollars [default: what is left of the cap of the ended tuning]
    #[arg(long, visible_alias = "cost", value_name = "USD", value_parser = parse_usd)]
    pub(crate) max_cost: Option<f64>,
    /// End the new tuning after this time, for example 30m or 8h, at least 2m [default: as in the ended tuning]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) max_time: Option<Duration>,
    /// Name of the new tuning [default: NAME-2, or the next free number]
    #[arg(long, value_name = "NEW")]
    pub(crate) name: Option<String>,
    /// A parent of the ended tuning to leave out, because it no longer exists; repeat it for more
    #[arg(long, value_name = "NAME")]
    pub(crate) without: Vec<String>,
    #[command(flatten)]
    pub(crate) place: Source,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}
