//! `hyperband audit`: checks the promises on stored rows, with code that shares nothing with the decider but their format.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, anyhow};
use audit::{Report, Violation};
use serde_json::{Value, json};
use wire::{row_json, stored};

use crate::arguments::Audit;
use crate::failure::{Exit, Failure};
use crate::output::show;
use crate::remote::failed;
use crate::stored_tuning::StoredTuning;
use crate::text::clean;
use crate::tunings::Tunings;

/// A tuning: its name, its id and its rows.
type Rows = (String, String, Vec<Value>);

pub(crate) async fn audit(options: Audit) -> Result<Exit, Failure> {
    let (mut reports, mut unreadable) = (Vec::new(), None);
    let mut examine = |rows: Result<Rows, Failure>| match rows.and_then(examined) {
        Ok(report) => reports.push(report),
        // It must not hide the others.
        Err(failure) => unreadable = unreadable.take().or(Some(failure)),
    };
    if let Some(file) = &options.rows {
        exported(file, options.name.as_deref())?.into_iter().for_each(|tuning| examine(Ok(tuning)));
    } else {
        let tunings = Tunings::open(&options.place).await?;
        let names = if let Some(name) = options.name {
            vec![name]
        } else {
            let summaries = tunings.client.list().await.map_err(failed)?;
            summaries.into_iter().map(|summary| summary.base.name).collect()
        };
        for name in names {
            examine(stored_rows(&tunings, &name).await);
        }
    }
    if !reports.is_empty() || unreadable.is_none() {
        show(options.output, || text(&reports), || json_of(&reports));
    }
    if let Some(failure) = unreadable {
        return Err(failure);
    }
    let is_kept = reports.iter().all(|(_, report)| report.violation_count == 0);
    Ok(if is_kept { Exit::Done } else { Exit::Failed })
}

fn examined((name, id, rows): Rows) -> Result<(String, Report), Failure> {
    let report = audit::audit(&id, &rows);
    Ok((name.clone(), report.map_err(|error| Failure::endpoint(anyhow!("tuning {name}: {error}")))?))
}

/// Returns the rows of a tuning in a data directory or on a stack. The API of a stack returns no outbox.
async fn stored_rows(tunings: &Tunings, name: &str) -> Result<Rows, Failure> {
    let described = tunings.describe(name).await?;
    let tuning = StoredTuning::open_described(tunings, described).await?;
    let id = tuning.row.id.clone();
    let mut rows = Vec::new();
    // The outbox of a running tuning is read last, so that it has all orders of the steps.
    for partition in [stored::tuning_partition(&id), stored::action_partition(&id)] {
        rows.extend(tuning.store.all(&partition, "").await?.iter().map(row_json::encode));
    }
    Ok((tuning.row.name, id, rows))
}

/// Returns the tunings of an exported table: a JSON object a line, with the row itself or as `Item`, as DynamoDB exports
/// it to S3.
fn exported(file: &Path, name: Option<&str>) -> Result<Vec<Rows>, Failure> {
    let (mut names, mut by_id) = (BTreeMap::new(), BTreeMap::<String, Vec<Value>>::new());
    let mut read = || -> anyhow::Result<()> {
        for (line, n) in BufReader::new(File::open(file)?).lines().zip(1_u64..) {
            let line = line.context("expected uncompressed text: use zcat")?;
            if line.trim().is_empty() {
                continue;
            }
            let expected = || format!("line {n}: expected a row as DynamoDB JSON");
            let mut row: Value = serde_json::from_str(&line).with_context(expected)?;
            let row = row.get_mut("Item").map(Value::take).unwrap_or(row);
            let text = |name: &str| row.get(name)?.get("S")?.as_str();
            match text("pk").unwrap_or_default().split_once('#') {
                Some(("T" | "A", id)) => by_id.entry(id.to_owned()).or_default().push(row),
                _ if text("pk") == Some(stored::INDEX) => {
                    if let Some((id, of)) = text("id").zip(text("name")) {
                        names.insert(id.to_owned(), of.to_owned());
                    }
                }
                _ => {}
            }
        }
        Ok(())
    };
    read()
        .map_err(|error| Failure::usage(format!("cannot read the rows of {}: {error:#}", file.display())))?;
    names.retain(|_, of| name.is_none_or(|name| of.eq_ignore_ascii_case(name)));
    if names.is_empty() {
        let wanted = name.map_or("no tuning".to_owned(), |name| format!("no tuning {name}"));
        return Err(Failure::usage(format!(
            "{wanted} among the rows of {}: export the whole table as DynamoDB JSON, uncompressed",
            file.display()
        )));
    }
    Ok(names
        .into_iter()
        .map(|(id, name)| (name, id.clone(), by_id.remove(&id).unwrap_or_default()))
        .collect())
}

fn text(reports: &[(String, Report)]) -> String {
    let line = |(name, report): &(String, Report)| {
        let Report { steps, facts, violation_count, .. } = report;
        let first = report
            .violations
            .first()
            .map(|first| format!("{}: {}\n", clean(name), clean(&first.to_string())));
        let violations = if *violation_count == 1 { "violation" } else { "violations" };
        let name = clean(name);
        first.unwrap_or_default()
            + &format!("{name}: {steps} steps, {facts} facts, {violation_count} {violations}\n")
    };
    reports.iter().map(line).collect()
}

fn json_of(reports: &[(String, Report)]) -> Value {
    let violation = |violation: &Violation| json!({"Promise": violation.promise, "Step": violation.step, "Message": violation.what});
    let report = |(name, report): &(String, Report)| {
        json!({
            "HyperParameterTuningJobName": name,
            "Steps": report.steps,
            "Facts": report.facts,
            "Rulings": report.rulings,
            "TrainingJobs": report.jobs,
            "Actions": report.actions,
            "SpentMicroUsd": report.spent,
            "JobsWithoutBill": report.without_bill,
            "ViolationCount": report.violation_count,
            "Violations": report.violations.iter().map(violation).collect::<Vec<_>>(),
        })
    };
    json!({"Audits": reports.iter().map(report).collect::<Vec<_>>()})
}
