//! Warnings about a valid request: cost, instances, search space and algorithm.
//!
//! Each warning follows from the request alone, and says what will happen and how to avoid it. Warning codes are stable
//! names for programs.

mod algorithm;
mod job;
mod space;

use wire::request::Request;

use crate::plan::{cap_admits, compares_nothing};
use crate::warning::Warning;

pub(crate) use space::is_rarely_small;

/// Returns all warnings. A request for this machine only gets none about cost, quotas and data of AWS.
pub(super) fn all(request: &Request, is_local: bool) -> Vec<Warning> {
    let mut found = Vec::new();
    if !is_local {
        found.extend(job::no_cap(request));
    }
    found.extend(cap_admits(request));
    found.extend(compares_nothing(request));
    for own in request.definitions() {
        let mut of_one = job::warnings(own);
        if !is_local {
            of_one.extend(job::stack_warnings(own));
        }
        of_one.extend(algorithm::warnings(own));
        of_one.extend(space::warnings(own));
        found.extend(of_one.into_iter().map(|warning| warning.of_definition(own.own_name())));
    }
    found
}
