//! Reads and validates a request, and formats its violations.

mod comments;
mod file;

use std::path::Path;

use serde_json::Value;
use wire::request::{ErrorCode, Request, RequestError};

use crate::failure::Failure;

pub(crate) use file::{parse, text};

const NAME: &str = "HyperParameterTuningJobName";

/// Reads the request in `path` (`-` is standard input) for a stack. `name` replaces its name.
pub(crate) fn read(path: &Path, name: Option<&str>) -> Result<Request, Failure> {
    checked(path, name, Request::check)
}

/// Like [`read`], but for this machine: a metric without `Regex` gets the built-in pattern.
pub(crate) fn read_local(path: &Path, name: Option<&str>) -> Result<Request, Failure> {
    checked(path, name, Request::check_local)
}

fn checked(
    path: &Path,
    name: Option<&str>,
    check: fn(Value) -> Result<Request, RequestError>,
) -> Result<Request, Failure> {
    let mut body = parse(path, &text(path)?).map_err(|error| invalid_request(&error))?;
    if let Some(name) = name {
        body[NAME] = Value::from(name);
    }
    check(body).map_err(|error| invalid_request(&error))
}

/// Returns the error for an invalid request, with all violations.
pub(crate) fn invalid_request(error: &RequestError) -> Failure {
    // The message of invalid JSON names the file.
    if error.code == ErrorCode::SerializationException {
        return Failure::usage(error.message.clone());
    }
    let mut text = "the request is invalid".to_owned();
    match error.violations.as_slice() {
        [] => {
            text.push_str(": ");
            text.push_str(&error.message);
        }
        violations => {
            for violation in violations {
                text.push_str("\n  ");
                text.push_str(&violation.message);
            }
        }
    }
    Failure::usage(text)
}
