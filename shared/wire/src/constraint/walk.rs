//! Checks each value of a request against its row of the table, and reports unknown fields.
//!
//! Each value yields at most one violation: the first of type, unsupported value, length or bounds, pattern, allowed
//! values. The work is proportional to the size of the request. Messages shorten long values.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value};

use super::{Constraint, Kind, Style, rows};
use crate::request::{MAX_VIOLATIONS, Violation, shortened};

/// The state of a walk over a request, and the violations found so far.
#[derive(Debug)]
pub(super) struct Walk {
    style: Style,
    children: BTreeMap<&'static str, Vec<&'static Constraint>>,
    patterns: BTreeMap<&'static str, Regex>,
    found: Vec<Found>,
    /// Number of violations beyond [`MAX_VIOLATIONS`], which are counted but not kept.
    pub(super) omitted: usize,
}

/// A violation and the path of the row it breaks.
#[derive(Debug)]
struct Found {
    row: String,
    violation: Violation,
    /// The value as shown and its row, if the value is not one of the row's values.
    wrong_enum: Option<(String, &'static Constraint)>,
}

impl Walk {
    /// Checks a whole request against `rows`.
    pub(super) fn over(
        body: &Value,
        rows: impl IntoIterator<Item = &'static Constraint>,
        style: Style,
    ) -> Self {
        let (children, patterns) = (BTreeMap::new(), BTreeMap::new());
        let mut walk = Self { style, children, patterns, found: Vec::new(), omitted: 0 };
        for row in rows {
            walk.children.entry(row.parent()).or_default().push(row);
        }
        match body {
            Value::Object(members) => walk.members("", "", members),
            _ => walk.push("", "", "Invalid request: expected a JSON object".to_owned()),
        }
        walk
    }

    /// Returns whether the request breaks a row that names `rule`, or a row above or below such a row. Ignores the
    /// violation with the index `except`.
    pub(super) fn breaks_input_of(&self, rule: &str, except: Option<usize>) -> bool {
        let reads = || rows().filter(|row| row.rules.contains(&rule));
        self.found.iter().enumerate().any(|(index, found)| {
            Some(index) != except
                && reads().any(|row| is_within(&found.row, row.path) || is_within(row.path, &found.row))
        })
    }

    /// Returns the index, the row and the path of each value that is not one of its row's values.
    pub(super) fn wrong_enums(&self) -> Vec<(usize, &'static Constraint, String)> {
        let wrong = self.found.iter().enumerate().filter_map(|(index, found)| {
            let (_, row) = found.wrong_enum.as_ref()?;
            Some((index, *row, found.violation.path.clone()))
        });
        wrong.collect()
    }

    /// Replaces the requirement in the message of a wrong enum value.
    pub(super) fn reword(&mut self, index: usize, requirement: &str) {
        if let Some(Found { violation, wrong_enum: Some((value, _)), .. }) = self.found.get_mut(index) {
            violation.message = failure(value, &violation.path, requirement);
        }
    }

    pub(super) fn violations(&self) -> Vec<Violation> {
        self.found.iter().map(|found| found.violation.clone()).collect()
    }

    fn push(&mut self, row: &str, path: &str, message: String) {
        if self.found.len() >= MAX_VIOLATIONS {
            self.omitted = self.omitted.saturating_add(1);
            return;
        }
        let violation = Violation { path: path.to_owned(), message };
        self.found.push(Found { row: row.to_owned(), violation, wrong_enum: None });
    }

    fn fail(&mut self, row: &Constraint, path: &str, value: &Value, requirement: &str) {
        self.push(row.path, path, failure(&quoted(value), path, requirement));
    }

    fn children(&self, parent: &str) -> Vec<&'static Constraint> {
        self.children.get(parent).cloned().unwrap_or_default()
    }

    /// Checks the members of a structure against the rows below `parent`.
    fn members(&mut self, parent: &str, path: &str, members: &Map<String, Value>) {
        let rows = self.children(parent);
        for (name, value) in members {
            let inner = join(path, &self.member(&shortened(name)));
            match rows.iter().find(|row| last(row.path) == name) {
                // Null counts as absent.
                Some(row) if !value.is_null() => self.value(row, &inner, value),
                Some(_) => {}
                None if self.style == Style::Service => {}
                None => {
                    let known: Vec<&str> = rows.iter().map(|row| last(row.path)).collect();
                    let message = format!("Unknown field '{inner}': expected one of {}", known.join(", "));
                    self.push(&join(parent, name), &inner, message);
                }
            }
        }
        for row in rows.iter().filter(|row| row.required) {
            if members.get(last(row.path)).is_none_or(Value::is_null) {
                let inner = join(path, &self.member(last(row.path)));
                self.fail(row, &inner, &Value::Null, "not be null: it is required");
            }
        }
    }

    fn member(&self, name: &str) -> String {
        let mut letters = name.chars();
        match (self.style, letters.next()) {
            (Style::Service, Some(first)) => first.to_lowercase().chain(letters).collect(),
            (Style::Service, None) | (Style::Request, _) => name.to_owned(),
        }
    }

    fn value(&mut self, row: &'static Constraint, path: &str, value: &Value) {
        let unsupported = row.unsupported.filter(|unsupported| is_unsupported(unsupported.values, value));
        if let Some(unsupported) = unsupported {
            let message =
                format!("Value {} at '{path}' is not supported yet; {}", quoted(value), unsupported.advice);
            self.push(row.path, path, message);
        }
        match (row.kind, value) {
            (Kind::Structure, Value::Object(members)) => {
                self.members(row.like.unwrap_or(row.path), path, members);
            }
            (Kind::List, Value::Array(elements)) => {
                if unsupported.is_none() {
                    self.length(row, path, value, elements.len());
                }
                for (index, element) in elements.iter().enumerate() {
                    for inner in self.children(row.path) {
                        self.value(inner, &format!("{path}[{index}]"), element);
                    }
                }
            }
            // The value is already rejected.
            _ if unsupported.is_some() => {}
            (Kind::Map, Value::Object(entries)) => self.entries(row, path, value, entries),
            (Kind::Text | Kind::Scalar, Value::String(text)) => self.text(row, path, value, text),
            (Kind::Integer, Value::Number(_)) if value.as_i64().is_some() || value.as_u64().is_some() => {
                self.bounds(row, path, value);
            }
            (Kind::Number, Value::Number(_)) => self.bounds(row, path, value),
            (Kind::Dollars, Value::Number(_)) if value.as_f64().is_some_and(|number| number > 0.0) => {
                self.bounds(row, path, value);
            }
            (Kind::Boolean, Value::Bool(_)) | (Kind::Scalar, Value::Number(_)) => {}
            (kind, value) => self.fail(row, path, value, kind.requirement()),
        }
    }

    fn entries(&mut self, row: &Constraint, path: &str, value: &Value, entries: &Map<String, Value>) {
        self.length(row, path, value, entries.len());
        for (key, entry) in entries {
            let inner = join(path, &shortened(key));
            for child in self.children(row.path) {
                if child.path.ends_with("{key}") {
                    self.text(child, &inner, &Value::String(key.clone()), key);
                } else {
                    self.value(child, &inner, entry);
                }
            }
        }
    }

    fn text(&mut self, row: &'static Constraint, path: &str, value: &Value, text: &str) {
        if !self.length(row, path, value, text.chars().count()) {
            return;
        }
        if let Some(pattern) = row.pattern
            && !self.matches(pattern, text)
        {
            self.fail(row, path, value, &format!("satisfy regular expression pattern: {pattern}"));
        } else if !row.values.is_empty() && !row.values.contains(&text) {
            let kept = self.found.len();
            self.fail(row, path, value, &enum_requirement(row.values));
            if let Some(found) = self.found.get_mut(kept) {
                found.wrong_enum = Some((quoted(value), row));
            }
        }
    }

    fn matches(&mut self, pattern: &'static str, text: &str) -> bool {
        if !self.patterns.contains_key(pattern)
            && let Ok(regex) = Regex::new(&format!("^(?:{pattern})$"))
        {
            self.patterns.insert(pattern, regex);
        }
        // A test compiles every pattern of the table, so the lookup succeeds.
        self.patterns.get(pattern).is_some_and(|regex| regex.is_match(text))
    }

    fn length(&mut self, row: &Constraint, path: &str, value: &Value, length: usize) -> bool {
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        if let Some(min) = row.min.filter(|min| length < *min) {
            self.fail(row, path, value, &format!("have length greater than or equal to {min}"));
            return false;
        }
        if let Some(max) = row.max.filter(|max| length > *max) {
            self.fail(row, path, value, &format!("have length less than or equal to {max}"));
            return false;
        }
        true
    }

    fn bounds(&mut self, row: &Constraint, path: &str, value: &Value) {
        let integer = row.kind == Kind::Integer;
        let min = row.min.or(integer.then_some(i64::from(i32::MIN)));
        let max = row.max.or(integer.then_some(i64::from(i32::MAX)));
        if let Some(min) = min.filter(|min| is_less(value, *min)) {
            self.fail(row, path, value, &format!("have value greater than or equal to {min}"));
        } else if let Some(max) = max.filter(|max| is_greater(value, *max)) {
            self.fail(row, path, value, &format!("have value less than or equal to {max}"));
        }
    }
}

impl Kind {
    /// Returns the requirement on a value of this type, to follow "must" in a message.
    pub(crate) fn requirement(self) -> &'static str {
        match self {
            Self::Structure => "be an object",
            Self::List => "be a list",
            Self::Map => "be an object (a map of names to values)",
            Self::Text => "be a string",
            Self::Integer => "be a whole number, for example 10",
            Self::Number => "be a number, for example 0.5",
            Self::Dollars => "be a number greater than 0 (US dollars), for example 20",
            Self::Boolean => "be true or false",
            Self::Scalar => "be a string or a number",
        }
    }
}

/// Returns the requirement on a value that must be one of `values`.
pub(super) fn enum_requirement(values: &[&str]) -> String {
    format!("satisfy enum value set: [{}]", values.join(", "))
}

fn failure(value: &str, path: &str, requirement: &str) -> String {
    format!("Value {value} at '{path}' failed to satisfy constraint: Member must {requirement}")
}

fn is_unsupported(values: &[&str], value: &Value) -> bool {
    match value {
        Value::String(text) if !values.is_empty() => values.contains(&text.as_str()),
        Value::Array(elements) => !elements.is_empty(),
        _ => values.is_empty(),
    }
}

fn is_less(value: &Value, min: i64) -> bool {
    value.as_i64().map_or_else(
        || value.as_u64().is_none() && value.as_f64().is_some_and(|number| number < float(min)),
        |number| number < min,
    )
}

fn is_greater(value: &Value, max: i64) -> bool {
    value.as_i64().map_or_else(
        || value.as_u64().is_some() || value.as_f64().is_some_and(|number| number > float(max)),
        |number| number > max,
    )
}

#[expect(clippy::cast_precision_loss, reason = "bounds of fields that accept fractions are far below 2^53")]
fn float(bound: i64) -> f64 {
    bound as f64
}

/// Returns whether `path` is `outer` or lies below it.
pub(super) fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '{']))
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn quoted(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", shortened(text)),
        Value::Array(_) => "'[...]'".to_owned(),
        Value::Object(_) => "'{...}'".to_owned(),
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => format!("'{value}'"),
    }
}
