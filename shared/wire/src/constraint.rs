//! The constraint table: every field of a request, its type, its bounds and the rules it takes part in.
//!
//! Data, not code: it drives the check of requests, and whatever else describes them (an API document, `check`) reads the
//! same rows. A path is made of member names; `[]` stands for an element of a list, `{}` for a value and `{key}` for a key
//! of a map. Sources: the service model of `CreateHyperParameterTuningJob` and, for `Controller`, CONTRACT.md.
//!
//! Never changes a request, never stops at the first thing wrong.

use crate::request::{ErrorCode, Request, RequestError, Violation, name_sources};

mod rules;
mod table;
mod walk;

pub use rules::{RULES, Rule};

/// Most violations told in one answer.
pub const MAX_VIOLATIONS: usize = 20;

/// One row: what one field may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constraint {
    /// Path of the field.
    pub path: &'static str,
    /// Its JSON type.
    pub kind: Kind,
    /// Whether the structure it belongs to must have it.
    pub required: bool,
    /// Least value of a number, least length of a text (in characters), list or map.
    pub min: Option<i64>,
    /// Greatest value or length. An integer without one is of 32 bits.
    pub max: Option<i64>,
    /// Regular expression that the whole text matches.
    pub pattern: Option<&'static str>,
    /// The only texts allowed; empty = any.
    pub values: &'static [&'static str],
    /// Path of a structure whose members this one has as well.
    pub like: Option<&'static str>,
    /// What is part of the API and not supported yet.
    pub later: Option<Later>,
    /// Names of the [`RULES`] that read this field; they are asked only when all fields they read are well formed.
    pub rules: &'static [&'static str],
}

/// The JSON type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Object with the members that the table names.
    Structure,
    /// Array.
    List,
    /// Object with keys of the user's.
    Map,
    /// String.
    Text,
    /// Number without a fraction.
    Integer,
    /// Number.
    Number,
    /// Number greater than 0.
    Dollars,
    /// Truth value.
    Boolean,
}

/// Values that are refused until we support them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Later {
    /// The values; empty = the field as such (an empty list is allowed).
    pub values: &'static [&'static str],
    /// What to do instead.
    pub advice: &'static str,
}

/// All rows.
pub fn rows() -> impl Iterator<Item = &'static Constraint> {
    [table::TUNING, table::JOB, table::RESOURCES, table::CONTROLLER].into_iter().flatten()
}

/// Checks a request against every row and rule.
pub(crate) fn check(request: &Request) -> Result<(), RequestError> {
    let walked = walk::Walk::over(request.body());
    let mut violations = Vec::new();
    if walked.more == 0 {
        let open = RULES.iter().filter(|rule| !walked.touches(rule.name));
        violations = open.flat_map(|rule| (rule.check)(request)).collect();
    }
    let mut all = walked.violations();
    all.append(&mut violations);
    name_sources(request, &mut all);
    if all.is_empty() { Ok(()) } else { Err(report(all, walked.more)) }
}

/// The error that tells of violations; `more` were found besides.
pub(crate) fn report(mut violations: Vec<Violation>, more: usize) -> RequestError {
    let count = violations.len().saturating_add(more);
    violations.truncate(MAX_VIOLATIONS);
    let mut texts: Vec<String> = violations.iter().map(|violation| violation.message.clone()).collect();
    if count > violations.len() {
        texts.push(format!("and {} more", count.saturating_sub(violations.len())));
    }
    let plural = if count == 1 { "" } else { "s" };
    let message = format!("{count} validation error{plural} detected: {}", texts.join("; "));
    RequestError { code: ErrorCode::ValidationException, message, violations }
}

impl Constraint {
    const fn new(path: &'static str, kind: Kind) -> Self {
        Self {
            path,
            kind,
            required: false,
            min: None,
            max: None,
            pattern: None,
            values: &[],
            like: None,
            later: None,
            rules: &[],
        }
    }

    const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    const fn min(mut self, min: i64) -> Self {
        self.min = Some(min);
        self
    }

    const fn max(mut self, max: i64) -> Self {
        self.max = Some(max);
        self
    }

    const fn range(self, min: i64, max: i64) -> Self {
        self.min(min).max(max)
    }

    const fn pattern(mut self, pattern: &'static str) -> Self {
        self.pattern = Some(pattern);
        self
    }

    const fn one_of(mut self, values: &'static [&'static str]) -> Self {
        self.values = values;
        self
    }

    const fn like(mut self, path: &'static str) -> Self {
        self.like = Some(path);
        self
    }

    const fn later(mut self, values: &'static [&'static str], advice: &'static str) -> Self {
        self.later = Some(Later { values, advice });
        self
    }

    const fn rules(mut self, rules: &'static [&'static str]) -> Self {
        self.rules = rules;
        self
    }

    /// Path of the structure, list or map that the field belongs to; empty for the request itself.
    pub fn parent(&self) -> &'static str {
        let inner = ["[]", "{}", "{key}"].iter().find_map(|suffix| self.path.strip_suffix(suffix));
        inner.unwrap_or_else(|| self.path.rsplit_once('.').map_or("", |(parent, _)| parent))
    }
}

const fn structure(path: &'static str) -> Constraint {
    Constraint::new(path, Kind::Structure)
}
const fn list(path: &'static str) -> Constraint {
    Constraint::new(path, Kind::List)
}
const fn map(path: &'static str) -> Constraint {
    Constraint::new(path, Kind::Map)
}
const fn text(path: &'static str) -> Constraint {
    Constraint::new(path, Kind::Text)
}
const fn integer(path: &'static str) -> Constraint {
    Constraint::new(path, Kind::Integer)
}
const fn number(path: &'static str) -> Constraint {
    Constraint::new(path, Kind::Number)
}
const fn dollars(path: &'static str) -> Constraint {
    Constraint::new(path, Kind::Dollars)
}
const fn boolean(path: &'static str) -> Constraint {
    Constraint::new(path, Kind::Boolean)
}

#[cfg(test)]
mod tests;
