//! Prints the verdicts as text or JSON.

use console::{Style, style};
use serde_json::{Value, json};
use wire::request::usd as micro_usd;

use super::checks::CHECKS;
use super::evidence::Evidence;
use super::verdict::Verdict;
use crate::arguments::Output;
use crate::failure::Exit;
use crate::output::show_styled;
use crate::text::{clean, usd};

const DOCUMENT: &str = "docs/UNVERIFIED.md";
const WORD_WIDTH: usize = 9;
/// Indentation of the lines below a verdict.
pub(super) const INDENT: &str = "           ";

/// Prints the verdict of each check and returns the exit code.
pub(super) fn show(seen: &Evidence, name: &str, output: Output) -> Exit {
    let verdicts: Vec<Verdict> = CHECKS.iter().map(|check| (check.judge)(seen)).collect();
    show_styled(output, || as_text(&verdicts, seen, name), || as_json(&verdicts, seen, name));
    if verdicts.iter().any(|verdict| matches!(verdict, Verdict::No(_))) { Exit::Failed } else { Exit::Done }
}

fn as_json(verdicts: &[Verdict], seen: &Evidence, name: &str) -> Value {
    let checks = CHECKS.iter().zip(verdicts).map(|(check, verdict)| {
        let mut shown = check_json(check.id, check.assumes, verdict);
        if matches!(verdict, Verdict::No(_)) {
            shown["IfWrong"] = json!(check.otherwise);
        }
        shown
    });
    json!({
        "HyperParameterTuningJobName": name,
        "SpentUsd": seen.spent().map(micro_usd),
        "Checks": checks.collect::<Vec<Value>>(),
    })
}

fn as_text(verdicts: &[Verdict], seen: &Evidence, name: &str) -> String {
    let mut lines = Vec::new();
    for (check, verdict) in CHECKS.iter().zip(verdicts) {
        lines.push(check_text(check.id, check.assumes, verdict));
        if matches!(verdict, Verdict::No(_)) {
            lines.push(format!("{INDENT}effect: {} ({DOCUMENT}, {})", check.otherwise, check.id));
        }
    }
    let count = |word| verdicts.iter().filter(|verdict| verdict.word() == word).count();
    let spent = seen.spent().map_or("nothing".to_owned(), usd);
    let (yes, no, untried) = (count("yes"), count("no"), count("not tried"));
    lines.push(format!("\n{yes} yes, {no} no, {untried} not tried; {name} cost {spent}\n"));
    lines.join("\n")
}

/// Returns the members of a check that each form of the doctor shows.
pub(super) fn check_json(id: &str, assumes: &str, verdict: &Verdict) -> Value {
    json!({"Check": id, "Verdict": verdict.word(), "Assumption": assumes, "Seen": verdict.evidence()})
}

/// Returns the line of a check and the line of its evidence.
pub(super) fn check_text(id: &str, assumes: &str, verdict: &Verdict) -> String {
    let word = colour(verdict).apply_to(format!("{:WORD_WIDTH$}", verdict.word()));
    format!("{word}  {id}: {assumes}\n{INDENT}{}", style(one_line(verdict.evidence())).dim())
}

fn colour(verdict: &Verdict) -> Style {
    match verdict {
        Verdict::Yes(_) => Style::new().green(),
        Verdict::No(_) => Style::new().red().bold(),
        Verdict::Warning(_) | Verdict::NotTried(_) => Style::new().yellow(),
    }
}

/// Returns text from outside the program on one line.
pub(super) fn one_line(text: &str) -> String {
    clean(text).replace('\n', " ")
}
