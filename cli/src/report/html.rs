//! The HTML page: summary, curves, costs, jobs, brackets and decisions, with embedded style and script.

use std::fmt::Write;

use super::escape::text;
use super::facts::Facts;
use super::{curves, money, tables};
use crate::text::{duration, utc};

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// Returns the report as HTML.
pub(super) fn page(facts: &Facts) -> String {
    let name = text(&facts.loaded.tuning.definition.name);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>\
         {name} - hyperband</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    html.push_str(&header(facts));
    let mut section = |id: &str, title: &str, content: &str| {
        let _ = writeln!(
            html,
            "<section aria-labelledby=\"{id}\"><h2 id=\"{id}\">{title}</h2>{content}</section>"
        );
    };
    section("summary", "Summary", &summary(facts));
    let nothing = || "<p class=\"note\">No data yet.</p>".to_owned();
    let chart = |svg: Option<String>, note: &str| {
        svg.map_or_else(nothing, |svg| format!("<figure>{svg}<figcaption>{note}</figcaption></figure>"))
    };
    let rungs = if facts.loaded.tuning.definition.promotes().is_some() {
        "where trials wait and the best ones are promoted"
    } else {
        "where the worst trials are stopped"
    };
    let note = format!(
        "Each line is a trial. Point to a line to see its hyperparameters. Dashed lines are rungs, {rungs}. The thick \
         line is the best job."
    );
    section("curves", "Learning curves", &chart(curves::chart(facts), &note));
    let note = "The lower line is the spent amount. The upper line adds the amount reserved for running jobs. It never \
         exceeds the cap.";
    section("money", "Cost", &chart(money::chart(facts), note));
    let hint = "<p class=\"note\">Click a column heading to sort.</p>";
    let jobs = format!(
        "{hint}<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Training jobs\">{}</div>",
        tables::jobs(facts)
    );
    section("jobs-title", "Training jobs", &jobs);
    if let Some(rungs) = tables::rungs(facts) {
        section("rungs", "Brackets and rungs", &rungs);
    }
    section("decisions", "Decisions", &tables::decisions(facts));
    let _ = write!(html, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    html
}

fn header(facts: &Facts) -> String {
    let page = &facts.page;
    let definition = &facts.loaded.tuning.definition;
    let status = page.status();
    let why = page.why().map(|why| format!(": {}", text(&why))).unwrap_or_default();
    format!(
        "<header><h1>{}</h1><p><span class=\"status {}\">{}</span>{why}</p></header>\n",
        text(&definition.name),
        text(&status.to_lowercase()),
        text(status)
    )
}

fn summary(facts: &Facts) -> String {
    let page = &facts.page;
    let loaded = &facts.loaded;
    let mut rows = String::from("<dl>");
    let mut row = |term: &str, content: &str| {
        let _ = write!(rows, "<dt>{term}</dt><dd>{content}</dd>");
    };
    match &page.described.best_training_job {
        Some(best) => {
            row("best job", &format!("<b>{}</b>", text(&page.best_text(best))));
            row("", &format!("<code>{}</code>", text(&best.name)));
            let pairs = best.tuned.iter();
            let pairs = pairs.map(|(name, value)| format!("<code>{} = {}</code>", text(name), text(value)));
            row("hyperparameters", &pairs.collect::<Vec<_>>().join(" "));
        }
        None => row("best job", "none yet"),
    }
    if let Some((_, location)) = page.best_model() {
        row("best model", &format!("<code>{}</code>", text(&location.text())));
    }
    if let Some(seen) = page.better_on_the_way() {
        row("best seen", &text(&seen));
    }
    if let Some(trials) = page.trials() {
        row("trials", &text(&trials));
    }
    row("jobs", &text(&page.counts()));
    row("epochs", &page.epochs().to_string());
    row("billed", &format!("{} s", page.billed_seconds()));
    if let Some(cost) = page.cost() {
        row("cost", &text(&cost));
    }
    row("wall time", &duration(page.wall_ms()));
    row("submitted", &utc(loaded.tuning.definition.created.0));
    rows.push_str("</dl>");
    rows.push_str(&money::bar(facts).unwrap_or_default());
    rows
}
