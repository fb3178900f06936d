//! `hyperband report`: writes a tuning as one self-contained HTML file.
//!
//! Crate `report` reads the table and makes the page. This file adds the data of the folder and writes the file.

use std::io::Write;
use std::path::{Path, PathBuf};

use ::report::Document;
use serde_json::json;

use crate::arguments::{Output, Report, Source};
use crate::failure::{Exit, Failure};
use crate::location::Location;
use crate::output::{print_err, print_json, print_out_raw};
use crate::stored_tuning::StoredTuning;

pub(crate) async fn report(options: Report) -> Result<Exit, Failure> {
    if options.file.as_deref() == Some(Path::new("-")) && options.output == Output::Json {
        return Err(Failure::usage("standard output cannot have both the report and its JSON result")
            .hint("leave out --output json, or write the report to a file"));
    }
    let (_, document) = document_of(&options.place, &options.name).await?;
    let file = options.file.unwrap_or_else(|| PathBuf::from(format!("{}.html", document.head.name)));
    let page = ::report::html::page(&document);
    if file == Path::new("-") {
        print_out_raw(&page);
        return Ok(Exit::Done);
    }
    write(&file, &page).map_err(|error| Failure::file("cannot write", &file, &error))?;
    match options.output {
        Output::Json => print_json(&json!({"File": file, "Bytes": page.len()})),
        Output::Text => print_err(&format!("wrote {} ({} KB)\n", file.display(), page.len().div_ceil(1024))),
    }
    Ok(Exit::Done)
}

pub(crate) async fn document_of(source: &Source, name: &str) -> Result<(StoredTuning, Document), Failure> {
    let tuning = StoredTuning::open(source, name).await?;
    let document = Box::pin(::report::read(&tuning.store, &tuning.place, &tuning.row.id)).await?;
    let mut document = document.ok_or_else(|| tuning.deleted())?;
    let model = tuning.described.controller.best_model.as_ref();
    document.head.model = model.map(|best| Location::of_uri(&best.location).text());
    document.head.interrupted.clone_from(&tuning.interrupted);
    Ok((tuning, document))
}

/// Replaces the file atomically, so that a browser never reads a partial file.
fn write(path: &Path, page: &str) -> std::io::Result<()> {
    // A device or a pipe cannot be replaced.
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
