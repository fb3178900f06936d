//! `hyperband check`: validates a request, tests its metric patterns on a log, and prints warnings.
//!
//! Validates as a submission does, and starts nothing. The exit code is 0 for a valid request, even with warnings.

mod hint;
mod log;
mod pattern;
mod show;
mod warnings;

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use serde_json::Value;
use tuning::time::Time;
use use_cases::submit::REQUEST_BYTES_MAX;
use wire::item::MAX_ITEM_BYTES;
use wire::request::{PriceAnswer, Request, RequestError};
use wire::stored;

use crate::arguments::{self, Output};
use crate::failure::{Exit, Failure};
use crate::output::{print_json, print_out_raw};
use crate::run::ask;
use crate::warning::Warning;
use log::Findings;

/// The findings about a valid request.
#[derive(Debug)]
struct Checked {
    request: Request,
    log: Option<Findings>,
    warnings: Vec<Warning>,
}

/// Performs `hyperband check`.
pub(crate) fn check(options: &arguments::Check) -> Result<Exit, Failure> {
    let standard = Path::new("-");
    if options.request == standard && options.log.as_deref() == Some(standard) {
        return Err(Failure::usage("the request and the log cannot both come from standard input")
            .hint("give at least one of them as a file"));
    }
    let text = ask::text(&options.request)?;
    let body = ask::parse(&options.request, &text);
    let checked = match body.and_then(|body| Ok((validated(body.clone())?, body))) {
        Ok((request, body)) => Checked::of(request, options.log.as_deref(), body)?,
        Err(error) => {
            match options.output {
                Output::Json => print_json(&show::invalid_json(&error)),
                Output::Text => ask::invalid_request(&error).print(),
            }
            return Ok(Exit::Usage);
        }
    };
    match options.output {
        Output::Json => print_json(&show::json(&checked)),
        Output::Text => print_out_raw(&show::text(&checked)),
    }
    Ok(Exit::Done)
}

/// Validates the request as a submission on this machine does.
fn validated(body: Value) -> Result<Request, RequestError> {
    let request = Request::check_local(body)?;
    validate(&request)?;
    Ok(request)
}

/// Validates the definition and the size of the request as a submission does.
pub(crate) fn validate(request: &Request) -> Result<(), RequestError> {
    // Validity does not depend on the creation time or the incarnation.
    let definition = request.definition(Time(0), "000000", &PriceAnswer::default())?;
    let text = request.body().to_string();
    let row = stored::meta_row(&definition, &text);
    if text.len() > REQUEST_BYTES_MAX || row.size_bytes() > MAX_ITEM_BYTES {
        let message = format!(
            "the request has {} bytes of at most {REQUEST_BYTES_MAX}, and its table row, which includes the search \
             space, {} bytes of at most {MAX_ITEM_BYTES}",
            text.len(),
            row.size_bytes()
        );
        return Err(RequestError::field("", &message));
    }
    Ok(())
}

impl Checked {
    fn of(request: Request, log: Option<&Path>, body: Value) -> Result<Self, Failure> {
        let log = log.map(|path| read_log(&request, path)).transpose()?;
        let mut warnings = warnings::all(&request);
        warnings.extend(pattern::missing(&request, body));
        warnings.extend(pattern::cuts(&request, log.as_ref()));
        warnings.extend(log.iter().flat_map(Findings::warnings));
        Ok(Self { request, log, warnings })
    }
}

fn read_log(request: &Request, path: &Path) -> Result<Findings, Failure> {
    let read = if path == Path::new("-") {
        log::read(request, io::stdin().lock())
    } else {
        File::open(path).and_then(|file| log::read(request, BufReader::new(file)))
    };
    read.map_err(|error| {
        Failure::usage(error.to_string()).context(format!("cannot read the log {}", path.display()))
    })
}

#[cfg(test)]
mod tests;
