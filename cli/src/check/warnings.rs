//! Warnings about a valid request: cost, instances, search space and algorithm.
//!
//! Each warning follows from the request alone, and says what will happen and how to avoid it. Warning codes are stable
//! names for programs.

mod algorithm;
mod job;
mod space;

use serde_json::Value;
use wire::request::Request;

use crate::plan::{cap_admits, compares_nothing};
use crate::warning::Warning;

pub(crate) use space::is_rarely_small;

/// Returns all warnings. A request for this machine only gets none about cost, quotas and data of AWS.
pub(super) fn all(request: &Request, is_local: bool) -> Vec<Warning> {
    let mut found = job::warnings(request);
    if !is_local {
        found.extend(job::stack_warnings(request));
    }
    found.extend(cap_admits(request));
    found.extend(compares_nothing(request));
    for own in request.definitions() {
        let name = own.at("TrainingJobDefinition.DefinitionName").and_then(Value::as_str);
        let of_one = algorithm::warnings(own).into_iter().chain(space::warnings(own));
        found.extend(of_one.map(|warning| warning.of_definition(name)));
    }
    found
}
