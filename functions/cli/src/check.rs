//! `hyperband check`: is a request taken, do its patterns find anything in a log, and what will hurt.
//!
//! Validates as a submission does and starts nothing. Exit code 0 when the request is valid, whatever is warned of.

mod hint;
mod log;
mod show;
mod warnings;

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use service::submit::REQUEST_BYTES_MAX;
use wire::item::MAX_ITEM_BYTES;
use wire::request::{PriceAnswer, Request, RequestError};
use wire::stored;

use crate::arguments::{self, Output};
use crate::failure::{Exit, Failure};
use crate::output::{say_as_is, say_json};
use crate::run::ask;
use crate::warning::Warning;
use log::Findings;

/// What was found of a request that is valid.
#[derive(Debug)]
struct Checked {
    request: Request,
    log: Option<Findings>,
    warnings: Vec<Warning>,
}

/// Checks a request.
pub(crate) fn check(options: &arguments::Check) -> Result<Exit, Failure> {
    let standard = Path::new("-");
    if options.request == standard && options.log.as_deref() == Some(standard) {
        return Err(Failure::usage("the request and the log cannot both come on standard input"));
    }
    let body = ask::body(&options.request)?;
    let checked = match validated(&body) {
        Ok(request) => Checked::of(request, options.log.as_deref())?,
        Err(error) => {
            match options.output {
                Output::Json => say_json(&show::refused(&error)),
                Output::Text => ask::refused(&error).tell(),
            }
            return Ok(Exit::Usage);
        }
    };
    match options.output {
        Output::Json => say_json(&show::json(&checked)),
        Output::Text => say_as_is(&show::text(&checked)),
    }
    Ok(Exit::Done)
}

/// The request, if a submission on this machine would take it.
fn validated(body: &[u8]) -> Result<Request, RequestError> {
    let request = Request::parse(body)?;
    validate(&request)?;
    Ok(request)
}

/// Refuses what a submission on this machine would refuse.
pub(crate) fn validate(request: &Request) -> Result<(), RequestError> {
    // Any time and incarnation: neither makes a request valid.
    let definition = request.definition(0, "000000", &PriceAnswer::default())?;
    let text = request.body().to_string();
    let row = stored::meta_row(&definition, &text);
    if text.len() > REQUEST_BYTES_MAX || row.size_bytes() > MAX_ITEM_BYTES {
        let message = format!(
            "the request has {} bytes of at most {REQUEST_BYTES_MAX}, and with its search space {} of at most \
             {MAX_ITEM_BYTES}",
            text.len(),
            row.size_bytes()
        );
        return Err(RequestError::field("", &message));
    }
    Ok(())
}

impl Checked {
    fn of(request: Request, log: Option<&Path>) -> Result<Self, Failure> {
        let log = log.map(|path| read_log(&request, path)).transpose()?;
        let mut warnings = warnings::all(&request);
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
