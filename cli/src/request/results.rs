//! `--parent FILE`: results of other tools, in a table of CSV or JSON lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use regex::Regex;
use search::{Configuration, Domain, Parameter, Space};
use serde_json::{Map, Value, json};
use tuning::definition::{INSTANCE_COUNT, Objective};
use wire::request::Request;

use crate::controller_list;
use crate::failure::Failure;
use crate::output::print_err;

/// The longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// The most results of a request.
const RESULTS_MAX: usize = search::history::OBSERVATIONS_MAX;
/// The most bytes of all results. A request has at most 200,000.
const RESULTS_BYTES_MAX: usize = 100_000;
/// Before the name of a hyperparameter, in the tables of Optuna, Ray Tune, Weights & Biases and this program.
const BEFORE: [&str; 7] = ["params_", "params.", "params/", "config.", "config/", "HyperParameters.", ""];
/// Columns of the objective, where none has its name: of this program and of Optuna.
const VALUES: [&str; 3] = ["BestValue", "FinalValue", "value"];
/// Columns of the state of a trial.
const STATES: [&str; 4] = ["state", "State", "status", "Status"];
/// States of a trial whose program failed.
const FAILED: [&str; 5] = ["fail", "failed", "error", "crashed", "killed"];

/// A row: the text of each column.
type Row = BTreeMap<String, String>;
/// A result: its value for which less is better, and its member of `KnownResults`.
type Found = (f64, Map<String, Value>);

/// Fills `KnownResults` from `files`: the results with a value of the objective and of each hyperparameter in its range. Of
/// several at one configuration the best one counts. Of too many it takes the better half of the most that a request may
/// have, and an even selection of the others. Leaves a request that is invalid for validation to reject.
pub(super) fn append(body: &mut Value, files: &[String]) -> Result<(), Failure> {
    let request = Request::from_stored(body.clone());
    let Some(space) = request.space().filter(|_| !files.is_empty()) else { return Ok(()) };
    let mut all: Vec<Found> = Vec::new();
    for file in files {
        all.extend(of_file(Path::new(file), &request, &space)?);
    }
    all.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let metric = request.objective_metric();
    let mut seen = BTreeSet::new();
    all.retain(|(_, result)| {
        let own: Vec<String> =
            result.iter().filter(|(name, _)| *name != metric).map(|(_, v)| v.to_string()).collect();
        seen.insert(own)
    });
    let most = RESULTS_MAX.saturating_sub(request.known_result_count());
    let bytes = all.iter().map(|(_, result)| json!(result).to_string().len()).max().unwrap_or(1);
    let most = most.min(RESULTS_BYTES_MAX / bytes.max(1));
    let count = all.len();
    let kept = selected(all, most);
    if kept.len() < count {
        print_err(&format!(
            "{} of {count} distinct configurations are used: the better half, and a sample\n",
            kept.len()
        ));
    }
    controller_list::append(body, "KnownResults", kept);
    Ok(())
}

fn of_file(path: &Path, request: &Request, space: &Space) -> Result<Vec<Found>, Failure> {
    let shown = path.display();
    let rows = rows(path, &text(path)?).map_err(|message| {
        Failure::usage(format!("cannot read the results in {shown}: {message}"))
            .hint("the file is CSV with a line of names (.csv), or has one JSON object in each line (.jsonl)")
    })?;
    let metric = request.objective_metric();
    let Some(column) = objective_column(&rows, metric) else {
        let names = rows
            .first()
            .map_or("no rows".to_owned(), |row| row.keys().cloned().collect::<Vec<_>>().join(", "));
        return Err(Failure::usage(format!(
            "no column of {shown} has the objective '{metric}': the file has {names}"
        ))
        .hint(format!("name the column of its values '{metric}'")));
    };
    let maximize = request.objective() == Objective::Maximize;
    let found: Vec<Found> =
        rows.iter().filter_map(|row| result(row, space, (&column, metric), maximize)).collect();
    let used = format!("{} of {} results in {shown}", found.len(), rows.len());
    if found.is_empty() {
        let names = space.parameters().iter().map(|parameter| parameter.name.as_str()).collect::<Vec<_>>();
        return Err(Failure::usage(format!(
            "{used} have a number in the column '{column}', and values of {} in their ranges",
            names.join(", ")
        ))
        .hint("name the columns as in the request, or widen its ranges"));
    }
    print_err(&format!("{used} count, by the column '{column}'\n"));
    Ok(found)
}

fn text(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text));
    read.map_err(|error| Failure::file("cannot read the results", path, &error))?;
    if u64::try_from(text.len()).is_ok_and(|bytes| bytes > FILE_BYTES_MAX) {
        return Err(Failure::usage(format!(
            "{} has more than {} MiB: expected at most that; keep its best results",
            path.display(),
            FILE_BYTES_MAX >> 20
        )));
    }
    Ok(text)
}

/// Returns the rows of a table.
fn rows(path: &Path, text: &[u8]) -> Result<Vec<Row>, String> {
    let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    match suffix.to_ascii_lowercase().as_str() {
        "csv" => {
            let mut table = csv::Reader::from_reader(text);
            table.deserialize::<Row>().map(|row| row.map_err(|error| error.to_string())).collect()
        }
        "jsonl" => {
            // Python writes numbers that JSON lacks.
            let lacking =
                Regex::new(r#"("(?:[^"\\]|\\.)*")|-?Infinity|NaN"#).map_err(|error| error.to_string())?;
            let text = str::from_utf8(text).map_err(|error| error.to_string())?;
            let lines = (1_usize..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
            let row = |(number, line)| {
                let line = lacking.replace_all(line, |found: &regex::Captures<'_>| {
                    found.get(1).map_or("null", |text| text.as_str()).to_owned()
                });
                let members: Map<String, Value> =
                    serde_json::from_str(&line).map_err(|error| format!("line {number}: {error}"))?;
                Ok(flat(members))
            };
            lines.map(row).collect()
        }
        _ => Err("its name ends with neither .csv nor .jsonl".to_owned()),
    }
}

/// Returns the members of an object, and those of its objects as `OBJECT.MEMBER`.
fn flat(members: Map<String, Value>) -> Row {
    let text = |value: Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    };
    let mut row = Row::new();
    for (name, value) in members {
        match value {
            Value::Object(inner) => {
                row.extend(inner.into_iter().map(|(key, value)| (format!("{name}.{key}"), text(value))));
            }
            value => _ = row.insert(name, text(value)),
        }
    }
    row
}

/// Returns the column of the objective. The metrics in a line of this program name its own objective.
fn objective_column(rows: &[Row], metric: &str) -> Option<String> {
    let first = rows.first()?;
    let own = |name: &&String| name.starts_with("Metrics.");
    let is_other = first.keys().any(|name| own(&name)) && !first.contains_key(&format!("Metrics.{metric}"));
    let columns = std::iter::once(metric).chain(VALUES.into_iter().filter(|_| !is_other));
    columns.map(str::to_owned).find(|name| rows.iter().any(|row| row.contains_key(name)))
}

/// Returns the result of a row that has a number in the column of the objective, and a value of each hyperparameter in its
/// range.
fn result(row: &Row, space: &Space, (column, metric): (&str, &str), maximize: bool) -> Option<Found> {
    let cell = |name: &str| row.get(name).map(|text| text.trim());
    let failed = |name: &str| {
        let state = cell(name).and_then(|state| state.rsplit('.').next()).unwrap_or_default();
        FAILED.iter().any(|failed| state.eq_ignore_ascii_case(failed))
    };
    // A trial of this program without a final value diverged at its end.
    if STATES.iter().any(|name| failed(name)) || cell("FinalValue") == Some("") {
        return None;
    }
    let number: f64 = cell(column)?.parse().ok().filter(|number: &f64| number.is_finite())?;
    let mut configuration = Configuration::default();
    for parameter in space.parameters() {
        let name = &parameter.name;
        let mut columns = BEFORE.iter().filter_map(|before| cell(&format!("{before}{name}")));
        let text = match columns.find(|text| !text.is_empty()) {
            Some(text) => value_of(parameter, text)?,
            // Its trials had the number of instances of their time.
            None if name == INSTANCE_COUNT => middle(space, name)?,
            None => return None,
        };
        configuration.0.insert(name.clone(), text);
    }
    let own = space.normalized(&configuration).ok()?;
    let mut known: Map<String, Value> =
        own.iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
    known.insert(metric.to_owned(), json!(number));
    Some((if maximize { -number } else { number }, known))
}

/// Returns the value of a hyperparameter in the text of a cell: pandas writes whole numbers with a fraction, and Python
/// writes `True`.
fn value_of(parameter: &Parameter, text: &str) -> Option<String> {
    match &parameter.domain {
        Domain::Integer { .. } => {
            let whole = text.strip_suffix(".0").unwrap_or(text);
            Some(whole.to_owned())
        }
        Domain::Continuous { .. } => Some(text.to_owned()),
        Domain::Categorical { values } | Domain::Ordinal { values } => {
            let exact = values.iter().find(|value| *value == text);
            let mut alike = values.iter().filter(|value| value.eq_ignore_ascii_case(text));
            let only = alike.next().filter(|_| alike.next().is_none());
            exact.or(only).cloned()
        }
    }
}

fn middle(space: &Space, name: &str) -> Option<String> {
    space.decode(&vec![0.5; space.dimensions()]).get(name).map(str::to_owned)
}

/// Returns at most `most` results of those in `found`, which are in order.
fn selected(found: Vec<Found>, most: usize) -> Vec<Map<String, Value>> {
    let (count, best) = (found.len(), most - most / 2);
    let (others, room) = (count.saturating_sub(best), most / 2);
    let is_kept = |index: usize| {
        let place = index.saturating_sub(best);
        let step = |place: usize| place * room / others.max(1);
        count <= most || index < best || step(place) != step(place + 1)
    };
    let numbered = found.into_iter().enumerate();
    numbered.filter(|(index, _)| is_kept(*index)).map(|(_, (_, row))| row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> Space {
        let text = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        let parameter = |name: &str, domain| Parameter { name: name.to_owned(), domain };
        let scaling = search::Scaling::Linear;
        Space::new(vec![
            parameter("lr", Domain::Continuous { min: 0.01, max: 1.0, scaling }),
            parameter("n", Domain::Integer { min: 1, max: 9, scaling }),
            parameter("kind", Domain::Categorical { values: text(&["1e-2", "a,b", "true"]) }),
        ])
        .unwrap()
    }

    fn found(file: &str, text: &str) -> Vec<String> {
        let rows = rows(Path::new(file), text.as_bytes()).unwrap();
        let column = objective_column(&rows, "loss").unwrap();
        let results = rows.iter().filter_map(|row| result(row, &space(), (&column, "loss"), false));
        results
            .map(|(_, row)| {
                row.values()
                    .map(|v| v.as_str().map_or(v.to_string(), str::to_owned))
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect()
    }

    #[test]
    fn tables_of_several_tools_are_read() {
        for (file, text, expected) in [
            // A number of 30 digits elsewhere, a category that looks like a number, a line without a value.
            (
                "r.CSV",
                "lr,n,kind,loss,x\n0.1,5,1e-2,0.5,123456789012345678901234567890\n0.2,5,,0.4,\n0.2,5,true,nan,\n",
                "1e-2 0.5 0.1 5",
            ),
            // Pandas writes whole numbers so where a column has a gap. The number of the trial is no hyperparameter.
            (
                "o.csv",
                "n,value,params_lr,params_n,params_kind,state\n0,0.5,0.1,5.0,True,COMPLETE\n1,0.4,0.2,3.0,True,FAIL\n",
                "true 0.5 0.1 5",
            ),
            // Of this program: failed, diverged at its end, out of range.
            (
                "h.csv",
                "Status,lr,n,kind,FinalValue,BestValue\nStopped,0.1,5,\"a,b\",0.7,0.5\nFailed,0.1,5,true,0.1,0.4\n\
                Completed,0.1,5,true,,0.4\nCompleted,5,5,true,0.1,0.4\n",
                "a,b 0.5 0.1 5",
            ),
            (
                "h.jsonl",
                "\u{feff}{\"HyperParameters\": {\"lr\": \"0.1\", \"n\": 5, \"kind\": \"a,b\"}, \"BestValue\": 0.5, \"s\": \"NaN\", \"t\": NaN}\n\n",
                "a,b 0.5 0.1 5",
            ),
            (
                "r.jsonl",
                "{\"config\": {\"lr\": 0.1, \"n\": 5, \"kind\": \" a,b\"}, \"loss\": 0.5, \"value\": 1}\n",
                "a,b 0.5 0.1 5",
            ),
        ] {
            assert_eq!(found(file, text), [expected], "{text}");
        }
        assert!(rows(Path::new("r.jsonl"), b"{}\n[1]").unwrap_err().starts_with("line 2: "));
        assert!(rows(Path::new("r.txt"), b"").unwrap_err().contains("neither .csv nor .jsonl"));
    }

    #[test]
    fn an_export_with_another_objective_has_no_column_for_this_one() {
        let lines = br#"{"Metrics": {"acc": [[1, 0.5]]}, "BestValue": 0.5}"#;
        assert_eq!(objective_column(&rows(Path::new("h.jsonl"), lines).unwrap(), "loss"), None);
    }

    #[test]
    fn of_too_many_results_the_better_half_and_an_even_selection_count() {
        for count in [1, RESULTS_MAX, RESULTS_MAX + 1, 300, 10_000] {
            let all = (0..count).map(|n| (0.0, Map::from_iter([("n".to_owned(), json!(n))]))).collect();
            let kept = selected(all, RESULTS_MAX);
            assert_eq!(kept.len(), count.min(RESULTS_MAX), "{count}");
            let better = kept.iter().take(RESULTS_MAX / 2);
            assert!(better.enumerate().all(|(n, row)| row["n"] == json!(n)), "{count}");
            assert!(
                count == 1
                    || kept.last().unwrap()["n"].as_u64().unwrap() > u64::try_from(count).unwrap() * 9 / 10
            );
        }
    }
}
