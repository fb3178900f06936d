//! `--parent FILE`: results of other tools, in a table of CSV or JSON lines.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::output::print_err;

/// The longest file that is read, in bytes.
const BYTES_MAX: u64 = 16 << 20;
/// The most results of a request.
const RESULTS_MAX: usize = search::history::OBSERVATIONS_MAX;
/// Before the name of a hyperparameter: in a list of objects of this program, Optuna or Ray Tune, and in their tables.
const BEFORE: [&str; 7] = ["", "params_", "params.", "params/", "config.", "config/", "HyperParameters."];
/// Columns of the objective, where none has its name: of this program and of Optuna.
const VALUES: [&str; 3] = ["BestValue", "FinalValue", "value"];
/// Columns of the state of a trial.
const STATES: [&str; 4] = ["state", "State", "status", "Status"];
/// States of a trial whose program failed.
const FAILED: [&str; 5] = ["fail", "failed", "error", "crashed", "killed"];

/// A row: the text or the number of each column.
type Row = Map<String, Value>;

/// Appends the results in the file `path` to `KnownResults`, as far as they have a value of the objective and of each
/// hyperparameter. Of too many it takes the better half of the most that a request may have, and an even selection of
/// the others. Leaves a request that is invalid for validation to reject.
pub(super) fn append(body: &mut Value, path: &Path) -> Result<(), Failure> {
    let rows = rows(path, &text(path)?).map_err(|message| {
        Failure::usage(format!("cannot read the results in {}: {message}", path.display()))
            .hint("the file is CSV with a line of names, or has one JSON object in each line")
    })?;
    let names = names(body);
    let objective = &body["HyperParameterTuningJobConfig"]["HyperParameterTuningJobObjective"];
    let Some(metric) = objective["MetricName"].as_str().map(str::to_owned) else { return Ok(()) };
    let maximize = objective["Type"] == "Maximize";
    let mut found: Vec<(f64, Row)> = rows.iter().filter_map(|row| result(row, &names, &metric)).collect();
    if found.is_empty() {
        return Err(Failure::usage(format!(
            "no result in {} has numbers of '{metric}' and values of {}",
            path.display(),
            names.join(", ")
        ))
        .hint(format!(
            "name the columns as in the request; the file has {}",
            rows.first().map_or_else(String::new, |row| row.keys().cloned().collect::<Vec<_>>().join(", "))
        )));
    }
    found.sort_by(|(a, _), (b, _)| if maximize { b.total_cmp(a) } else { a.total_cmp(b) });
    let usable = found.len();
    let kept = selected(found);
    print_err(&format!(
        "{} of {} results in {} are used ({usable} have all values)\n",
        kept.len(),
        rows.len(),
        path.display()
    ));
    let Value::Object(members) = body else { return Ok(()) };
    let controller = members.entry("Controller").or_insert(Value::Null);
    if controller.is_null() {
        *controller = json!({});
    }
    if let Some(controller) = controller.as_object_mut() {
        let all = controller.entry("KnownResults").or_insert(json!([]));
        if let Some(all) = all.as_array_mut() {
            all.extend(kept.into_iter().map(Value::Object));
        }
    }
    Ok(())
}

fn text(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut text));
    read.map_err(|error| Failure::file("cannot read the results", path, &error))?;
    if u64::try_from(text.len()).is_ok_and(|bytes| bytes > BYTES_MAX) {
        return Err(Failure::usage(format!(
            "{} has more than {} MiB: expected at most that; keep its best results",
            path.display(),
            BYTES_MAX >> 20
        )));
    }
    Ok(text)
}

/// Returns the names of the hyperparameters with a range, and of the number of instances if the search chooses it.
fn names(body: &Value) -> Vec<String> {
    let ranges = &body["HyperParameterTuningJobConfig"]["ParameterRanges"];
    let lists = ["IntegerParameterRanges", "ContinuousParameterRanges", "CategoricalParameterRanges"];
    let all = lists.iter().filter_map(|list| ranges[list].as_array()).flatten();
    all.filter_map(|range| range["Name"].as_str().map(str::to_owned)).collect()
}

/// Returns the rows of a table.
fn rows(path: &Path, text: &[u8]) -> Result<Vec<Row>, String> {
    let is_csv = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    if is_csv {
        let mut table = csv::Reader::from_reader(text);
        return table.deserialize::<Row>().map(|row| row.map_err(|error| error.to_string())).collect();
    }
    let lines = (1_usize..).zip(text.split(|byte| *byte == b'\n'));
    let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    let row = |(number, line): (usize, &[u8])| {
        let members: Map<String, Value> =
            serde_json::from_slice(line).map_err(|error| format!("line {number}: {error}"))?;
        let mut flat = Row::new();
        for (name, value) in members {
            match value {
                Value::Object(inner) => {
                    flat.extend(inner.into_iter().map(|(key, value)| (format!("{name}.{key}"), value)));
                }
                value => {
                    flat.insert(name, value);
                }
            }
        }
        Ok(flat)
    };
    lines.map(row).collect()
}

/// Returns the value of the objective and the member of `KnownResults` for a row that has all values.
fn result(row: &Row, names: &[String], metric: &str) -> Option<(f64, Row)> {
    let failed = |name: &&str| {
        let state = row.get(*name).and_then(Value::as_str).unwrap_or_default();
        FAILED
            .iter()
            .any(|failed| state.rsplit('.').next().is_some_and(|state| state.eq_ignore_ascii_case(failed)))
    };
    if STATES.iter().any(failed) {
        return None;
    }
    let number = |name: &str| {
        let value = row.get(name)?;
        let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
        Some(number).filter(|number: &f64| number.is_finite())
    };
    let value = std::iter::once(metric).chain(VALUES).find_map(number)?;
    let mut known = Row::new();
    for name in names {
        let mut columns = BEFORE.iter().filter_map(|before| row.get(&format!("{before}{name}")));
        let value = columns.find(|value| !value.is_null() && *value != "")?;
        known.insert(name.clone(), value.clone());
    }
    known.insert(metric.to_owned(), json!(value));
    Some((value, known))
}

/// Returns at most as many results as a request may have, of those in `found`, which are in order.
fn selected(found: Vec<(f64, Row)>) -> Vec<Row> {
    let (count, best) = (found.len(), RESULTS_MAX / 2);
    let others = count.saturating_sub(best);
    let is_kept = |index: usize| {
        let place = index.saturating_sub(best);
        let step = |place: usize| place * best / others.max(1);
        count <= RESULTS_MAX || index < best || step(place) != step(place + 1)
    };
    let numbered = found.into_iter().enumerate();
    numbered.filter(|(index, _)| is_kept(*index)).map(|(_, (_, row))| row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, text: &str) -> Vec<Value> {
        let names = ["lr".to_owned(), "kind".to_owned()];
        let rows = rows(Path::new(file), text.as_bytes()).unwrap();
        let results = rows.iter().filter_map(|row| result(row, &names, "loss"));
        results.map(|(_, row)| Value::Object(row)).collect()
    }

    #[test]
    fn tables_of_several_tools_are_read() {
        let expected = json!({"lr": "0.1", "kind": "a,b", "loss": 0.5});
        let optuna = "number,value,params_lr,params_kind,state\n0,0.5,0.1,\"a,b\",COMPLETE\n1,0.4,0.2,c,FAIL\n\
                      2,,0.2,c,RUNNING\n";
        let own =
            "Trial,Status,lr,kind,FinalValue,BestValue\n0,Stopped,0.1,\"a,b\",0.7,0.5\n1,Failed,0.1,c,,0.4\n";
        for text in ["lr,kind,loss\n0.1,\"a,b\",0.5\n0.2,,0.4\n0.2,c,nan\n", optuna, own] {
            let results = found("r.CSV", text);
            let shown = json!({"lr": results[0]["lr"].to_string().trim_matches('"'), "kind": results[0]["kind"],
                "loss": results[0]["loss"]});
            assert_eq!((results.len(), &shown), (1, &expected), "{text}");
        }
        let lines = "{\"HyperParameters\": {\"lr\": \"0.1\", \"kind\": \"a,b\"}, \"BestValue\": 0.5}\n\n\
                     {\"config\": {\"lr\": \"0.1\", \"kind\": \"a,b\"}, \"loss\": 0.5, \"value\": 1}\n";
        assert_eq!(found("r.jsonl", lines), [expected.clone(), expected]);
        assert!(rows(Path::new("r.jsonl"), b"{}\n[1]").unwrap_err().starts_with("line 2: "));
    }

    #[test]
    fn of_too_many_results_the_better_half_and_an_even_selection_count() {
        for count in [1, RESULTS_MAX, RESULTS_MAX + 1, 300, 10_000] {
            let all = (0..count).map(|n| (0.0, Row::from_iter([("n".to_owned(), json!(n))]))).collect();
            let kept = selected(all);
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
