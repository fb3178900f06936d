//! What will hurt in a request that is valid: money, machines, the space that is searched, the algorithm.
//!
//! Codes are for programs: none is renamed. Assumes a valid request. Warns only of what follows from the request, and
//! says what to do each time.

mod algorithm;
mod job;
mod space;

use wire::request::Request;

use crate::plan::{cap_admits, fill};
use crate::warning::Warning;

/// All warnings, those of money first.
pub(super) fn all(request: &Request) -> Vec<Warning> {
    let mut found = job::warnings(request);
    found.extend(cap_admits(request));
    found.extend(fill::warning(request));
    found.extend(algorithm::warnings(request));
    found.extend(space::warnings(request));
    found
}

/// The warning, if `is`.
fn when(is: bool, warning: impl FnOnce() -> Warning) -> Option<Warning> {
    is.then(warning)
}
