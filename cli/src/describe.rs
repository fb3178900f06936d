//! `hyperband describe`: shows one tuning.

use crate::arguments::{Named, Output, Source, Where};
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::log_hint::LogHint;
use crate::output::{print_json, print_out};
use crate::page::Page;
use crate::remote::Remote;

pub(crate) async fn describe(options: Named<Source>) -> Result<Exit, Failure> {
    let (name, location) = (&options.name, options.place.location_options());
    match (options.place.place().map_err(Failure::usage)?, options.output) {
        (Where::Endpoint(endpoint), Output::Json) => {
            // The list of jobs can be long, and the JSON does not have it.
            let described = Remote::connect(endpoint).await?.describe(name).await?;
            print_json(&Page::of_stack(described, Vec::new()).json());
        }
        (Where::Endpoint(endpoint), Output::Text) => {
            let page = Remote::connect(endpoint).await?.page(name).await?;
            print_out(&format!("{}{}", page.whole(), page.see_log(&LogHint::at(&location, None))));
        }
        (Where::Folder(folder), output) => {
            let data = Data::existing(&folder).await?;
            let row = data.find(name).await?;
            let page = Page::of(&data.store, &folder, &row.id).await?;
            match output {
                Output::Json => print_json(&page.json()),
                Output::Text => {
                    let logs = LogHint::at(&location, Some(data.training_jobs()));
                    print_out(&format!("{}{}", page.whole(), page.see_log(&logs)));
                }
            }
        }
    }
    Ok(Exit::Done)
}
