//! `hyperband describe`: shows one tuning.

use crate::arguments::{Named, Output, Source};
use crate::failure::{Exit, Failure};
use crate::output::{print_json, print_out};
use crate::tunings::Tunings;

pub(crate) async fn describe(options: Named<Source>) -> Result<Exit, Failure> {
    let tunings = Tunings::open(&options.place).await?;
    match options.output {
        Output::Json => print_json(&tunings.json(&options.name).await?),
        Output::Text => {
            let page = tunings.page(&options.name).await?;
            let logs = tunings.log_hint();
            print_out(&format!("{}{}", page.full_text(), page.see_log(&logs)));
        }
    }
    Ok(Exit::Done)
}
