//! The options of `hyperband cost`.

use std::str::FromStr;

use clap::{ArgGroup, Args};
use local::host::SystemClock;
use tuning::money::grants::{month_end, month_of};
use tuning::unit::time::Time;
use use_cases::ports::Clock;
use wire::events::timestamp::parse_utc;

use super::doctor::parse_stack_name;
use super::{Output, Source};

pub(super) const EXAMPLES: &str = "\
With NAME, reads the current bill of every training job from the training service. With --endpoint, shows only the \
booked costs.

  BILLED     billable seconds
  COMPUTED   billable seconds times the price
  BOOKED     cost in the ledger of the tuning

The command marks each job whose booked and computed costs differ, and prints the likely reason. The exit code is 0 \
even with differences.

With --month, compares the booked bills of the training jobs that ended in the month with AWS's bill, from Cost \
Explorer. It reads the usage with the tag hyperband:stack at list prices, before credits, discounts and tax. It uses \
your credentials, which need ce:GetCostAndUsage. The tag must be an active cost allocation tag. AWS charges $0.01 for \
each request to Cost Explorer; the command usually sends one. Costs appear there up to a day late.

Examples:
  hyperband cost xgb-1
  hyperband cost xgb-1 --output json | jq '.TrainingJobs[] | select(.Differs)'
  hyperband cost --month 2026-11 --endpoint https://abc123.execute-api.eu-west-1.amazonaws.com";

/// Value of `--month` without a value.
const THIS_MONTH: &str = "now";

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["name", "month"])))]
pub(crate) struct Cost {
    /// Name of the tuning
    pub(crate) name: Option<String>,
    /// Compare all tunings of a stack in a calendar month (UTC) with AWS's bill [default: this month]
    #[arg(long, value_name = "YYYY-MM", num_args = 0..=1, default_missing_value = THIS_MONTH)]
    #[arg(value_parser = parse_month, conflicts_with = "data_dir")]
    pub(crate) month: Option<Month>,
    /// Name of the stack, with --month; required with lambda:FUNCTION [default: the name that the stack's HTTP API
    /// reports]
    #[arg(long, value_name = "NAME", value_parser = parse_stack_name, conflicts_with = "name")]
    pub(crate) stack_name: Option<String>,
    #[command(flatten)]
    pub(crate) place: Source,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

/// A calendar month (UTC).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Month {
    /// Its text, such as `2026-11`.
    pub(crate) text: String,
    /// Its first moment.
    pub(crate) start: Time,
    /// The first moment of the next month.
    pub(crate) end: Time,
}

fn parse_month(text: &str) -> Result<Month, &'static str> {
    if text == THIS_MONTH { month_of(SystemClock.now()).parse() } else { text.parse() }
}

impl Month {
    /// Returns whether the time, in ms since the epoch, is in the month.
    pub(crate) fn has(&self, ms: i64) -> bool {
        (self.start.0..self.end.0).contains(&ms)
    }
}

impl FromStr for Month {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let start = parse_utc(&format!("{text}-01T00:00:00Z")).filter(|start| month_of(*start) == text);
        let start = start.ok_or("expected a month, for example 2026-11")?;
        Ok(Self { text: text.to_owned(), start, end: month_end(start) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_ends_where_the_next_one_begins() {
        for (text, next) in [("2026-11", "2026-12"), ("2026-12", "2027-01"), ("2024-02", "2024-03")] {
            let (month, next): (Month, Month) = (text.parse().unwrap(), next.parse().unwrap());
            assert_eq!(month.end, next.start, "{text}");
            assert!(month.has(month.start.0) && !month.has(month.end.0));
            assert_eq!(month_of(Time(month.end.0 - 1)), text);
        }
    }

    #[test]
    fn other_texts_are_rejected() {
        for text in ["", "2026", "2026-1", "2026-13", "2026-00", "2026-11-01", "26-11", "11-2026", "2026-+1"]
        {
            assert!(text.parse::<Month>().is_err(), "{text}");
        }
    }
}
