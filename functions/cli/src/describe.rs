//! `hyperband describe`: one tuning.

use crate::arguments::{Named, Output, Source, Where};
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::output::{say, say_json};
use crate::page::Page;
use crate::remote::Remote;

/// Shows a tuning.
pub(crate) async fn describe(options: Named<Source>) -> Result<Exit, Failure> {
    let name = &options.name;
    match (options.place.place().map_err(Failure::usage)?, options.output) {
        (Where::Endpoint(endpoint), Output::Json) => {
            say_json(&Remote::connect(endpoint).await?.describe(name).await?);
        }
        (Where::Endpoint(endpoint), Output::Text) => {
            say(&Remote::connect(endpoint).await?.page(name).await?.whole());
        }
        (Where::Folder(folder), output) => {
            let data = Data::existing(&folder).await?;
            let row = data.find(name).await?;
            let page = Page::read(&data.store, &row.id).await?;
            match output {
                Output::Json => say_json(&page.described),
                Output::Text => say(&page.whole()),
            }
        }
    }
    Ok(Exit::Done)
}
