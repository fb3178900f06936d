//! `hyperband check`: validates a request, tests its metric patterns on a log, and prints warnings.
//!
//! Validates as `run` does, or with `--stack` as `submit` does, and starts nothing. The exit code is 0 for a valid
//! request, even with warnings.

mod log;
mod pattern;
mod show;
mod warnings;

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use serde_json::Value;
use tuning::unit::time::Time;
use use_cases::submit::REQUEST_BYTES_MAX;
use wire::item::MAX_ITEM_BYTES;
use wire::request::{PriceAnswer, Request, RequestError, required_by_stack};
use wire::stored;

use crate::arguments::{self, Output};
use crate::failure::{Exit, Failure};
use crate::output::{print_json, show_styled};
use crate::request::{self, channels};
use crate::warning::Warning;
use log::Findings;

pub(crate) use show::log_table;
pub(crate) use warnings::is_rarely_small;

/// The findings about a valid request.
#[derive(Debug)]
pub(crate) struct Checked {
    request: Request,
    pub(crate) log: Option<Findings>,
    /// Fields that a stack requires, and for which a run on this machine has defaults.
    required_by_stack: Vec<String>,
    pub(crate) warnings: Vec<Warning>,
}

pub(crate) fn check(options: &arguments::Check) -> Result<Exit, Failure> {
    let standard = Path::new("-");
    if options.request == standard && options.log.as_deref() == Some(standard) {
        return Err(Failure::usage("the request and the log cannot both come from standard input")
            .hint("give at least one of them as a file"));
    }
    let text = request::text(&options.request)?;
    let body = request::parse(&options.request, &text);
    let validate = if options.stack { for_stack } else { for_this_machine };
    let checked = match body.and_then(|body| Ok((validate(body.clone())?, body))) {
        Ok((request, body)) => {
            let own = definition(&request, options.definition.as_deref())?;
            let found = options.log.as_deref().map(|path| read_log(own, path)).transpose()?;
            Checked::examine(request, found, body)
        }
        Err(error) => {
            match options.output {
                Output::Json => print_json(&show::invalid_json(&error)),
                Output::Text => Failure::invalid_request(&error).print(),
            }
            return Ok(Exit::Usage);
        }
    };
    show_styled(options.output, || show::text(&checked), || show::json(&checked));
    Ok(Exit::Done)
}

/// Validates the request as `hyperband run` does. A request that a stack would accept may have channels elsewhere.
pub(crate) fn for_this_machine(body: Value) -> Result<Request, RequestError> {
    let is_whole = required_by_stack(&body).is_empty();
    let request = request::check_local(body)?;
    if !is_whole {
        channels::check(&request)?;
    }
    validate(&request).map_err(|error| request::local_error(&request, error))?;
    Ok(request)
}

/// Validates the request as `hyperband submit` does.
fn for_stack(body: Value) -> Result<Request, RequestError> {
    let request = Request::check(body)?;
    validate_for_stack(&request)?;
    Ok(request)
}

/// Returns the warnings about a request that runs on this machine.
pub(crate) fn local_warnings(request: &Request) -> Vec<Warning> {
    warnings::all(request, true).into_iter().chain(pattern::cuts(request, None)).collect()
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
    /// Collects the warnings about a request and what its patterns found in a log. `body` is the request as given.
    pub(crate) fn examine(request: Request, log: Option<Findings>, body: Value) -> Self {
        let mut required_by_stack = required_by_stack(&body);
        let mut warnings = warnings::all(&request, !required_by_stack.is_empty());
        let without = pattern::missing(&request, body);
        if required_by_stack.is_empty() {
            warnings.extend(without);
        } else if !without.is_empty() {
            required_by_stack.push(pattern::DEFINITIONS.to_owned());
        }
        warnings.extend(pattern::cuts(&request, log.as_ref()));
        warnings.extend(log.iter().flat_map(Findings::warnings));
        Self { request, log, required_by_stack, warnings }
    }
}

/// Returns the request of the definition that a log belongs to.
fn definition<'a>(request: &'a Request, name: Option<&str>) -> Result<&'a Request, Failure> {
    let Some(name) = name else { return Ok(request) };
    request.definitions().find(|one| one.own_name() == Some(name)).ok_or_else(|| {
        let names: Vec<&str> = request.definitions().filter_map(Request::own_name).collect();
        let failure = Failure::usage(format!("the request has no definition '{name}'"));
        match names[..] {
            [] => failure.hint("its only definition has no DefinitionName: omit --definition"),
            _ => failure.hint(format!("its definitions are {}", names.join(", "))),
        }
    })
}

/// Tests the patterns of the request on a log.
pub(crate) fn read_log(request: &Request, path: &Path) -> Result<Findings, Failure> {
    let read = if path == Path::new("-") {
        log::read(request, io::stdin().lock())
    } else {
        File::open(path).and_then(|file| log::read(request, BufReader::new(file)))
    };
    read.map_err(|error| {
        Failure::file("cannot read the log", path, &error)
            .hint("--log takes the log of one training job: a file, or - for standard input")
    })
}

/// Validates the request, except its prices. The stack has a price list.
pub(crate) fn validate_for_stack(request: &Request) -> Result<(), RequestError> {
    match validate(request) {
        Err(error) if !request::is_about_prices(&error.violations) => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
