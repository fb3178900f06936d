//! The constraint table: the type, the bounds and the rules of every field of a request.
//!
//! The table is data. It drives the validation of requests, and everything else that describes a request (the API
//! document, `check`) reads the same rows. A path consists of member names; `[]` stands for an element of a list, `{}`
//! for a value and `{key}` for a key of a map. Sources: the service model of `CreateHyperParameterTuningJob` and, for
//! `Controller`, docs/REQUEST.md.
//!
//! Validation never changes a request and reports all violations, not only the first.

use serde_json::Value;

use crate::request::{Request, RequestError};

mod accepted;
pub(crate) mod lift;
mod rules;
mod schema;
mod table;
mod walk;

pub use lift::remove_lifted;
pub use rules::{RULES, Rule};
pub use schema::schema;

/// One row of the table: the constraints on one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constraint {
    /// Path of the field.
    pub path: &'static str,
    /// Its JSON type.
    pub kind: Kind,
    /// Whether the parent structure must contain the field.
    pub required: bool,
    /// Minimum value of a number, or minimum length of a string (in characters), list or map. `None` = no minimum; for
    /// an integer, `i32::MIN`.
    pub min: Option<i64>,
    /// Maximum value or length. `None` = no maximum; for an integer, `i32::MAX`.
    pub max: Option<i64>,
    /// Regular expression that the whole string must match.
    pub pattern: Option<&'static str>,
    /// The allowed strings; empty = any.
    pub values: &'static [&'static str],
    /// Path of another structure that has the same members.
    pub like: Option<&'static str>,
    /// Values of SageMaker's API that the controller does not support yet.
    pub unsupported: Option<Unsupported>,
    /// Names of the [`RULES`] that read this field. A rule runs only if all fields that name it are well formed.
    pub rules: &'static [&'static str],
}

/// The JSON type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Object with the members that the table lists.
    Structure,
    /// Array.
    List,
    /// Object with keys that the user chooses.
    Map,
    /// String.
    Text,
    /// Number without a fraction.
    Integer,
    /// Number.
    Number,
    /// Amount of US dollars: a number greater than 0.
    Dollars,
    /// `true` or `false`.
    Boolean,
    /// The value of a hyperparameter: string or number.
    Scalar,
}

/// Values that validation rejects because the controller does not support them yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsupported {
    /// The values; empty = the whole field (an empty list is allowed).
    pub values: &'static [&'static str],
    /// The supported alternative.
    pub advice: &'static str,
}

/// How a check treats unknown fields, and how its messages write paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Rejects unknown fields. Paths are as in the request.
    Request,
    /// Accepts unknown fields. Member names begin in lower case, as in the messages of SageMaker.
    Service,
}

/// Returns all rows of a request for a tuning job.
pub fn rows() -> impl Iterator<Item = &'static Constraint> {
    [table::TUNING, table::JOB, table::RESOURCES, table::CONTROLLER, &table::SETTINGS].into_iter().flatten()
}

/// Checks a request against every row and rule.
pub(crate) fn check(request: &Request) -> Result<(), RequestError> {
    // Rows would report fields of the wrong form one by one.
    let misplaced = request.misplaced();
    if !misplaced.is_empty() {
        return Err(RequestError::listing(misplaced, 0));
    }
    let mut walked = walk::Walk::over(request.body(), rows(), Style::Request);
    accepted::narrow(&mut walked, request);
    let mut violations = Vec::new();
    let mut all = walked.violations();
    if request.has_definition_list() {
        if all.is_empty() {
            // The definitions share the training jobs, and SpotFallback is for those on spot instances.
            let is_alone = request.definitions().nth(1).is_none();
            let is_spot = request.definitions().any(Request::is_spot);
            let is_of_each = |name| match name {
                "combinations" => is_alone,
                "spot_fallback" => !is_spot,
                _ => true,
            };
            let rules = || RULES.iter().filter(|rule| is_of_each(rule.name));
            violations =
                request.check_definitions(|one| rules().flat_map(|rule| (rule.check)(one)).collect());
        }
    } else if walked.omitted == 0 {
        let ready = RULES.iter().filter(|rule| !walked.breaks_input_of(rule.name, None));
        violations = ready.flat_map(|rule| (rule.check)(request)).collect();
    }
    all.append(&mut violations);
    lift::append_sources(request, &mut all);
    if all.is_empty() { Ok(()) } else { Err(RequestError::listing(all, walked.omitted)) }
}

/// Checks a `CreateTrainingJob` request against its rows.
pub fn check_training_job(body: &Value) -> Result<(), RequestError> {
    check_for_service(body, tag_rows().chain(table::TRAINING_JOB))
}

/// Checks the `Tags` of a request of a training service.
pub fn check_tags(body: &Value) -> Result<(), RequestError> {
    check_for_service(body, tag_rows())
}

fn tag_rows() -> impl Iterator<Item = &'static Constraint> {
    table::TUNING.iter().filter(|row| row.path.starts_with("Tags"))
}

fn check_for_service(
    body: &Value,
    rows: impl Iterator<Item = &'static Constraint>,
) -> Result<(), RequestError> {
    let walked = walk::Walk::over(body, rows, Style::Service);
    let violations = walked.violations();
    if violations.is_empty() { Ok(()) } else { Err(RequestError::listing(violations, walked.omitted)) }
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
            unsupported: None,
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

    const fn unsupported(mut self, values: &'static [&'static str], advice: &'static str) -> Self {
        self.unsupported = Some(Unsupported { values, advice });
        self
    }

    const fn rules(mut self, rules: &'static [&'static str]) -> Self {
        self.rules = rules;
        self
    }

    /// Returns the path of the structure, list or map that contains the field; empty for a top-level field.
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
const fn scalar(path: &'static str) -> Constraint {
    Constraint::new(path, Kind::Scalar)
}
const fn boolean(path: &'static str) -> Constraint {
    Constraint::new(path, Kind::Boolean)
}

#[cfg(test)]
mod tests;
