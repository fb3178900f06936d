//! `hyperband list`: lists the tunings of a data directory or a stack.

use serde_json::{Value, json};
use wire::describe::TuningSummary;

use crate::arguments::{List, Output, Where};
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::output::{print_out, show};
use crate::remote::failed;
use crate::text::{clean, maybe, or_dash, table, usd, utc};
use crate::tunings::Tunings;

pub(crate) async fn list(options: List) -> Result<Exit, Failure> {
    let found = match options.place.place()? {
        Where::Folder(folder) => match Data::open(&folder).await? {
            None if options.output == Output::Text => {
                print_out(&format!("no tuning was run in {}\n", folder.display()));
                return Ok(Exit::Done);
            }
            data => data.map(Tunings::of_folder),
        },
        Where::Endpoint(_) => Some(Tunings::open(&options.place).await?),
    };
    let (summaries, interrupted) = match &found {
        Some(tunings) => (tunings.client.list().await.map_err(failed)?, !tunings.is_running()),
        None => (Vec::new(), false),
    };
    let json = || {
        let shown = summaries.iter().map(|summary| {
            let mut shown = json!(summary);
            if interrupted && !summary.base.is_ended() {
                shown["Controller"]["Interrupted"] = json!(true);
            }
            shown
        });
        json!({"HyperParameterTuningJobSummaries": shown.collect::<Vec<Value>>()})
    };
    let text = || {
        let head = ["NAME", "STATUS", "JOBS", "RUNNING", "BEST", "SPENT", "CAP", "SUBMITTED"];
        let rows: Vec<Vec<String>> = summaries.iter().map(|summary| row(summary, interrupted)).collect();
        table(&head, &rows, &[2, 3, 4, 5, 6])
    };
    show(options.output, text, json);
    Ok(Exit::Done)
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
    let count = |count: Option<u32>| or_dash(count, |count| count.to_string());
    vec![
        clean(&base.name),
        status,
        count(totals.map(|totals| totals.training_jobs_launched)),
        count(base.counters.map(|counters| if interrupted { 0 } else { counters.in_progress })),
        maybe(totals.and_then(|totals| totals.best_seen).map(|best| best.value)),
        or_dash(totals.filter(|totals| !totals.price_unknown), |totals| usd(totals.spent_usd)),
        or_dash(totals.and_then(|totals| totals.cap_usd), usd),
        utc(base.created_ms),
    ]
}
