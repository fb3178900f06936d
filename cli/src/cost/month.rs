//! `hyperband cost --month`: compares the booked costs of a stack in a month with AWS's bill.
//!
//! A cost is booked when the bill of a training job is known, so a job counts for the month in which it ended. AWS
//! counts each day. The output therefore shows jobs that ran in two months separately.

use std::collections::BTreeMap;
use std::fmt::Write;

use api_client::{Address, ClientError, Target};
use local::host::SystemClock;
use serde_json::{Number, Value, json};
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use use_cases::describe::Place;
use use_cases::ports::{Clock, Millis};
use wire::cost::{Dollars, JobCost, SignedUsd};
use wire::describe::{TrainingJobSummary, TuningSummary};
use wire::events::timestamp::format_utc;
use wire::names::TAG_STACK;

use super::explorer::{Bill, Question};
use super::signed;
use crate::arguments::{Cost, Month, Where};
use crate::failure::{Exit, Failure};
use crate::output::show;
use crate::remote::{NOT_FOUND, Remote, endpoint_variable, failed, service};
use crate::text::{counted, exact as usd, table};

/// Environment variable with the endpoint of Cost Explorer, as in every AWS SDK.
const VARIABLE: &str = "AWS_ENDPOINT_URL_COST_EXPLORER";
const DAY: Millis = Millis(24 * 60 * 60 * 1_000);

pub(super) async fn of_stack(options: &Cost, month: &Month) -> Result<Exit, Failure> {
    let Where::Endpoint(address) = options.place.place()? else {
        return Err(Failure::usage("--month compares a stack with AWS's bill, but no stack is given")
            .hint("set --endpoint or HYPERBAND_ENDPOINT to the stack's output ApiUrl"));
    };
    let now = SystemClock.now();
    if month.start > now {
        let error = format!("the month {} has not begun (UTC)", month.text);
        return Err(Failure::usage(error).hint("choose this month or an earlier one"));
    }
    let remote = Remote::connect(address).await?;
    let booked = Booked::read(&remote, month).await?;
    let Some(arn) = &booked.any_job else {
        return Err(Failure::usage(format!("the stack has no training job of {} to compare", month.text))
            .hint("`hyperband list` shows the tunings of the stack; deleted ones have no costs"));
    };
    let place = Place::of_arn(arn);
    if place.region.starts_with("us-gov-") && endpoint_variable(VARIABLE)?.is_none() {
        return Err(Failure::usage("Cost Explorer has no endpoint in AWS GovCloud (US)").hint(
            "the account that pays for this one has its costs: filter them by the tag hyperband:stack there",
        ));
    }
    let stack = match &options.stack_name {
        Some(name) => name.clone(),
        None => name_of_stack(&remote, arn).await?,
    };
    let explorer = service(&remote.stack, Target::CostExplorer, VARIABLE)?;
    // Days that have not begun have no costs.
    let end = month.end.min(now + DAY);
    let question = Question { stack: &stack, place: &place, start: day(month.start), end: day(end) };
    let bill = Bill::read(&explorer, &question).await?;
    let shown = Comparison { month, stack: &stack, booked: &booked, bill: &bill };
    show(options.output, || shown.text(), || shown.json());
    Ok(Exit::Done)
}

/// Returns the name of the stack, from the tags of the training job `arn`.
async fn name_of_stack(remote: &Remote, arn: &str) -> Result<String, Failure> {
    if let Address::Function(_) = remote.stack.address() {
        return Err(Failure::usage("direct calls of a function do not report the name of the stack")
            .hint("set --stack-name to the value of the tag hyperband:stack"));
    }
    let mut tags = remote.stack.tags(arn).await.map_err(failed)?;
    tags.remove(TAG_STACK).ok_or_else(|| {
        Failure::endpoint(anyhow::anyhow!("the stack reports no tag {TAG_STACK} of its training job {arn}"))
    })
}

/// Returns the day (UTC) of a time, such as `2026-11-27`.
fn day(time: Time) -> String {
    format_utc(time).chars().take(10).collect()
}

/// A number of training jobs and their cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sum {
    jobs: u64,
    cost: MicroUsd,
}

impl Sum {
    fn add(&mut self, cost: MicroUsd) {
        *self = Self { jobs: self.jobs + 1, cost: self.cost.plus(cost) };
    }
}

/// The ledgers of the tunings that were active in the month.
#[derive(Debug, Default, PartialEq, Eq)]
struct Booked {
    tunings: u64,
    /// Jobs that ended in the month.
    ended: Sum,
    /// Jobs that ran in this month and in another one.
    in_two_months: Sum,
    /// Reservations: of jobs without a bill, and for kept instances.
    reserved: Sum,
    /// Number of jobs that ended in the month, at an unknown price.
    unpriced: u64,
    /// ARN of a training job.
    any_job: Option<String>,
}

impl Booked {
    /// Reads the jobs of all tunings that were active in the month.
    async fn read(remote: &Remote, month: &Month) -> Result<Self, Failure> {
        let mut booked = Self::default();
        for tuning in remote.client.list().await.map_err(failed)? {
            if !is_active(&tuning, month) {
                continue;
            }
            let name = &tuning.base.name;
            let read = async {
                let costs = remote.client.costs(name).await?;
                // The second listing has at least the jobs of the first.
                Ok::<_, ClientError>((costs, remote.client.training_jobs(name).await?))
            };
            let (costs, jobs) = match read.await {
                Ok(read) => read,
                // It was deleted after the list.
                Err(error) if error.is(NOT_FOUND) => continue,
                Err(error) => return Err(failed(error)),
            };
            booked.tunings += 1;
            let jobs: BTreeMap<&str, &TrainingJobSummary> =
                jobs.iter().map(|job| (job.name.as_str(), job)).collect();
            for cost in &costs {
                if let Some(job) = jobs.get(cost.training_job_name.as_str()) {
                    booked.add(month, job, cost);
                }
            }
        }
        Ok(booked)
    }

    fn add(&mut self, month: &Month, job: &TrainingJobSummary, cost: &JobCost) {
        self.any_job.get_or_insert_with(|| job.arn.clone());
        if job.created_ms >= month.end.0 {
            return;
        }
        if let Some(reserved) = cost.reserved_usd {
            self.reserved.add(reserved);
        }
        // A job without a known end was settled in full: it counts when it was ordered.
        let end = job.ended_ms.unwrap_or(job.created_ms);
        let is_unpriced =
            cost.price_usd_per_hour.is_none() && cost.booked_seconds.is_some_and(|seconds| seconds > 0);
        self.unpriced += u64::from(is_unpriced && month.has(end));
        let Some(booked) = cost.booked_usd else { return };
        if month.has(job.started_ms.unwrap_or(end)) != month.has(end) {
            self.in_two_months.add(booked);
        }
        if month.has(end) {
            self.ended.add(booked);
        }
    }
}

/// Returns whether the tuning can have had a training job in the month.
fn is_active(tuning: &TuningSummary, month: &Month) -> bool {
    let (created, ended) = (tuning.base.created_ms, tuning.base.ended_ms);
    created < month.end.0 && ended.is_none_or(|ended| ended >= month.start.0)
}

struct Comparison<'a> {
    month: &'a Month,
    stack: &'a str,
    booked: &'a Booked,
    bill: &'a Bill,
}

impl Comparison<'_> {
    /// Returns booked less billed.
    fn difference(&self) -> SignedUsd {
        let billed = self.bill.total();
        let booked = SignedUsd { negative: false, amount: self.booked.ended.cost };
        booked.plus(SignedUsd { negative: !billed.negative, ..billed })
    }

    /// Returns the difference in percent of the bill with one decimal, such as `-1.3`.
    fn percent(&self) -> Option<String> {
        let (difference, billed) = (self.difference(), self.bill.total());
        let billed_amount = u128::from(billed.amount.0);
        if billed.negative || billed_amount == 0 {
            return None;
        }
        let tenths = (u128::from(difference.amount.0) * 1_000 + billed_amount / 2) / billed_amount;
        let sign = if difference.negative && tenths > 0 { "-" } else { "" };
        Some(format!("{sign}{}.{}", tenths / 10, tenths % 10))
    }

    /// Returns the likely cause of a bill of zero, and how to fix it.
    fn likely_cause(&self) -> Option<String> {
        let is_missing = self.bill.total().is_zero() && self.booked.ended.cost > MicroUsd::ZERO;
        is_missing.then(|| {
            format!(
                "Cost Explorer has no cost with the tag {TAG_STACK}={}. Probably the tag is no active cost allocation tag. \
                 Activate it in the payer's account: `aws ce update-cost-allocation-tags-status \
                 --cost-allocation-tags-status TagKey={TAG_STACK},Status=Active`. Only costs after that have the tag, and \
                 they appear up to a day late, so a new stack has none yet either.",
                self.stack
            )
        })
    }

    fn json(&self) -> Value {
        let Self { month, stack, booked, bill } = self;
        let by_usage = bill.by_usage.iter();
        let percent = self.percent().and_then(|text| text.parse::<Number>().ok());
        json!({
            "Month": month.text,
            "StackName": stack,
            "TuningJobs": booked.tunings,
            "TrainingJobs": booked.ended.jobs,
            "BookedUsd": Dollars(booked.ended.cost),
            "AwsUsd": bill.total(),
            "DifferenceUsd": self.difference(),
            "DifferencePercent": percent,
            "UsageTypes": by_usage.map(|(usage, cost)| json!({"UsageType": usage, "AwsUsd": cost})).collect::<Vec<_>>(),
            "EstimatedDays": bill.estimated,
            "ReservedUsd": Dollars(booked.reserved.cost),
            "TwoMonthsTrainingJobs": booked.in_two_months.jobs,
            "TwoMonthsBookedUsd": Dollars(booked.in_two_months.cost),
            "UnpricedTrainingJobs": booked.unpriced,
            "CostExplorerRequests": bill.requests,
            "LikelyCause": self.likely_cause(),
        })
    }

    fn text(&self) -> String {
        let Self { month, stack, booked, bill } = self;
        let mut text = format!("{stack}, {} (UTC)\n\n", month.text);
        let mut line = |label: &str, amount: &str, content: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {label:<11}{amount:>11}  {content}");
        };
        let (ended, tunings) =
            (counted(booked.ended.jobs, "training job"), counted(booked.tunings, "tuning"));
        line("booked", &usd(booked.ended.cost), &format!("{ended} of {tunings}, which ended in the month"));
        line("AWS", &amount(bill.total()), "usage with the stack's tag, before credits, discounts and tax");
        let percent =
            self.percent().map_or_else(String::new, |percent| format!("{percent} % of AWS's amount, "));
        line("difference", &signed(self.difference()), &format!("{percent}booked minus AWS"));
        text.push('\n');
        if !bill.by_usage.is_empty() {
            let rows = bill.by_usage.iter().map(|(usage, cost)| vec![usage.clone(), amount(*cost)]);
            text.push_str(&table(&["USAGE TYPE", "AWS"], &rows.collect::<Vec<_>>(), &[1]));
            text.push('\n');
        }
        for note in self.notes() {
            let _ = writeln!(text, "{note}");
        }
        text
    }

    /// Returns what can explain a difference.
    fn notes(&self) -> Vec<String> {
        let Self { booked, bill, .. } = self;
        let mut notes: Vec<String> = self.likely_cause().into_iter().collect();
        notes.push(match (bill.estimated.first(), bill.estimated.last()) {
            (Some(first), Some(last)) => {
                let days = counted(u64::try_from(bill.estimated.len()).unwrap_or(u64::MAX), "day");
                format!(
                    "not final: {days} from {first} to {last}; Cost Explorer shows costs up to 24 hours late"
                )
            }
            _ => "all days are final".to_owned(),
        });
        if booked.reserved.jobs > 0 {
            let jobs = counted(booked.reserved.jobs, "training job");
            notes.push(format!("not booked yet: {} reserved for {jobs}", usd(booked.reserved.cost)));
        }
        if booked.in_two_months.jobs > 0 {
            let jobs = counted(booked.in_two_months.jobs, "training job");
            let cost = usd(booked.in_two_months.cost);
            notes.push(format!(
                "in two months: {jobs} for {cost}, booked in the month of the end, billed by AWS in both"
            ));
        }
        if booked.unpriced > 0 {
            notes.push(format!("booked without a price: {}", counted(booked.unpriced, "training job")));
        }
        notes.push("not compared: deleted tunings, and tunings that you may not see".to_owned());
        let requests = u64::from(bill.requests);
        let cents = usd(MicroUsd(requests * 10_000));
        notes.push(format!("AWS charges {cents} for {} to Cost Explorer", counted(requests, "request")));
        notes
    }
}

fn amount(cost: SignedUsd) -> String {
    if cost.negative { signed(cost) } else { usd(cost.amount) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn month() -> Month {
        "2026-11".parse().unwrap()
    }

    /// Returns a job that ran from `started` to `ended`, in hours after the start of the month, and its booked cost.
    fn job(started: i64, ended: Option<i64>, booked: Option<u64>) -> (TrainingJobSummary, JobCost) {
        let at = |hours: i64| month().start.0 + hours * HOUR;
        let job = TrainingJobSummary {
            arn: "arn:aws:sagemaker:eu-west-1:111122223333:training-job/t-abc123-0-0-1".to_owned(),
            created_ms: at(started),
            started_ms: Some(at(started)),
            ended_ms: ended.map(at),
            ..TrainingJobSummary::default()
        };
        let reserved = if booked.is_none() { json!(0.5) } else { Value::Null };
        let cost = json!({
            "TrainingJobName": "t-abc123-0-0-1", "Trial": 0, "Attempt": 1, "InstanceType": "ml.m5.large",
            "InstanceCount": 1, "PriceUsdPerHour": 0.115, "BookedUsd": booked, "ReservedUsd": reserved, "Differs": false,
        });
        (job, serde_json::from_value(cost).unwrap())
    }

    fn booked(jobs: &[(TrainingJobSummary, JobCost)]) -> Booked {
        let mut booked = Booked::default();
        for (job, cost) in jobs {
            booked.add(&month(), job, cost);
        }
        booked
    }

    #[test]
    fn a_job_counts_in_the_month_of_its_end() {
        let length = 30 * 24;
        let read = booked(&[
            job(1, Some(2), Some(1)),
            job(-2, Some(1), Some(2)),
            job(length - 1, Some(length + 1), Some(4)),
            job(-3, Some(-2), Some(8)),
            job(length + 1, Some(length + 2), Some(16)),
            // Settled in full: its end is unknown.
            job(3, None, Some(32)),
        ]);
        assert_eq!(read.ended, Sum { jobs: 3, cost: MicroUsd(35_000_000) });
        assert_eq!(read.in_two_months, Sum { jobs: 2, cost: MicroUsd(6_000_000) });
        assert_eq!(read.reserved, Sum::default());
    }

    #[test]
    fn reserved_and_unpriced_jobs_are_counted_apart() {
        let (ended, mut unpriced) = job(1, Some(2), None);
        (unpriced.price_usd_per_hour, unpriced.reserved_usd, unpriced.booked_seconds) =
            (None, None, Some(60));
        let read = booked(&[job(1, None, None), (ended, unpriced)]);
        assert_eq!((read.reserved, read.unpriced), (Sum { jobs: 1, cost: MicroUsd(500_000) }, 1));
        let (month, bill) = (month(), Bill::default());
        let notes = Comparison { month: &month, stack: "s", booked: &read, bill: &bill }.notes();
        assert!(
            notes.contains(&"not booked yet: $0.5000 reserved for 1 training job".to_owned()),
            "{notes:?}"
        );
        assert!(notes.contains(&"booked without a price: 1 training job".to_owned()), "{notes:?}");
    }

    #[test]
    fn the_difference_has_a_sign_and_a_percentage_of_the_bill() {
        let month = month();
        for (booked, billed, difference, percent) in [
            (95, 100, "-$0.0050", Some("-5.0")),
            (100, 95, "+$0.0050", Some("5.3")),
            (100, 100, "+$0.0000", Some("0.0")),
            (99_996, 100_000, "-$0.0040", Some("0.0")),
            (1, 0, "+$0.0010", None),
        ] {
            let ended = Sum { jobs: 1, cost: MicroUsd(booked * 1_000) };
            let (booked, mut bill) = (Booked { ended, ..Booked::default() }, Bill::default());
            let cost = SignedUsd { negative: false, amount: MicroUsd(billed * 1_000) };
            bill.by_usage.insert("Train:ml.m5.large".to_owned(), cost);
            let shown = Comparison { month: &month, stack: "s", booked: &booked, bill: &bill };
            assert_eq!(shown.percent().as_deref(), percent);
            assert_eq!(shown.likely_cause().is_some(), billed == 0);
            assert_eq!(signed(shown.difference()), difference);
        }
    }
}
