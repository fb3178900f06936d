//! `hyperband list`: lists the tunings of a data directory or a stack.

use std::path::Path;

use local::host::place;
use serde_json::json;
use tuning::money::MicroUsd;
use use_cases::describe;
use wire::describe::TuningSummary;

use crate::arguments::{List, Output, Where};
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::output::{print_json, print_out};
use crate::remote::{Remote, failed};
use crate::text::{clean, maybe, table, usd, utc};

/// Performs `hyperband list`.
pub(crate) async fn list(options: List) -> Result<Exit, Failure> {
    let summaries = match options.place.place().map_err(Failure::usage)? {
        Where::Endpoint(endpoint) => Remote::connect(endpoint).await?.client.list().await.map_err(failed)?,
        Where::Folder(folder) => match of_folder(&folder).await? {
            None if options.output == Output::Text => {
                print_out(&format!("no tuning was run in {}\n", folder.display()));
                return Ok(Exit::Done);
            }
            summaries => summaries.unwrap_or_default(),
        },
    };
    match options.output {
        Output::Json => print_json(&json!({"HyperParameterTuningJobSummaries": summaries})),
        Output::Text => {
            let head = ["NAME", "STATUS", "JOBS", "RUNNING", "BEST", "SPENT", "CAP", "SUBMITTED"];
            let rows: Vec<Vec<String>> = summaries.iter().map(row).collect();
            print_out(&table(&head, &rows, &[2, 3, 4, 5, 6]));
        }
    }
    Ok(Exit::Done)
}

/// Returns the tunings of a data directory. `None` if no tuning was ever run there.
async fn of_folder(folder: &Path) -> Result<Option<Vec<TuningSummary>>, Failure> {
    let Some(data) = Data::open(folder).await? else { return Ok(None) };
    let mut names = data.names().await?;
    names.sort_by_key(|row| std::cmp::Reverse(row.created));
    let mut summaries = Vec::new();
    for name in &names {
        summaries.extend(describe::listed(&data.store, &place(), name).await?);
    }
    Ok(Some(summaries))
}

fn row(summary: &TuningSummary) -> Vec<String> {
    let (base, totals) = (&summary.base, summary.totals());
    let count = |count: Option<u32>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    let money = |amount: Option<MicroUsd>| amount.map_or_else(|| "-".to_owned(), usd);
    vec![
        clean(&base.name),
        clean(&base.status),
        count(totals.map(|totals| totals.training_jobs_launched)),
        count(base.counters.map(|counters| counters.in_progress)),
        maybe(totals.and_then(|totals| totals.best_seen).map(|best| best.value)),
        money(totals.map(|totals| totals.spent_usd)),
        money(totals.and_then(|totals| totals.cap_usd)),
        utc(base.created_ms),
    ]
}
