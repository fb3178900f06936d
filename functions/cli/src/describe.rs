//! `hyperband describe`: one tuning.

use crate::arguments::{Named, Output};
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::output::{say, say_json};
use crate::page::Page;

/// Shows a tuning.
pub(crate) async fn describe(options: Named) -> Result<Exit, Failure> {
    let data = Data::existing(&options.place.data_dir).await?;
    let row = data.find(&options.name).await?;
    let page = Page::read(&data.store, &row.id).await?;
    match options.output {
        Output::Json => say_json(&page.described),
        Output::Text => {
            let rungs = page.rung_table().map_or_else(String::new, |table| format!("\n{table}"));
            say(&format!(
                "{}  {:<11}{}\n{rungs}\n{}",
                page.summary(),
                "submitted",
                page.created(),
                page.job_table()
            ));
        }
    }
    Ok(Exit::Done)
}
