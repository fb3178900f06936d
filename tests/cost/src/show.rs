//! The rows of the tables in docs/COST.md and docs/PERFORMANCE.md, and the sentences about them in README.md and
//! docs/COST.md.

use stack_template::Template;

use crate::idle::{Charge, charges};
use crate::job::{Counted, FUNCTIONS, number};
use crate::logs::program;
use crate::price;

/// Formats an amount in USD with three decimals.
fn usd(amount: f64) -> String {
    format!("{amount:.3}")
}

/// Returns the rows of the standing charges.
pub fn idle(template: &Template, counted: &Counted) -> Vec<String> {
    let charges = charges(template, counted);
    let row = |what: &str, month: f64, default: &str| format!("| {what} | {} | {default} |", usd(month));
    let of_charge = |charge: &Charge| {
        let default =
            if charge.parameter.is_empty() { "always".to_owned() } else { format!("`{}`", charge.parameter) };
        row(&charge.what, charge.month, &default)
    };
    let mut rows: Vec<String> = charges.iter().map(of_charge).collect();
    rows.push(row("**all**", sum(&charges, |_| true), ""));
    rows.push(row("**by default: without the dashboard**", sum(&charges, Charge::is_default), ""));
    rows.push(row("**without dashboard and alarms**", sum(&charges, is_fixed), ""));
    rows
}

fn is_fixed(charge: &Charge) -> bool {
    charge.parameter.is_empty()
}

fn sum(charges: &[Charge], counts: impl Fn(&Charge) -> bool) -> f64 {
    charges.iter().filter(|charge| counts(charge)).map(|charge| charge.month).sum()
}

/// Returns the sentences about the standing charges, for README.md and docs/COST.md.
pub fn standing(template: &Template, counted: &Counted) -> [(&'static str, String); 2] {
    let charges = charges(template, counted);
    let (default, fixed) = (sum(&charges, Charge::is_default), sum(&charges, is_fixed));
    let (board, default_text) = (sum(&charges, |charge| !charge.is_default()), cents(default));
    let alarms = cents(default - fixed);
    [
        (
            "README.md",
            format!("An idle stack costs {default_text} USD a month, of which {alarms} are its alarms"),
        ),
        (
            "docs/COST.md",
            format!(
                "An idle stack costs {default_text} USD a month, {} USD without alarms, and {} USD more with a dashboard",
                cents(fixed),
                cents(board)
            ),
        ),
    ]
}

/// Returns the sentence on the cost of 1,000 training jobs, from the cheapest to the most expensive workload.
pub fn range(sums: &[f64]) -> String {
    let least = sums.iter().copied().fold(f64::INFINITY, f64::min);
    let most = sums.iter().copied().fold(0.0, f64::max);
    format!("1,000 training jobs cost {} to {} USD on top", cents(least), cents(most))
}

/// Formats an amount in USD with two decimals, rounded from the three decimals of the tables.
fn cents(amount: f64) -> String {
    let thousandths = (amount * 1_000.0).round();
    format!("{:.2}", (thousandths / 10.0).round() / 100.0)
}

/// Returns whether a document contains a row or a sentence, wherever its lines break.
///
/// Its figures may differ by a twentieth, and by two in the last place. So a change of the controller needs new
/// documents only if its costs change.
pub fn contains(document: &str, text: &str) -> bool {
    let known: Vec<&str> = document.split_whitespace().collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    known.windows(words.len()).any(|window| window.iter().zip(&words).all(|(known, word)| agree(known, word)))
}

fn agree(known: &str, word: &str) -> bool {
    let (Ok(figure), Ok(counted)) = (known.parse::<f64>(), word.parse::<f64>()) else {
        return known.trim_end_matches('.') == word.trim_end_matches('.');
    };
    let decimals = word.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let two_in_last_place = (0..decimals).fold(2.0, |unit, _| unit / 10.0);
    (figure - counted).abs() < (counted / 20.0).max(two_in_last_place) + f64::EPSILON
}

/// Returns the row of a workload: USD per 1,000 training jobs.
pub fn jobs(counted: &Counted) -> String {
    let bill = counted.per_job();
    let parts = [bill.writes, bill.reads, bill.functions, bill.logs, bill.other, bill.storage, bill.sum()];
    let cells: Vec<String> = parts.iter().map(|part| usd(part * 1_000.0)).collect();
    format!("| {} | {} | {} |", counted.workload.name(), counted.jobs, cells.join(" | "))
}

/// Returns a row per function: its use per training job.
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

/// Returns the row on the storage per training job.
pub fn stored(counted: &Counted) -> String {
    let (permanent, facts) = counted.stored();
    let year = permanent * 1_000.0 / price::GB * (price::STORED_GB + price::BACKUP_GB) * 12.0;
    format!("| {} | {:.1} | {:.1} | {} |", counted.workload.name(), permanent / 1e3, facts / 1e3, usd(year))
}

/// Returns the row on requests and units per training job.
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

#[cfg(test)]
mod tests {
    use super::contains;

    #[test]
    fn close_figures_agree_and_others_do_not() {
        let document = "| job | 100 | 0.100 | 41 |\nAn idle stack costs 2.20\nUSD a month.";
        for text in ["| job | 100 | 0.100 | 41 |", "| job | 104 | 0.102 | 43 |", "costs 2.28 USD a month"] {
            assert!(contains(document, text), "{text}");
        }
        let others = [
            "| jobs | 100 | 0.100 |",
            "| job | 110 | 0.100 |",
            "| 0.110 | 41 |",
            "| 0.100 | 38 |",
            "costs 2.40 USD",
        ];
        for text in others {
            assert!(!contains(document, text), "{text}");
        }
    }
}
