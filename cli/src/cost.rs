//! `hyperband cost`: compares the ledger of a tuning with the bills of its training jobs.
//!
//! `use_cases::cost` computes the comparison. This file prints it page by page, so that memory use does not depend on
//! the number of training jobs. `month` compares all tunings of a stack with AWS's bill of a month.

mod explorer;
mod month;

use std::fmt::Write;

use serde_json::{Value, to_value};
use use_cases::cost::{CostError, Tally, booked, page};
use wire::cost::{CostPage, CostTotals, JobCost, LedgerView, SignedUsd};

use crate::arguments::{Cost, Output, Source};
use crate::failure::{Exit, Failure};
use crate::output::{print_out, print_out_raw};
use crate::stored_tuning::StoredTuning;
use crate::text::{counted, exact as usd, or_dash};

const JOBS_PER_PAGE: usize = 200;
/// Characters of a training job's name after the tuning's id, for the column width: `-9999-0-1`.
const KEY_WIDTH: usize = 9;

pub(crate) async fn cost(options: Cost) -> Result<Exit, Failure> {
    match &options.month {
        Some(month) => month::of_stack(&options, month).await,
        None => of_tuning(&options.place, options.name.as_deref().unwrap_or_default(), options.output).await,
    }
}

async fn of_tuning(place: &Source, name: &str, output: Output) -> Result<Exit, Failure> {
    let tuning = StoredTuning::open(place, name).await?;
    let id = &tuning.row.id;
    let mut printer = Printer { output, name_width: id.len() + KEY_WIDTH, begun: false, jobs: 0 };
    let (mut tally, mut after) = (Tally::default(), None);
    loop {
        let page = match &tuning.jobs {
            Some(jobs) => page(&tuning.store, jobs, id, after, JOBS_PER_PAGE).await,
            None => booked(&tuning.store, id, after, JOBS_PER_PAGE).await,
        };
        let page = page.map_err(failure)?;
        let page = page.ok_or_else(|| tuning.deleted())?;
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

/// Prints pages as they are read.
struct Printer {
    output: Output,
    name_width: usize,
    /// Whether the text before the first job is printed.
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
            Output::Text => print_out(&text),
            Output::Json => print_out_raw(&text),
        }
        Ok(())
    }

    fn end(&self, ledger: &LedgerView, totals: &CostTotals) -> Result<(), Failure> {
        match self.output {
            Output::Text => print_out(&sums(ledger, totals)),
            Output::Json => print_out_raw(&self.last(totals)?),
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

/// Returns formatted JSON, indented by `by` columns.
fn indented(value: &Value, by: usize) -> String {
    format!("{value:#}").replace('\n', &format!("\n{}", " ".repeat(by)))
}

fn cells(job: &JobCost) -> [String; 7] {
    let mark = if job.differs { "DIFFERS: " } else { "" };
    [
        format!("{} x {}", job.instance_count, job.instance_type),
        or_dash(job.price_usd_per_hour, usd),
        or_dash(job.billable_seconds, |seconds| format!("{seconds} s")),
        or_dash(job.booked_usd, usd),
        or_dash(job.computed_usd, usd),
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
            Some(format!("{now} s in the warm pool, {booked} s booked"))
        }
        (Some(seconds), _) => Some(format!("{seconds} s in the warm pool")),
        (None, booked) => booked.map(|seconds| format!("{seconds} s in the warm pool, as booked")),
    };
    says.into_iter().chain(kept).collect::<Vec<_>>().join("; ")
}

/// Returns a difference with its sign: booked cost minus computed cost.
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
    if ledger.priced {
        line("cap", &ledger.cap_usd.map_or_else(|| "none".to_owned(), usd));
        line("spent", &usd(ledger.spent_usd));
        line("reserved", &usd(ledger.reserved_usd));
    } else {
        line("price", "unknown; set Controller.InstancePricesUsdPerHour in the request to see costs");
    }
    if let Some(available) = ledger.available_usd {
        line("available", &usd(available));
    }
    if let Some(granted) = ledger.granted_usd {
        let months = ledger.granted_usd_by_month.iter();
        let months: Vec<String> =
            months.map(|(month, amount)| format!("{month}: {}", usd(amount.0))).collect();
        line("granted", &format!("{} from the monthly cap ({})", usd(granted), months.join(", ")));
    }
    if ledger.overrun {
        line(
            "overrun",
            "a training job cost more than was reserved for it: running and later jobs reserve the excess too",
        );
    }
    text.push('\n');
    text
}

fn sums(ledger: &LedgerView, totals: &CostTotals) -> String {
    let mut text = String::new();
    let jobs = |count| counted(count, "training job");
    let mut line = |content: &str| {
        let _ = writeln!(text, "{content}");
    };
    if totals.training_jobs > 0 {
        line("");
    }
    let billed = totals.billable_seconds;
    let kept = match totals.retained_seconds {
        0 => String::new(),
        seconds => format!(" and {seconds} s in warm pools"),
    };
    if !ledger.priced {
        line(&format!("{}: {billed} billed seconds{kept}, at an unknown price", jobs(totals.training_jobs)));
        return text;
    }
    line(&format!(
        "{}: {} booked, {} computed from {billed} billed seconds{kept}, {} reserved",
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
        0 => "the booked costs equal the bills".to_owned(),
        n => {
            let sum = signed(totals.difference_usd);
            format!(
                "booked costs and bills differ for {}: {sum} booked minus billed, where both are known",
                jobs(n)
            )
        }
    });
    match totals.ledger_difference_usd {
        Some(difference) if difference.is_zero() => {}
        Some(difference) => line(&format!(
            "spent plus reserved in the ledger differs from the sum of the training jobs by {}",
            signed(difference)
        )),
        None => line("the tuning changed during this command, so the sums may not match; run it again"),
    }
    line("not included: S3, logs, KMS, data transfer");
    text
}

#[cfg(test)]
mod tests {
    use tuning::unit::money::MicroUsd;
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
    fn the_sums_show_differences() {
        let mut totals = CostTotals {
            training_jobs: 2,
            ledger_difference_usd: Some(SignedUsd::default()),
            ..CostTotals::default()
        };
        let text = sums(&ledger(), &totals);
        assert!(text.contains("2 training jobs: $0.0000 booked"), "{text}");
        assert!(text.contains("the booked costs equal the bills") && !text.contains("differ"), "{text}");
        totals.differing_jobs = 1;
        totals.difference_usd = SignedUsd { negative: true, amount: MicroUsd(28_750) };
        totals.ledger_difference_usd = Some(SignedUsd { negative: false, amount: MicroUsd(100) });
        let text = sums(&ledger(), &totals);
        assert!(text.contains("differ for 1 training job: -$0.028750 booked minus billed"), "{text}");
        assert!(text.contains("from the sum of the training jobs by +$0.0001"), "{text}");
        totals.ledger_difference_usd = None;
        assert!(sums(&ledger(), &totals).contains("changed during this command"));
    }

    #[test]
    fn the_head_shows_monthly_grants_and_the_available_amount() {
        let granted = [("2026-10".to_owned(), Dollars(MicroUsd(1_000_000)))];
        let ledger = LedgerView {
            available_usd: Some(MicroUsd(4_931_299)),
            granted_usd: Some(MicroUsd(1_000_000)),
            granted_usd_by_month: granted.into(),
            ..ledger()
        };
        let page =
            CostPage { tuning: "t".to_owned(), step: 1, ledger, training_jobs: Vec::new(), next_token: None };
        let text = head(&page);
        assert!(text.contains("available  $4.931299\n"), "{text}");
        assert!(text.contains("granted    $1.0000 from the monthly cap (2026-10: $1.0000)\n"), "{text}");
    }

    #[test]
    fn the_note_shows_the_time_in_the_warm_pool() {
        let kept = |now: Option<u64>, booked: Option<u64>, says: Option<&str>| {
            let says = says.map(ToOwned::to_owned);
            note(
                &JobCost { retained_seconds: now, booked_retained_seconds: booked, says, ..job() },
                "DIFFERS: ",
            )
        };
        assert_eq!(kept(None, None, None), "");
        assert_eq!(kept(Some(30), Some(30), None), "30 s in the warm pool");
        assert_eq!(
            kept(Some(45), Some(30), Some("another bill")),
            "DIFFERS: another bill; 45 s in the warm pool, 30 s booked"
        );
        assert_eq!(kept(None, Some(30), None), "30 s in the warm pool, as booked");
        let totals = CostTotals { training_jobs: 2, billable_seconds: 20, ..CostTotals::default() };
        assert!(!sums(&ledger(), &totals).contains("warm pool"));
        let text = sums(&ledger(), &CostTotals { retained_seconds: 31, ..totals });
        assert!(text.contains("from 20 billed seconds and 31 s in warm pools, $"), "{text}");
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
    fn pages_of_any_size_form_one_json_document() {
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
