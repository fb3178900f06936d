//! `hyperband list`: lists the tunings of a data directory or a stack.

use std::path::Path;

use local::host::place;
use serde_json::{Value, json};
use tuning::unit::money::MicroUsd;
use use_cases::describe;
use wire::describe::TuningSummary;

use crate::arguments::{List, Output, Where};
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::output::{print_json, print_out};
use crate::remote::{Remote, failed};
use crate::text::{clean, maybe, table, usd, utc};

pub(crate) async fn list(options: List) -> Result<Exit, Failure> {
    let (summaries, interrupted) = match options.place.place().map_err(Failure::usage)? {
        Where::Endpoint(endpoint) => {
            (Remote::connect(endpoint).await?.client.list().await.map_err(failed)?, false)
        }
        Where::Folder(folder) => match of_folder(&folder).await? {
            None if options.output == Output::Text => {
                print_out(&format!("no tuning was run in {}\n", folder.display()));
                return Ok(Exit::Done);
            }
            found => found.unwrap_or_default(),
        },
    };
    match options.output {
        Output::Json => {
            let mut shown: Vec<Value> = summaries.iter().map(|summary| json!(summary)).collect();
            for (summary, shown) in summaries.iter().zip(&mut shown) {
                if interrupted && !summary.base.is_ended() {
                    shown["Controller"]["Interrupted"] = json!(true);
                }
            }
            print_json(&json!({"HyperParameterTuningJobSummaries": shown}));
        }
        Output::Text => {
            let head = ["NAME", "STATUS", "JOBS", "RUNNING", "BEST", "SPENT", "CAP", "SUBMITTED"];
            let rows: Vec<Vec<String>> = summaries.iter().map(|summary| row(summary, interrupted)).collect();
            print_out(&table(&head, &rows, &[2, 3, 4, 5, 6]));
        }
    }
    Ok(Exit::Done)
}

/// Returns the tunings of a data directory, and whether no `run` is active there. `None` if no tuning was ever run there.
async fn of_folder(folder: &Path) -> Result<Option<(Vec<TuningSummary>, bool)>, Failure> {
    let Some(data) = Data::open(folder).await? else { return Ok(None) };
    let mut names = data.names().await?;
    names.sort_by_key(|row| std::cmp::Reverse(row.created));
    let mut summaries = Vec::new();
    for name in &names {
        summaries.extend(describe::listed(&data.store, &place(), name).await?);
    }
    Ok(Some((summaries, !data.is_running())))
}

fn row(summary: &TuningSummary, interrupted: bool) -> Vec<String> {
    let (base, totals) = (&summary.base, summary.totals());
    let interrupted = interrupted && !base.is_ended();
    let status = match (interrupted, base.is_stopping(), totals.is_some_and(|all| all.paused)) {
        (true, true, _) => "Stopping, interrupted".to_owned(),
        (true, false, _) => "Interrupted".to_owned(),
        (false, false, true) if !base.is_ended() => "Paused".to_owned(),
        (false, ..) => clean(&base.status),
    };
    let count = |count: Option<u32>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    let money = |amount: Option<MicroUsd>| amount.map_or_else(|| "-".to_owned(), usd);
    vec![
        clean(&base.name),
        status,
        count(totals.map(|totals| totals.training_jobs_launched)),
        count(base.counters.map(|counters| if interrupted { 0 } else { counters.in_progress })),
        maybe(totals.and_then(|totals| totals.best_seen).map(|best| best.value)),
        money(totals.filter(|totals| !totals.price_unknown).map(|totals| totals.spent_usd)),
        money(totals.and_then(|totals| totals.cap_usd)),
        utc(base.created_ms),
    ]
}
