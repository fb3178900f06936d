//! The values that the message about an invalid enum value lists: all values that no rule rejects in this request.
//!
//! A list with a rejected value would send the user from one error to the next.

use super::walk::{Walk, enum_requirement, is_within};
use super::{Constraint, RULES, Rule, rows};
use crate::request::Request;

/// How the rules treat a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Treatment {
    Accepted,
    /// A rule rejects the value itself.
    Rejected,
    /// A rule rejects the structure around the value, perhaps for another field.
    RejectedAround,
}

/// Rewrites the messages of all wrong enum values.
pub(super) fn narrow(walked: &mut Walk, request: &Request) {
    for (index, row, path) in walked.wrong_enums() {
        let ready: Vec<&Rule> = RULES
            .iter()
            .filter(|rule| reads(rule, row) && !walked.breaks_input_of(rule.name, Some(index)))
            .collect();
        let treated = row.values.iter().map(|value| (*value, treatment(request, &path, value, &ready)));
        let treated: Vec<(&str, Treatment)> = treated.collect();
        let accepted = treated.iter().filter(|(_, treatment)| *treatment == Treatment::Accepted);
        let accepted: Vec<&str> = accepted.map(|(value, _)| *value).collect();
        if !accepted.is_empty() {
            walked.reword(index, &enum_requirement(&accepted));
        } else if treated.iter().all(|(_, treatment)| *treatment == Treatment::Rejected) {
            walked.reword(index, "be absent: other fields of this request exclude every value");
        }
    }
}

fn reads(rule: &Rule, row: &Constraint) -> bool {
    rows().any(|named| named.rules.contains(&rule.name) && is_within(row.path, named.path))
}

/// Returns how `rules` treat the request with `value` at `path`.
fn treatment(request: &Request, path: &str, value: &str, rules: &[&Rule]) -> Treatment {
    let mut body = request.body().clone();
    let pointer = format!("/{}", path.replace(['.', '['], "/").replace(']', ""));
    if let Some(place) = body.pointer_mut(&pointer) {
        *place = value.into();
    }
    let tried = Request::from_stored(body);
    let around = path.rsplit_once('.').map_or("", |(around, _)| around);
    let mut treatment = Treatment::Accepted;
    for violation in rules.iter().flat_map(|rule| (rule.check)(&tried)) {
        if violation.path == path {
            return Treatment::Rejected;
        }
        if violation.path == around {
            treatment = Treatment::RejectedAround;
        }
    }
    treatment
}
