//! `hyperband report`: a tuning as one HTML file that needs nothing else.
//!
//! [`html::page`] is a pure function of [`facts::Facts`]; this file only reads the table and writes the file.

mod chart;
mod curves;
mod escape;
mod facts;
mod html;
mod money;
mod tables;

use std::io::Write;
use std::path::Path;

use crate::arguments::Report;
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::output::{say_as_is, tell};
use facts::Facts;

/// Writes a report.
pub(crate) async fn report(options: Report) -> Result<Exit, Failure> {
    let data = Data::existing(&options.place.data_dir).await?;
    let row = data.find(&options.name).await?;
    let facts = Facts::read(&data.store, &row.id).await?;
    let page = html::page(&facts);
    if options.file == Path::new("-") {
        say_as_is(&page);
        return Ok(Exit::Done);
    }
    write(&options.file, &page).map_err(|error| {
        Failure::usage(error.to_string()).context(format!("cannot write {}", options.file.display()))
    })?;
    tell(&format!("wrote {} ({} KB)\n", options.file.display(), page.len().div_ceil(1024)));
    Ok(Exit::Done)
}

/// Replaces the file at once: a browser that shows it never sees half of it.
fn write(path: &Path, page: &str) -> std::io::Result<()> {
    // A device or a pipe is written as it is.
    if path.metadata().is_ok_and(|file| !file.is_file()) {
        return std::fs::write(path, page);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let fresh = path.with_file_name(name);
    let written = std::fs::File::create(&fresh)
        .and_then(|mut file| file.write_all(page.as_bytes()))
        .and_then(|()| std::fs::rename(&fresh, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
    written
}
