//! The tables of docs/COST.md and docs/PERFORMANCE.md, line by line, and what README.md and docs/COST.md say of them in words.

use stack_template::Template;

use crate::idle::charges;
use crate::job::{Counted, FUNCTIONS, number, program};
use crate::price;

/// Months and thousands of jobs are shown in USD with so many digits.
fn usd(amount: f64) -> String {
    format!("{amount:.3}")
}

/// The standing charges.
pub fn idle(template: &Template, counted: &Counted) -> Vec<String> {
    let charges = charges(template, counted);
    let row = |what: &str, month: f64, off: &str| format!("| {what} | {} | {off} |", usd(month));
    let mut rows: Vec<String> =
        charges.iter().map(|charge| row(&charge.what, charge.month, charge.off)).collect();
    let sum = |off: bool| -> f64 {
        charges.iter().filter(|charge| !off || charge.off == "no").map(|charge| charge.month).sum()
    };
    rows.push(row("**all**", sum(false), ""));
    rows.push(row("**without dashboard and alarms**", sum(true), ""));
    rows
}

/// The standing charges in words, of README.md and of docs/COST.md.
pub fn standing(template: &Template, counted: &Counted) -> [(&'static str, String); 2] {
    let charges = charges(template, counted);
    let sum = |fixed: bool| -> f64 {
        charges.iter().filter(|charge| (charge.off == "no") == fixed).map(|charge| charge.month).sum()
    };
    let (fixed, off) = (sum(true), sum(false));
    let all = cents(fixed + off);
    [
        ("README.md", format!("{all} USD a month, of which {} are its alarms and its dashboard", cents(off))),
        (
            "docs/COST.md",
            format!(
                "{all} USD a month stands while nobody tunes, {} USD without dashboard and alarms",
                cents(fixed)
            ),
        ),
    ]
}

/// What 1,000 training jobs cost, from the cheapest to the dearest workload, in the words of README.md and docs/COST.md.
pub fn range(sums: &[f64]) -> String {
    let least = sums.iter().copied().fold(f64::INFINITY, f64::min);
    let most = sums.iter().copied().fold(0.0, f64::max);
    format!("1,000 training jobs cost {} to {} USD on top", cents(least), cents(most))
}

/// USD in cents, rounded from what the tables show of it.
fn cents(amount: f64) -> String {
    let thousandths = (amount * 1_000.0).round();
    format!("{:.2}", (thousandths / 10.0).round() / 100.0)
}

/// Whether a document says so, wherever its lines break.
pub fn says(document: &str, words: &str) -> bool {
    document.split_whitespace().collect::<Vec<_>>().join(" ").contains(words)
}

/// A workload's row: USD of 1,000 training jobs.
pub fn jobs(counted: &Counted) -> String {
    let bill = counted.per_job();
    let parts = [bill.writes, bill.reads, bill.functions, bill.logs, bill.other, bill.storage, bill.sum()];
    let cells: Vec<String> = parts.iter().map(|part| usd(part * 1_000.0)).collect();
    format!("| {} | {} | {} |", counted.workload.name(), counted.jobs, cells.join(" | "))
}

/// What each function uses, per training job.
pub fn functions(counted: &Counted) -> Vec<String> {
    let jobs = f64::from(counted.jobs);
    let row = |function| {
        let work = counted.work(function);
        let per_job = |count: u64| number(count) / jobs;
        let mean = number(work.ms) / number(work.invocations);
        format!(
            "| {} | {:.2} | {mean:.0} | {:.1} | {:.1} | {:.1} | {:.0} | {} |",
            program(function),
            per_job(work.invocations),
            per_job(work.usage.requests()),
            per_job(work.usage.write_units),
            per_job(work.usage.read_units),
            per_job(work.log_bytes),
            usd(counted.bill_of(function, work).sum() / jobs * 1_000.0),
        )
    };
    FUNCTIONS.map(row).to_vec()
}

/// What is stored for a training job.
pub fn stored(counted: &Counted) -> String {
    let (for_ever, facts) = counted.stored();
    let year = for_ever * 1_000.0 / price::GB * (price::STORED_GB + price::BACKUP_GB) * 12.0;
    format!("| {} | {:.1} | {:.1} | {} |", counted.workload.name(), for_ever / 1e3, facts / 1e3, usd(year))
}

/// Requests and units per training job.
pub fn units(counted: &Counted) -> String {
    let (all, jobs) = (counted.all(), u64::from(counted.jobs));
    format!(
        "| {} | {} | {} | {} | {} |",
        counted.jobs,
        all.usage.requests() / jobs,
        all.usage.write_units / jobs,
        all.usage.read_units / jobs,
        counted.history.steps / jobs,
    )
}
