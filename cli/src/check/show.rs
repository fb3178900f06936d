//! Formats the findings as text and as JSON.

use std::fmt::Write;

use console::style;
use serde_json::{Value, json};
use wire::algorithm::Emission;
use wire::request::{Request, RequestError};

use super::Checked;
use super::log::{Findings, Found};
use crate::text::{clean, or_dash, short, table};
use crate::warning;

const NAME_CHARACTERS: usize = 40;
const VALUE_CHARACTERS: usize = 16;

pub(super) fn text(checked: &Checked) -> String {
    let valid = style("valid").green().bold();
    let mut text = format!("{}: the request is {valid}\n", clean(checked.request.name()));
    if !checked.required_by_stack.is_empty() {
        text.push_str(&note(&checked.required_by_stack));
    }
    for hint in hints(checked) {
        let _ = writeln!(text, "note: {}", clean(&hint));
    }
    if let Some(log) = &checked.log {
        text.push_str(&log_table(log));
    }
    let count = checked.warnings.len();
    // Writing to a string cannot fail.
    let _ = match count {
        0 => writeln!(text, "no warnings"),
        1 => writeln!(text, "\n1 warning"),
        _ => writeln!(text, "\n{count} warnings"),
    };
    text.push_str(&warning::text(&checked.warnings));
    text
}

/// Returns the note about fields that a stack requires.
fn note(paths: &[String]) -> String {
    let job = "TrainingJobDefinition";
    let prefix = format!("{job}.");
    let names: Vec<&str> = paths.iter().map(|path| path.strip_prefix(&prefix).unwrap_or(path)).collect();
    format!(
        "note: this machine has defaults for fields of {job} that a stack requires: {}. `hyperband check --stack` \
         validates without them.\n",
        names.join(", ")
    )
}

/// Returns hints that apply to most requests, so they are no warnings.
fn hints(checked: &Checked) -> Vec<String> {
    let adds = checked.required_by_stack.is_empty() && checked.request.adds_unbuffered();
    let unbuffered = adds.then(|| {
        "training jobs of a stack get PYTHONUNBUFFERED=1, so that each value arrives when it is printed; Environment can \
         set another value"
            .to_owned()
    });
    best_epoch(&checked.request).into_iter().chain(unbuffered).collect()
}

/// Returns the hint that the best value can be of an earlier epoch than the model.
fn best_epoch(request: &Request) -> Option<String> {
    let is_at_end = request.built_in_metric().is_some_and(|metric| metric.emission == Emission::AtEnd)
        || request.built_in().is_some_and(|algorithm| !algorithm.emits_while_running());
    if request.refits() || !request.strategy().compares_trials() || is_at_end {
        return None;
    }
    // A user cannot change what a built-in algorithm saves.
    let save = match request.built_in() {
        Some(_) => String::new(),
        None => format!("save it whenever {} improves, or ", request.objective_metric()),
    };
    Some(format!(
        "the best value of any epoch counts, but the model is that of the last epoch: {save}set Controller.Refit to \
         \"Best\""
    ))
}

/// Returns the matches of each pattern as a table.
pub(crate) fn log_table(log: &Findings) -> String {
    let cell = |text: &Option<String>| or_dash(text.as_ref(), |text| short(text, VALUE_CHARACTERS));
    let rows: Vec<Vec<String>> = log
        .metrics
        .iter()
        .map(|found| {
            let mut row = vec![
                short(&found.name, NAME_CHARACTERS),
                found.matched.to_string(),
                cell(&found.first),
                cell(&found.last),
            ];
            row.extend(log.captures().then(|| epochs(found)));
            row
        })
        .collect();
    let head = ["METRIC", "LINES", "FIRST", "LAST", "EPOCHS"];
    let columns = if log.captures() { &head[..] } else { &head[..4] };
    let by =
        log.definition.as_deref().map_or(String::new(), |name| format!(" of definition {}", clean(name)));
    let mut text = format!("\n{} lines of log{by}\n{}", log.lines, table(columns, &rows, &[1, 2, 3]));
    for found in &log.metrics {
        for note in notes(found) {
            let _ = writeln!(text, "{}: {}", short(&found.name, NAME_CHARACTERS), clean(&note));
        }
    }
    text
}

/// Returns a text such as `0 to 26, 2 missing (the first is 7), 1 repeated`.
fn epochs(found: &Found) -> String {
    let epochs = &found.epochs;
    let (Some(first), Some(last)) = (epochs.first, epochs.last) else { return "none captured".to_owned() };
    let mut text = format!("{first} to {last}");
    if let Some(missing) = epochs.first_missing() {
        let _ = write!(text, ", {} missing (the first is {missing})", epochs.missing());
    }
    for (count, word) in [
        (epochs.repeated, "repeated"),
        (epochs.decreased, "below the previous epoch"),
        (epochs.without, "without an epoch"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {count} {word}");
        }
    }
    text
}

fn notes(found: &Found) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(hint) = &found.hint {
        notes.push(format!("no value found: {hint}"));
    }
    if found.not_finite > 0 {
        notes.push(format!("{} values are NaN or infinite: they rank below every number", found.not_finite));
    }
    if let (count @ 1.., Some(captured)) = &found.not_a_number
        && found.matched > 0
    {
        notes.push(format!("{count} lines have '{captured}' or other text instead of a number"));
    }
    if found.too_long > 0 {
        notes.push(format!("{} lines are too long and were skipped", found.too_long));
    }
    notes
}

/// Returns the findings about a valid request as JSON.
pub(super) fn json(checked: &Checked) -> Value {
    json!({
        "Valid": true,
        "HyperParameterTuningJobName": checked.request.name(),
        "Algorithm": checked.request.built_in().map(|algorithm| algorithm.title),
        "Violations": [],
        "RequiredByStack": checked.required_by_stack,
        "Warnings": warning::json(&checked.warnings),
        "Notes": hints(checked),
        "Log": checked.log.as_ref().map(log_json),
    })
}

pub(super) fn invalid_json(error: &RequestError) -> Value {
    let violations: Vec<Value> = error
        .violations
        .iter()
        .map(|violation| json!({"Path": violation.path, "Message": violation.message}))
        .collect();
    json!({
        "Valid": false,
        "Code": error.code.as_str(),
        "Message": error.message,
        "Violations": violations,
        "Warnings": [],
        "Notes": [],
        "Log": null,
    })
}

fn log_json(log: &Findings) -> Value {
    let metrics: Vec<Value> = log.metrics.iter().map(|found| metric_json(log, found)).collect();
    json!({"TrainingJobDefinitionName": log.definition, "Lines": log.lines, "Metrics": metrics})
}

fn metric_json(log: &Findings, found: &Found) -> Value {
    let epochs = &found.epochs;
    let captured = log.captures().then(|| {
        json!({
            "First": epochs.first,
            "Last": epochs.last,
            "Missing": epochs.missing(),
            "Repeated": epochs.repeated,
            "BelowTheOneBefore": epochs.decreased,
            "WithoutEpoch": epochs.without,
        })
    });
    json!({
        "Name": found.name,
        "Regex": found.regex,
        "Lines": found.matched,
        "First": found.first,
        "Last": found.last,
        "NotFinite": found.not_finite,
        "NotANumber": found.not_a_number.0,
        "TooLong": found.too_long,
        "Epochs": captured,
        "Hint": found.hint,
    })
}
