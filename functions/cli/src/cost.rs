//! `hyperband cost`: the ledger of a tuning against what its training jobs are billed.
//!
//! What is told is computed by `service::cost`; this file only prints it, a page of jobs at a time, so that a tuning of any
//! size takes the same memory.

use std::fmt::Write;

use serde_json::{Value, to_value};
use service::cost::{CostError, Tally, page};
use tuning::money::MicroUsd;
use wire::cost::{CostPage, CostTotals, JobCost, LedgerView, SignedUsd};

use crate::arguments::{Named, Output, Place};
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::output::{say, say_as_is};
use crate::text::usd;

/// Training jobs read at once.
const JOBS_PER_PAGE: usize = 200;
/// Characters of a job's key after the tuning's id, for the width of a column: `-9999-0-1`.
const KEY_WIDTH: usize = 9;

/// Sets what was booked against what is billed.
pub(crate) async fn cost(options: Named<Place>) -> Result<Exit, Failure> {
    let data = Data::existing(&options.place.data_dir).await?;
    let row = data.find(&options.name).await?;
    let jobs = data.training_jobs();
    let mut printer =
        Printer { output: options.output, name_width: row.id.len() + KEY_WIDTH, begun: false, jobs: 0 };
    let (mut tally, mut after) = (Tally::default(), None);
    loop {
        let page = page(&data.store, &jobs, &row.id, after, JOBS_PER_PAGE).await.map_err(failure)?;
        let page = page.ok_or_else(|| Failure::usage(format!("the tuning {} was deleted", row.name)))?;
        tally.add(&page);
        printer.page(&page)?;
        let Some(next) = page.next_token else {
            printer.end(&page.ledger, &tally.totals())?;
            return Ok(Exit::Done);
        };
        after = Some(next);
    }
}

fn failure(error: CostError) -> Failure {
    match error {
        CostError::Store(error) => error.into(),
        CostError::Training { .. } | CostError::Token(_) => Failure::endpoint(error),
    }
}

/// Prints what has been read so far.
struct Printer {
    output: Output,
    name_width: usize,
    /// Whether the beginning is printed.
    begun: bool,
    /// Jobs printed so far.
    jobs: usize,
}

impl Printer {
    fn page(&mut self, page: &CostPage) -> Result<(), Failure> {
        let text = match self.output {
            Output::Text => self.rows(page),
            Output::Json => self.members(page)?,
        };
        self.begun = true;
        self.jobs += page.training_jobs.len();
        match self.output {
            Output::Text => say(&text),
            Output::Json => say_as_is(&text),
        }
        Ok(())
    }

    fn end(&self, ledger: &LedgerView, totals: &CostTotals) -> Result<(), Failure> {
        match self.output {
            Output::Text => say(&sums(ledger, totals)),
            Output::Json => say_as_is(&self.last(totals)?),
        }
        Ok(())
    }

    fn members(&self, page: &CostPage) -> Result<String, Failure> {
        let mut text = String::new();
        if !self.begun {
            let (name, ledger) = (to_value(&page.tuning)?, indented(&to_value(&page.ledger)?, 2));
            let _ = write!(
                text,
                "{{\n  \"HyperParameterTuningJobName\": {name},\n  \"Ledger\": {ledger},\n  \"TrainingJobs\": ["
            );
        }
        for (index, job) in page.training_jobs.iter().enumerate() {
            let comma = if self.jobs + index == 0 { "" } else { "," };
            let _ = write!(text, "{comma}\n    {}", indented(&to_value(job)?, 4));
        }
        Ok(text)
    }

    fn last(&self, totals: &CostTotals) -> Result<String, Failure> {
        let end = if self.jobs == 0 { "" } else { "\n  " };
        Ok(format!("{end}],\n  \"Totals\": {}\n}}\n", indented(&to_value(totals)?, 2)))
    }

    fn rows(&self, page: &CostPage) -> String {
        let mut text = String::new();
        if !self.begun {
            text.push_str(&head(page));
            if !page.training_jobs.is_empty() {
                let head = ["INSTANCES", "PRICE/H", "BILLED", "BOOKED", "COMPUTED", "DIFFERENCE", "NOTE"];
                text.push_str(&self.line("TRAINING JOB", &head.map(str::to_owned)));
            }
        }
        for job in &page.training_jobs {
            text.push_str(&self.line(&job.training_job_name, &cells(job)));
        }
        text
    }

    fn line(&self, name: &str, cells: &[String; 7]) -> String {
        let [instances, price, billed, booked, computed, difference, note] = cells;
        let line = format!(
            "{name:<width$}  {instances:<20}  {price:>9}  {billed:>8}  {booked:>10}  {computed:>10}  {difference:>11}  \
             {note}",
            width = self.name_width
        );
        format!("{}\n", line.trim_end())
    }
}

/// Pretty JSON of a member that begins at column `by`.
fn indented(value: &Value, by: usize) -> String {
    format!("{value:#}").replace('\n', &format!("\n{}", " ".repeat(by)))
}

fn cells(job: &JobCost) -> [String; 7] {
    let money = |amount: Option<MicroUsd>| amount.map_or_else(|| "-".to_owned(), usd);
    let seconds = job.billable_seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds} s"));
    let mark = if job.differs { "DIFFERS: " } else { "" };
    [
        format!("{} x {}", job.instance_count, job.instance_type),
        money(job.price_usd_per_hour),
        seconds,
        money(job.booked_usd),
        money(job.computed_usd),
        job.difference_usd.map_or_else(String::new, signed),
        note(job, mark),
    ]
}

fn note(job: &JobCost, mark: &str) -> String {
    let says = job.says.as_ref().map(|says| {
        let reserved = job.reserved_usd.map(|amount| format!(" {}", usd(amount))).unwrap_or_default();
        format!("{mark}{says}{reserved}")
    });
    let kept = match (job.retained_seconds, job.booked_retained_seconds) {
        (Some(now), Some(booked)) if now != booked => {
            Some(format!("kept for {now} s after its end, {booked} s booked"))
        }
        (Some(seconds), _) => Some(format!("kept for {seconds} s after its end")),
        (None, booked) => booked.map(|seconds| format!("kept for {seconds} s after its end, as was booked")),
    };
    says.into_iter().chain(kept).collect::<Vec<_>>().join("; ")
}

/// A difference: what was booked less what the service's seconds cost.
fn signed(difference: SignedUsd) -> String {
    let sign = if difference.negative { '-' } else { '+' };
    format!("{sign}{}", usd(difference.amount))
}

fn head(page: &CostPage) -> String {
    let ledger = &page.ledger;
    let mut text = format!("{}\n\n", page.tuning);
    let mut line = |label: &str, content: &str| {
        let _ = writeln!(text, "  {label:<11}{content}");
    };
    if !ledger.priced {
        line("price", "none in the request (Controller.InstancePricesUsdPerHour): only seconds are known");
    }
    line("cap", &ledger.cap_usd.map_or_else(|| "none".to_owned(), usd));
    line("spent", &usd(ledger.spent_usd));
    line("reserved", &usd(ledger.reserved_usd));
    if let Some(available) = ledger.available_usd {
        // Rounded down: no more than this may be reserved.
        line("available", &usd(MicroUsd(available.0 / 100 * 100)));
    }
    if let Some(granted) = ledger.granted_usd {
        let months = ledger.granted_usd_by_month.iter();
        let months: Vec<String> =
            months.map(|(month, amount)| format!("{month}: {}", usd(amount.0))).collect();
        line("granted", &format!("{} of the months' caps ({})", usd(granted), months.join(", ")));
    }
    if ledger.overrun {
        line("overrun", "a bill was above what its job could cost: no further job is started");
    }
    text.push('\n');
    text
}

fn sums(ledger: &LedgerView, totals: &CostTotals) -> String {
    let mut text = String::new();
    let jobs = |n: u64| if n == 1 { "1 training job".to_owned() } else { format!("{n} training jobs") };
    let mut line = |content: &str| {
        let _ = writeln!(text, "{content}");
    };
    if totals.training_jobs > 0 {
        line("");
    }
    let billed = totals.billable_seconds;
    let kept = match totals.retained_seconds {
        0 => String::new(),
        seconds => format!(" and {seconds} s in which instances were kept"),
    };
    line(&format!(
        "{}: {} booked, {} computed from {billed} s billed{kept}, {} reserved",
        jobs(totals.training_jobs),
        usd(totals.booked_usd),
        usd(totals.computed_usd),
        usd(totals.reserved_usd)
    ));
    if let Some(percent) = totals.spot_savings_percent {
        let trained = totals.training_seconds;
        line(&format!("managed spot training saved {percent} %: {trained} s trained, {billed} s billed"));
    }
    line(&match totals.differing_jobs {
        0 => "no difference between what was booked and what is billed".to_owned(),
        n => {
            let sum = totals.difference_usd;
            format!("{} differ: {} booked beyond what is billed, where both are known", jobs(n), signed(sum))
        }
    });
    match totals.ledger_difference_usd {
        Some(difference) if difference.is_zero() => {}
        Some(difference) => line(&format!(
            "the ledger's spent and reserved are {} beyond what the training jobs add up to",
            signed(difference)
        )),
        None => line("the tuning went on while this was read: the sums are not of one moment"),
    }
    if ledger.priced {
        line("not in here: S3, logs, KMS, data transfer");
    }
    text
}

#[cfg(test)]
mod tests {
    use wire::cost::{Dollars, Note};

    use super::*;

    fn ledger() -> LedgerView {
        LedgerView {
            cap_usd: Some(MicroUsd(5_000_000)),
            spent_usd: MicroUsd(40_000),
            reserved_usd: MicroUsd(28_750),
            available_usd: Some(MicroUsd(4_931_250)),
            overrun: false,
            granted_usd: None,
            granted_usd_by_month: std::collections::BTreeMap::new(),
            priced: true,
            spot: true,
        }
    }

    #[test]
    fn the_sums_say_what_differs_and_what_does_not_add_up() {
        let mut totals = CostTotals {
            training_jobs: 2,
            ledger_difference_usd: Some(SignedUsd::default()),
            ..CostTotals::default()
        };
        let told = sums(&ledger(), &totals);
        assert!(told.contains("2 training jobs: $0.0000 booked"), "{told}");
        assert!(told.contains("no difference") && !told.contains("add up"), "{told}");
        totals.differing_jobs = 1;
        totals.difference_usd = SignedUsd { negative: true, amount: MicroUsd(28_750) };
        totals.ledger_difference_usd = Some(SignedUsd { negative: false, amount: MicroUsd(100) });
        let told = sums(&ledger(), &totals);
        assert!(told.contains("1 training job differ: -$0.0288 booked"), "{told}");
        assert!(told.contains("spent and reserved are +$0.0001 beyond"), "{told}");
        totals.ledger_difference_usd = None;
        assert!(sums(&ledger(), &totals).contains("went on while this was read"));
    }

    #[test]
    fn the_ledger_is_told_with_what_a_month_granted_and_never_more_than_is_left() {
        let granted = [("2026-10".to_owned(), Dollars(MicroUsd(1_000_000)))];
        let ledger = LedgerView {
            available_usd: Some(MicroUsd(4_931_299)),
            granted_usd: Some(MicroUsd(1_000_000)),
            granted_usd_by_month: granted.into(),
            ..ledger()
        };
        let page =
            CostPage { tuning: "t".to_owned(), step: 1, ledger, training_jobs: Vec::new(), next_token: None };
        let told = head(&page);
        assert!(told.contains("available  $4.9312\n"), "{told}");
        assert!(told.contains("granted    $1.0000 of the months' caps (2026-10: $1.0000)\n"), "{told}");
    }

    #[test]
    fn what_was_kept_is_told_beside_what_was_billed() {
        let kept = |now: Option<u64>, booked: Option<u64>, says: Option<&str>| {
            let says = says.map(ToOwned::to_owned);
            note(
                &JobCost { retained_seconds: now, booked_retained_seconds: booked, says, ..job() },
                "DIFFERS: ",
            )
        };
        assert_eq!(kept(None, None, None), "");
        assert_eq!(kept(Some(30), Some(30), None), "kept for 30 s after its end");
        assert_eq!(
            kept(Some(45), Some(30), Some("another bill")),
            "DIFFERS: another bill; kept for 45 s after its end, 30 s booked"
        );
        assert_eq!(kept(None, Some(30), None), "kept for 30 s after its end, as was booked");
        let totals = CostTotals { training_jobs: 2, billable_seconds: 20, ..CostTotals::default() };
        assert!(!sums(&ledger(), &totals).contains("kept"));
        let told = sums(&ledger(), &CostTotals { retained_seconds: 31, ..totals });
        assert!(told.contains("from 20 s billed and 31 s in which instances were kept, $"), "{told}");
    }

    fn job() -> JobCost {
        JobCost {
            training_job_name: "t-abc123-0-0-1".to_owned(),
            trial: 0,
            attempt: 1,
            instance_type: "ml.m5.large".to_owned(),
            instance_count: 1,
            price_usd_per_hour: None,
            training_job_status: None,
            billable_seconds: None,
            training_seconds: None,
            booked_seconds: None,
            retained_seconds: None,
            booked_retained_seconds: None,
            booked_usd: None,
            reserved_usd: None,
            computed_usd: None,
            difference_usd: None,
            note: Some(Note::NeverStarted),
            says: None,
            differs: false,
        }
    }

    #[test]
    fn pages_make_one_json_whatever_their_sizes() {
        let job = job();
        for sizes in [&[0][..], &[1], &[2, 0], &[1, 2, 1]] {
            let mut printer = Printer { output: Output::Json, name_width: 20, begun: false, jobs: 0 };
            let mut text = String::new();
            for size in sizes {
                let page = CostPage {
                    tuning: "t".to_owned(),
                    step: 1,
                    ledger: ledger(),
                    training_jobs: vec![job.clone(); *size],
                    next_token: None,
                };
                text.push_str(&printer.members(&page).unwrap());
                printer.begun = true;
                printer.jobs += size;
            }
            text.push_str(&printer.last(&CostTotals::default()).unwrap());
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["TrainingJobs"].as_array().unwrap().len(), sizes.iter().sum::<usize>());
            assert_eq!(
                (&value["Ledger"]["CapUsd"], &value["Totals"]["DifferenceUsd"]),
                (&5.into(), &0.into())
            );
        }
    }
}
