//! The tables of a report: jobs, brackets with their rungs, and decisions by trial.

use std::collections::BTreeSet;
use std::fmt::Write;

use tuning::summary::JobSummary;
use use_cases::describe::state_of;
use use_cases::words::drawn;

use super::escape::text;
use super::facts::Facts;
use crate::event_text::{parameters, stop_reason};
use crate::text::{clock, maybe, usd};

/// Maximum number of hyperparameters with their own columns. More share one column.
const PARAMETER_COLUMNS_MAX: usize = 8;

/// A cell: its escaped text, and its sort key if it differs from the text.
struct Cell {
    shown: String,
    sorts_by: Option<String>,
}

impl Cell {
    fn text(shown: &str) -> Self {
        Self { shown: text(shown), sorts_by: None }
    }

    fn number(number: &impl ToString) -> Self {
        let shown = number.to_string();
        Self { sorts_by: Some(shown.clone()), shown }
    }

    fn shown_as(shown: &str, number: Option<impl ToString>) -> Self {
        Self {
            shown: text(shown),
            sorts_by: Some(number.map(|number| number.to_string()).unwrap_or_default()),
        }
    }

    fn write(&self, row: &mut String) {
        let Self { shown, sorts_by } = self;
        let _ = match sorts_by {
            Some(number) => write!(row, "<td class=\"n\" data-v=\"{}\">{shown}</td>", text(number)),
            None => write!(row, "<td>{shown}</td>"),
        };
    }
}

/// Returns the table of all jobs.
pub(super) fn jobs(facts: &Facts) -> String {
    let names: BTreeSet<&str> =
        facts.jobs.iter().flat_map(|job| job.configuration.0.keys()).map(String::as_str).collect();
    let apart = names.len() <= PARAMETER_COLUMNS_MAX;
    let mut html = String::from("<table class=\"sortable\" id=\"jobs\"><thead><tr>");
    let mut head = |title: &str| {
        let _ = write!(html, "<th scope=\"col\"><button type=\"button\">{}</button></th>", text(title));
    };
    for title in ["trial", "try", "bracket"] {
        head(title);
    }
    if apart {
        for name in &names {
            head(name);
        }
    } else {
        head("hyperparameters");
    }
    if facts.loaded.tuning.definition.promotes().is_some() {
        head("to epoch");
    }
    for title in ["epochs", "last", "best", "status", "reason", "billed s", "cost", "chosen"] {
        head(title);
    }
    html.push_str("</tr></thead><tbody>");
    let best = facts.loaded.state.best.as_ref().map(|best| best.job);
    for job in &facts.jobs {
        html.push_str(if Some(job.job) == best { "<tr class=\"best\">" } else { "<tr>" });
        for cell in cells(facts, job, &names, apart) {
            cell.write(&mut html);
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table>");
    html
}

fn cells(facts: &Facts, job: &JobSummary, names: &BTreeSet<&str>, apart: bool) -> Vec<Cell> {
    let mut cells =
        vec![Cell::number(&job.job.trial), Cell::number(&job.job.attempt), Cell::number(&job.bracket)];
    if apart {
        cells.extend(names.iter().map(|name| {
            let value = job.configuration.0.get(*name).map_or("", String::as_str);
            match value.parse::<f64>() {
                Ok(number) if number.is_finite() => Cell::shown_as(value, Some(number)),
                Ok(_) | Err(_) => Cell::text(value),
            }
        }));
    } else {
        cells.push(Cell::text(&parameters(&job.configuration)));
    }
    cells.extend(job.level.map(|level| Cell::number(&level)));
    cells.extend([
        Cell::number(&job.resource),
        Cell::shown_as(&maybe(job.last_value), job.last_value),
        Cell::shown_as(&maybe(job.best_value), job.best_value),
        Cell::text(state_of(job)),
        Cell::text(&stop_reason(job)),
        Cell::shown_as(
            &job.billable_seconds.map_or_else(|| "-".to_owned(), |s| s.to_string()),
            job.billable_seconds,
        ),
        Cell::shown_as(&job.cost.map_or_else(|| "-".to_owned(), usd), job.cost.map(|cost| cost.0)),
        Cell::text(&drawn(
            facts.loaded.tuning.definition.sampler,
            facts.origins.get(&job.job.trial).copied(),
        )),
    ]);
    cells
}

/// Returns the table of brackets and rungs. `None` without Hyperband.
pub(super) fn rungs(facts: &Facts) -> Option<String> {
    let brackets = &facts.page.described.controller.brackets;
    if brackets.is_empty() {
        return None;
    }
    let promotes = facts.loaded.tuning.definition.promotes().is_some();
    let mut html = String::from("<table><thead><tr>");
    for title in ["bracket", "trials", "rung", "at epoch", "arrived", "continued"]
        .into_iter()
        .chain(promotes.then_some("waiting"))
    {
        let _ = write!(html, "<th scope=\"col\">{title}</th>");
    }
    html.push_str("</tr></thead><tbody>");
    for (number, bracket) in brackets.iter().enumerate() {
        for (rung, row) in bracket.rungs.iter().enumerate() {
            // The last rung has no comparison.
            let count =
                |number: Option<u32>| number.map_or_else(|| "-".to_owned(), |count| count.to_string());
            let compared = row.compared;
            let mut cells = vec![
                number.to_string(),
                bracket.trials_started.to_string(),
                rung.to_string(),
                row.resource.to_string(),
                count(compared.map(|compared| compared.arrived)),
                count(compared.map(|compared| compared.went_on)),
            ];
            cells.extend(promotes.then(|| count(compared.and_then(|compared| compared.waiting))));
            html.push_str("<tr>");
            for cell in cells {
                let _ = write!(html, "<td class=\"n\">{cell}</td>");
            }
            html.push_str("</tr>");
        }
    }
    html.push_str("</tbody></table>");
    Some(html)
}

/// Returns the decisions by trial, as collapsed sections.
pub(super) fn decisions(facts: &Facts) -> String {
    let created = facts.loaded.tuning.definition.created;
    let mut html = String::new();
    for (trial, lines) in &facts.decisions {
        let title = trial.map_or_else(|| "the tuning".to_owned(), |trial| format!("trial {trial}"));
        let _ = write!(html, "<details><summary>{title} ({})</summary><ol>", lines.len());
        let own = format!("{title}: ");
        for (at, line) in lines {
            let line = line.strip_prefix(&own).unwrap_or(line);
            let _ = write!(html, "<li><b>{}</b> {}</li>", clock(at.saturating_sub(created.0)), text(line));
        }
        html.push_str("</ol></details>");
    }
    html
}
