//! `hyperband export`: writes the trials of a tuning as CSV or JSON lines, for tables and other tools.

use std::collections::BTreeSet;
use std::path::Path;

use ::report::document::{Document, Job, Outcome, Trial};
use serde_json::{Map, Value, json};
use tuning::unit::time::Time;
use wire::events::timestamp::format_utc;

use crate::arguments::{Export, Format};
use crate::failure::{Exit, Failure};
use crate::metrics;
use crate::output::{json_line, print_err, print_out_raw};
use crate::report::document_of;
use crate::stored_tuning::StoredTuning;

pub(crate) async fn export(options: Export) -> Result<Exit, Failure> {
    let (tuning, document) = document_of(&options.place, &options.name).await?;
    let text = match options.format {
        Format::Jsonl => jsonl(&tuning, &document).await?,
        Format::Csv => csv(&tuning.row.id, &document),
    };
    match options.file.as_deref() {
        None => print_out_raw(&text),
        Some(file) if file == Path::new("-") => print_out_raw(&text),
        Some(file) => {
            std::fs::write(file, &text).map_err(|error| Failure::file("cannot write", file, &error))?;
            print_err(&format!("wrote {} ({} trials)\n", file.display(), document.trials.len()));
        }
    }
    Ok(Exit::Done)
}

/// Returns a line for each trial. In a data directory, it also has the curves of the metrics other than the objective, at
/// the epochs of the objective's curve.
async fn jsonl(tuning: &StoredTuning, document: &Document) -> Result<String, Failure> {
    let id = &tuning.row.id;
    let Some(records) = &tuning.jobs else {
        return Ok(document.trials.iter().map(|trial| json_line(&row(id, document, trial))).collect());
    };
    let loaded = tuning.store.load(id).await?.ok_or_else(|| tuning.deleted())?;
    let mut text = String::new();
    for trial in &document.trials {
        let mut row = row(id, document, trial);
        let jobs: Vec<String> = trial.jobs.iter().map(|job| format!("{id}-{}", job.key)).collect();
        let curves = metrics::curves(records, &loaded, &jobs);
        let curves = curves.map_err(|error| {
            Failure::usage(error.to_string())
                .context(format!("cannot read the logs of trial {}", trial.number))
        })?;
        for (metric, curve) in curves {
            let at = |epoch: u32| Some((epoch, *curve.get(&u64::from(epoch))?));
            row["Metrics"][metric] =
                json!(epochs(trial).take(trial.curve.values.len()).filter_map(at).collect::<Vec<_>>());
        }
        text += &json_line(&row);
    }
    Ok(text)
}

/// Returns the members of a trial. Unknown ones are null.
fn row(id: &str, document: &Document, trial: &Trial) -> Value {
    let head = &document.head;
    let parameters = head.parameters.iter().map(|parameter| &parameter.name).zip(&trial.values);
    let hyperparameters: Map<String, Value> =
        parameters.filter_map(|(name, value)| Some((name.clone(), json!(value.as_ref()?)))).collect();
    let points = epochs(trial).zip(&trial.curve.values);
    let curve: Vec<(u32, Option<f64>)> = points.map(|(epoch, value)| (epoch, *value)).collect();
    // The values of a curve are rounded, and the best one is not.
    let distance = |best: f64, value: Option<f64>| value.map_or(f64::INFINITY, |value| (value - best).abs());
    let nearest = |best: f64| {
        curve.iter().min_by(|(_, one), (_, other)| distance(best, *one).total_cmp(&distance(best, *other)))
    };
    let best = trial.best.and_then(nearest);
    let (seconds, cost, ended) = totals(&trial.jobs);
    let time = |since: i64| format_utc(Time(head.created.saturating_add(since)));
    json!({
        "Trial": trial.number,
        "Bracket": trial.bracket,
        "Status": status(trial.outcome, head.interrupted.is_some()),
        "HyperParameters": hyperparameters,
        "FinalValue": trial.last,
        "BestValue": trial.best,
        "BestEpoch": best.map(|(epoch, _)| epoch),
        "Epochs": trial.epochs,
        "TrainingJobs": trial.jobs.iter().map(|job| format!("{id}-{}", job.key)).collect::<Vec<_>>(),
        "BillableSeconds": seconds,
        "CostUsd": cost.map(dollars),
        "StartTime": trial.jobs.first().map(|job| time(job.ordered)),
        "EndTime": ended.map(time),
        "Reason": trial.why,
        "Metrics": {&head.metric: curve},
        "FinalMetrics": trial.metrics,
    })
}

/// The states of jobs that never started.
const UNSTARTED: [&str; 2] = ["NotStarted", "Refused"];

/// Returns the billed seconds, the booked cost in micro-dollars and the end of the jobs of a trial; `None` until all are known.
/// A job that never started has none of them.
fn totals(jobs: &[Job]) -> (Option<u64>, Option<u64>, Option<i64>) {
    let started: Vec<&Job> = jobs.iter().filter(|job| !UNSTARTED.contains(&job.state.as_str())).collect();
    let sum = |amount: fn(&Job) -> Option<u64>| {
        let amounts = started.iter().map(|job| amount(job));
        amounts.sum::<Option<u64>>().filter(|_| !started.is_empty())
    };
    let ended = started.last().and_then(|job| job.ended);
    (sum(|job| job.billed_seconds), sum(|job| job.cost.map(|cost| cost.0)), ended)
}

fn epochs(trial: &Trial) -> Box<dyn Iterator<Item = u32> + '_> {
    if trial.curve.epochs.is_empty() { Box::new(1..) } else { Box::new(trial.curve.epochs.iter().copied()) }
}

fn status(outcome: Outcome, interrupted: bool) -> &'static str {
    match outcome {
        Outcome::Running | Outcome::Queued | Outcome::Retrying if interrupted => "Interrupted",
        Outcome::Running | Outcome::Queued | Outcome::Retrying => "InProgress",
        Outcome::Waiting => "Waiting",
        Outcome::Complete => "Completed",
        Outcome::Stopped | Outcome::Cut => "Stopped",
        Outcome::Failed => "Failed",
    }
}

/// Returns an amount as a JSON number.
fn dollars(micro: u64) -> Value {
    let text = tuning::unit::money::MicroUsd(micro).to_string();
    text.parse::<serde_json::Number>().map_or(Value::Null, Value::Number)
}

/// Returns a table with a row for each trial: without the curves, but with a column for each hyperparameter.
fn csv(id: &str, document: &Document) -> String {
    const BEFORE: [&str; 3] = ["Trial", "Bracket", "Status"];
    const AFTER: [&str; 9] = [
        "FinalValue",
        "BestValue",
        "BestEpoch",
        "Epochs",
        "BillableSeconds",
        "CostUsd",
        "StartTime",
        "EndTime",
        "Reason",
    ];
    let parameters: Vec<&str> =
        document.head.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    let metrics: BTreeSet<&String> = document.trials.iter().flat_map(|trial| trial.metrics.keys()).collect();
    let names = BEFORE.iter().chain(&parameters).chain(&AFTER).map(|name| cell(&json!(name)));
    let names = names.chain(metrics.iter().map(|name| cell(&json!(name))));
    let mut lines = vec![names.collect::<Vec<_>>().join(",")];
    for trial in &document.trials {
        let row = row(id, document, trial);
        let own = BEFORE.iter().map(|name| &row[name]);
        let values = parameters.iter().map(|name| &row["HyperParameters"][name]);
        let others = metrics.iter().map(|name| &row["FinalMetrics"][name.as_str()]);
        let cells = own.chain(values).chain(AFTER.iter().map(|name| &row[name])).chain(others).map(cell);
        lines.push(cells.collect::<Vec<_>>().join(","));
    }
    lines.join("\n") + "\n"
}

/// Returns a cell. Quotes are doubled, as in RFC 4180.
fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A promotion can be ordered and cancelled before its job starts.
    #[test]
    fn regression_a_job_that_never_started_does_not_hide_the_cost_of_earlier_ones() {
        let job = |own: Value| {
            let mut all = json!({"key": "0-0-1", "state": "Completed", "ordered": 0, "phases": []});
            all.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            serde_json::from_value::<Job>(all).unwrap()
        };
        let billed = || job(json!({"billedSeconds": 60, "cost": 7, "ended": 5}));
        let cancelled = || job(json!({"state": "NotStarted"}));
        assert_eq!(totals(&[billed(), cancelled()]), (Some(60), Some(7), Some(5)));
        assert_eq!(totals(&[billed(), billed()]), (Some(120), Some(14), Some(5)));
        assert_eq!(totals(&[cancelled()]), (None, None, None));
        let running = job(json!({"state": "Training"}));
        assert_eq!(totals(&[billed(), running]), (None, None, None), "the sums are not known yet");
    }

    #[test]
    fn cells_with_separators_are_quoted() {
        for (value, expected) in [
            (json!(null), ""),
            (json!(0.5), "0.5"),
            (json!("relu"), "relu"),
            (json!("a,b"), "\"a,b\""),
            (json!("say \"x\"\nnow"), "\"say \"\"x\"\"\nnow\""),
        ] {
            assert_eq!(cell(&value), expected);
        }
    }
}
