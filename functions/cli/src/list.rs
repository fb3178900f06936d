//! `hyperband list`: all tunings of a data directory.

use local::host::place;
use serde_json::{Value, json};
use service::describe;

use crate::arguments::{List, Output};
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::output::{say, say_json};
use crate::text::{maybe, table, usd, utc};

/// Lists the tunings, newest first.
pub(crate) async fn list(options: List) -> Result<Exit, Failure> {
    let folder = &options.place.data_dir;
    let Some(data) = Data::open(folder).await? else {
        match options.output {
            Output::Json => say_json(&json!({"HyperParameterTuningJobSummaries": []})),
            Output::Text => say(&format!("nothing was run in {} yet\n", folder.display())),
        }
        return Ok(Exit::Done);
    };
    let mut names = data.names().await?;
    names.sort_by_key(|row| std::cmp::Reverse(row.created));
    let mut summaries = Vec::new();
    let mut rows = Vec::new();
    for name in &names {
        let summary = describe::summary(&data.store, &place(), &name.id).await?;
        let (Some(summary), Some(loaded)) = (summary, data.store.load(&name.id).await?) else { continue };
        let state = &loaded.state;
        let status = summary["HyperParameterTuningJobStatus"].as_str().unwrap_or_default();
        rows.push(vec![
            name.name.clone(),
            status.to_owned(),
            state.launched.to_string(),
            state.running().to_string(),
            maybe(state.incumbent.as_ref().map(|best| best.value)),
            usd(state.ledger.spent),
            state.ledger.cap.map_or_else(|| "-".to_owned(), usd),
            utc(name.created),
        ]);
        summaries.push(summary);
    }
    match options.output {
        Output::Json => say_json(&json!({"HyperParameterTuningJobSummaries": Value::Array(summaries)})),
        Output::Text => {
            let head = ["NAME", "STATUS", "JOBS", "RUNNING", "BEST", "SPENT", "CAP", "SUBMITTED"];
            say(&table(&head, &rows, &[2, 3, 4, 5, 6]));
        }
    }
    Ok(Exit::Done)
}
