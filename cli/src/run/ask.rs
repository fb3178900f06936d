//! Reads and validates a request, and formats its violations.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde_json::Value;
use wire::request::{ErrorCode, MAX_BODY_BYTES, Request, RequestError};

use crate::failure::Failure;

const NAME: &str = "HyperParameterTuningJobName";

/// Reads the request in `path` (`-` is standard input) for a stack. `name` replaces its name.
pub(crate) fn read(path: &Path, name: Option<&str>) -> Result<Request, Failure> {
    checked(path, name, Request::parse, Request::check)
}

/// Like [`read`], but for this machine: a metric without `Regex` gets the built-in pattern.
pub(crate) fn read_local(path: &Path, name: Option<&str>) -> Result<Request, Failure> {
    checked(path, name, Request::parse_local, Request::check_local)
}

fn checked(
    path: &Path,
    name: Option<&str>,
    parse: fn(&[u8]) -> Result<Request, RequestError>,
    check: fn(Value) -> Result<Request, RequestError>,
) -> Result<Request, Failure> {
    let body = body(path)?;
    let parsed = parse(&body);
    let Some(name) = name else { return parsed.map_err(|error| invalid_request(&error)) };
    match parsed {
        // Invalid JSON has no name to replace.
        Err(error) if error.code == ErrorCode::SerializationException => Err(invalid_request(&error)),
        Ok(_) | Err(_) => {
            let mut value: Value = serde_json::from_slice(&body)?;
            value[NAME] = Value::from(name);
            check(value).map_err(|error| invalid_request(&error))
        }
    }
}

/// Reads the bytes of the request in `path`.
pub(crate) fn body(path: &Path) -> Result<Vec<u8>, Failure> {
    bytes(path).map_err(|error| unreadable(&error, path))
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    // One byte above the maximum, so that validation rejects a body that is too long.
    let limit = u64::try_from(MAX_BODY_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let mut body = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut body)?;
    } else {
        File::open(path)?.take(limit).read_to_end(&mut body)?;
    }
    Ok(body)
}

fn unreadable(error: &io::Error, path: &Path) -> Failure {
    let failure =
        Failure::usage(error.to_string()).context(format!("cannot read the request {}", path.display()));
    if error.kind() == io::ErrorKind::NotFound {
        failure.hint(
            "REQUEST is a JSON file with a CreateHyperParameterTuningJob request, or - for standard input",
        )
    } else {
        failure
    }
}

/// Returns the error for an invalid request, with all violations.
pub(crate) fn invalid_request(error: &RequestError) -> Failure {
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
