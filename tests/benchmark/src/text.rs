//! Reports as tables in Markdown.

use std::fmt::Write;

use crate::case::Source;
use crate::report::{CaseReport, Estimate, Overall, REGRET_MIN, Row};
use crate::world::{Axis, World};

/// Returns the table of a case.
pub fn of_case(report: &CaseReport, world: &World) -> String {
    let (best, median) = report.best_and_median;
    let kind = match report.source {
        Source::Recorded => "",
        Source::HeldOut => ", held out",
        Source::Analytic => ", an analytic function",
    };
    let mut text = format!("### {}{kind}\n\nBest {best:.6}, median {median:.6}.\n\n", report.table);
    let mut heads = vec!["method".to_owned(), "seeds".to_owned()];
    heads.extend(world.points().iter().map(|at| match world.axis {
        Axis::Time => format!("obs {at:.0} s (se)"),
        Axis::Billed => format!("obs {} h billed (se)", at / 3_600.0),
        Axis::End => "obs at end (se)".to_owned(),
    }));
    heads.extend(["full (se)", "trials"].map(str::to_owned));
    let billed: &[&str] = if world.is_timed() { &["billed h"] } else { &["billed min", "share"] };
    heads.extend(billed.iter().map(|head| (*head).to_owned()));
    let rule = vec!["---".to_owned(); heads.len()];
    for cells in [heads, rule].into_iter().chain(report.rows.iter().map(|row| cells(row, world))) {
        line(&mut text, &cells);
    }
    text.push('\n');
    for ratio in &report.ratios {
        let at: Vec<String> = ratio.at.iter().map(|ratio| number(*ratio, 2)).collect();
        let others = marked(ratio.others, world);
        let _ = writeln!(text, "- {} / best of the {others}: {}", ratio.method, at.join(", "));
    }
    text
}

fn cells(row: &Row, world: &World) -> Vec<String> {
    let mark = if row.recorded { " (recorded, without noise)" } else { "" };
    let mut cells = vec![format!("{}{mark}", row.method), row.seeds.to_string()];
    cells.extend(row.obs.iter().chain([&row.full]).map(|estimate| with_error(*estimate)));
    cells.push(number(row.trials, 0));
    let (billed, digits) =
        if world.is_timed() { (row.billed_minutes / 60.0, 2) } else { (row.billed_minutes, 1) };
    cells.push(number(Some(billed), digits));
    cells.extend(row.billed_share.map(|share| format!("{:.0} %", share * 100.0)));
    cells
}

/// Returns the table of the geometric means.
pub fn of_overall(means: &[Overall], world: &World) -> String {
    let mut text = format!(
        "### Geometric means over tables and times\n\nRegrets below {REGRET_MIN} count as {REGRET_MIN}.\n\n"
    );
    line(&mut text, &["ratio", "tables", "mean"].map(str::to_owned));
    line(&mut text, &["---"; 3].map(str::to_owned));
    for mean in means {
        let ratio = format!("{} / best of the {}", mean.method, marked(mean.others, world));
        line(&mut text, &[ratio, mean.tables.to_owned(), number(mean.mean, 3)]);
    }
    text
}

/// Returns the name of a group of other methods, with a mark if its figures are from another world.
fn marked(others: &str, world: &World) -> String {
    let is_other_world = others == "recorded peers" && !world.is_plain();
    format!("{others}{}", if is_other_world { ", which had neither noise nor unique rows" } else { "" })
}

fn line(text: &mut String, cells: &[String]) {
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

fn with_error(estimate: Option<Estimate>) -> String {
    let Some(Estimate { mean, se }) = estimate else { return "-".to_owned() };
    se.map_or_else(|| format!("{mean:.3}"), |se| format!("{mean:.3} ({se:.3})"))
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}
