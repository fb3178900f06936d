//! The options of `hyperband change`.

#![expect(clippy::doc_markdown, reason = "these docs are the help, where backticks would be shown")]

use clap::builder::RangedU64ValueParser;
use clap::{ArgGroup, Args};
use serde_json::Number;
use tuning::limits::MAX_PARALLEL_JOBS;
use tuning::money::MicroUsd;
use wire::change::LimitsChange;
use wire::request::micro_usd_down;

use super::{Output, Source};

/// `change`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("limits").required(true).multiple(true).args(["max_cost", "max_parallel", "pause", "resume"])))]
pub(crate) struct Change {
    /// Name of the tuning
    pub(crate) name: String,
    /// New hard cap of the whole tuning, in dollars (MaxCostUsd)
    #[arg(long, value_name = "USD", value_parser = dollars)]
    max_cost: Option<MicroUsd>,
    /// New number of training jobs at once (MaxParallelTrainingJobs)
    #[arg(long, value_name = "N", value_parser = jobs())]
    max_parallel: Option<u32>,
    /// Start no further job; those that run go on
    #[arg(long, conflicts_with = "resume")]
    pause: bool,
    /// Go on after a pause
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    pub(crate) place: Source,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

impl Change {
    /// What is to be changed.
    pub(crate) fn limits(&self) -> LimitsChange {
        let paused = (self.pause || self.resume).then_some(self.pause);
        LimitsChange { cap: self.max_cost, max_parallel: self.max_parallel, paused }
    }
}

/// How far it may go is for [`LimitsChange`] to say.
fn dollars(text: &str) -> Result<MicroUsd, String> {
    let wanted = || "dollars above 0 are wanted, such as 12.50".to_owned();
    let typed: Number = text.parse().map_err(|_| wanted())?;
    micro_usd_down(&typed).filter(|micro| *micro > 0).map(MicroUsd).ok_or_else(wanted)
}

fn jobs() -> RangedU64ValueParser<u32> {
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
    fn what_is_given_is_changed_and_something_must_be() {
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
            &["--max-parallel", "101"],
        ] {
            assert_eq!(parsed(wrong), None, "{wrong:?}");
        }
    }
}
