//! The options of `hyperband change`.

#![expect(clippy::doc_markdown, reason = "clap prints these docs as help, with the backticks")]

use clap::builder::RangedU64ValueParser;
use clap::{ArgGroup, Args};
use serde_json::Number;
use tuning::unit::limits::MAX_PARALLEL_JOBS;
use tuning::unit::money::MicroUsd;
use wire::change::LimitsChange;
use wire::request::micro_usd_down;

use super::{Named, Source};

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("limits").required(true).multiple(true).args(["max_cost", "max_parallel", "pause", "resume"])))]
pub(crate) struct Change {
    /// New cost cap of the tuning, in dollars (MaxCostUsd)
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    max_cost: Option<MicroUsd>,
    /// New maximum of parallel training jobs (MaxParallelTrainingJobs)
    #[arg(long, value_name = "N", value_parser = parallel_jobs_parser())]
    max_parallel: Option<u32>,
    /// Start no more training jobs; running jobs continue
    #[arg(long, conflicts_with = "resume")]
    pause: bool,
    /// End the pause
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    pub(crate) tuning: Named<Source>,
}

impl Change {
    /// Returns the requested changes.
    pub(crate) fn limits(&self) -> LimitsChange {
        let paused = (self.pause || self.resume).then_some(self.pause);
        LimitsChange { cap: self.max_cost, max_parallel: self.max_parallel, paused }
    }
}

/// Parses an amount above 0. [`LimitsChange`] checks the maximum.
fn parse_dollars(text: &str) -> Result<MicroUsd, String> {
    let expected = || "expected dollars above 0, for example 12.50".to_owned();
    let typed: Number = text.parse().map_err(|_| expected())?;
    micro_usd_down(&typed).filter(|micro| *micro > 0).map(MicroUsd).ok_or_else(expected)
}

fn parallel_jobs_parser() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=u64::from(MAX_PARALLEL_JOBS))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    fn parsed(options: &[&str]) -> Option<LimitsChange> {
        let line = [&["hyperband", "change", "xgb-1"], options].concat();
        let Command::Change(change) = Arguments::try_parse_from(line).ok()?.command else { panic!("change") };
        Some(change.limits())
    }

    #[test]
    fn only_the_given_limits_change_and_at_least_one_is_required() {
        let all =
            LimitsChange { cap: Some(MicroUsd(12_500_000)), max_parallel: Some(8), paused: Some(false) };
        assert_eq!(parsed(&["--max-cost", "12.5", "--max-parallel", "8", "--resume"]), Some(all));
        let pause = LimitsChange { paused: Some(true), ..LimitsChange::default() };
        assert_eq!(parsed(&["--pause"]), Some(pause));
        for wrong in [
            &[][..],
            &["--pause", "--resume"],
            &["--max-cost", "0"],
            &["--max-cost", "-1"],
            &["--max-cost", "much"],
            &["--max-parallel", "0"],
            &["--max-parallel", "1001"],
        ] {
            assert_eq!(parsed(wrong), None, "{wrong:?}");
        }
    }
}
