//! Fields of `Controller` from clients that cannot send it: tags `hyperband:<Field>` and environment variables
//! `HYPERBAND_<Field>`.
//!
//! SageMaker's own clients refuse members that their service model has not. What is given so is put into `Controller` before
//! the request is checked, and stays where it was, so that Describe shows what was sent; training jobs never get it. A tag's
//! value is plain text, a variable's is JSON (a text also without quotes). Must never choose between values that differ.

use serde_json::{Map, Value};

use super::{Request, Violation, json, shortened};
use crate::constraint::{Constraint, Kind, rows};
use crate::names::{TAG_DECISION, TAG_STACK, TAG_TUNING};

const CONTROLLER: &str = "Controller";
const TAG: &str = "hyperband:";
const VARIABLE: &str = "HYPERBAND_";

/// Where a field is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// `Tags`.
    Tag,
    /// `TrainingJobDefinition.Environment`.
    Variable,
}

/// A field that is given beside `Controller`.
#[derive(Debug, Clone)]
struct Given<'a> {
    source: Source,
    path: String,
    field: &'a str,
    text: &'a str,
}

/// Whether a tag is for the controller, not for training jobs.
pub(crate) fn is_tag(key: &str) -> bool {
    key.starts_with(TAG)
}

/// Whether an environment variable is for the controller, not for training jobs.
pub(crate) fn is_variable(name: &str) -> bool {
    name.starts_with(VARIABLE)
}

/// Puts what is given beside `Controller` into it. What is there already stays.
pub(super) fn lift(body: &mut Value) {
    let lifted: Vec<(String, Value)> = all_given(body)
        .iter()
        .filter_map(|given| Some((given.field.to_owned(), given.value().ok()?)))
        .collect();
    let Value::Object(members) = body else { return };
    if lifted.is_empty() {
        return;
    }
    let controller = members.entry(CONTROLLER).or_insert(Value::Null);
    if controller.is_null() {
        *controller = Value::Object(Map::new());
    }
    let Value::Object(controller) = controller else { return };
    for (field, value) in lifted {
        let member = controller.entry(field).or_insert(Value::Null);
        if member.is_null() {
            *member = value;
        }
    }
}

/// What is wrong with what `source` gives in a request in whose `Controller` it is.
pub(crate) fn violations(request: &Request, source: Source) -> Vec<Violation> {
    let given = all_given(request.body()).into_iter().filter(|given| given.source == source);
    let wrong = |given: &Given<'_>| -> Option<String> {
        let value = match given.value() {
            Ok(value) => value,
            Err(why) => return Some(why),
        };
        let stands = request.object(CONTROLLER)?.get(given.field)?;
        let differs = !is_same(&value, stands);
        differs.then(|| {
            format!(
                "it says {} where something else says {}: give {} once",
                shortened(&value.to_string()),
                shortened(&stands.to_string()),
                given.field
            )
        })
    };
    let violation = |given: Given<'_>| {
        let message = format!("The {} is refused: {} (at '{}')", given.name(), wrong(&given)?, given.path);
        Some(Violation { path: given.path, message })
    };
    given.filter_map(violation).collect()
}

/// Adds to what is wrong in `Controller` where that was given.
pub(crate) fn name_sources(request: &Request, violations: &mut [Violation]) {
    let all = all_given(request.body());
    for violation in violations {
        let Some(rest) = violation.path.strip_prefix("Controller.") else { continue };
        let field = rest.split(['.', '[']).next().unwrap_or(rest);
        for given in all.iter().filter(|given| given.field == field) {
            violation.message = format!("{} (given as {})", violation.message, given.name());
        }
    }
}

fn all_given(body: &Value) -> Vec<Given<'_>> {
    let tags = body.get("Tags").and_then(Value::as_array).into_iter().flatten().enumerate();
    let tags = tags.filter_map(|(index, tag)| {
        let field = tag.get("Key")?.as_str()?.strip_prefix(TAG)?;
        let text = tag.get("Value")?.as_str()?;
        Some(Given { source: Source::Tag, path: format!("Tags[{index}]"), field, text })
    });
    let variables = body.pointer("/TrainingJobDefinition/Environment").and_then(Value::as_object);
    let variables = variables.into_iter().flatten().filter_map(|(name, value)| {
        let field = name.strip_prefix(VARIABLE)?;
        let path = format!("TrainingJobDefinition.Environment.{}", shortened(name));
        Some(Given { source: Source::Variable, path, field, text: value.as_str()? })
    });
    tags.chain(variables).collect()
}

impl Given<'_> {
    fn name(&self) -> String {
        let field = shortened(self.field);
        match self.source {
            Source::Tag => format!("tag '{TAG}{field}'"),
            Source::Variable => format!("environment variable '{VARIABLE}{field}'"),
        }
    }

    /// The value of the field, or what is wrong.
    fn value(&self) -> Result<Value, String> {
        let Some(row) = rows().find(|row| field_of(row) == Some(self.field)) else {
            return Err(self.unknown());
        };
        let allowed = || format!("its value '{}' must {}", shortened(self.text), row.kind.must());
        match (row.kind, self.source) {
            (Kind::Text, Source::Variable) if self.text.starts_with('"') => {
                json::value(self.text.as_bytes()).ok().filter(Value::is_string).ok_or_else(allowed)
            }
            (Kind::Text, _) => Ok(Value::String(self.text.to_owned())),
            (Kind::Integer | Kind::Number | Kind::Dollars, _) => {
                json::value(self.text.as_bytes()).ok().filter(Value::is_number).ok_or_else(allowed)
            }
            (Kind::Boolean, _) => {
                json::value(self.text.as_bytes()).ok().filter(Value::is_boolean).ok_or_else(allowed)
            }
            (Kind::Structure | Kind::List | Kind::Map, Source::Variable) => {
                json::value(self.text.as_bytes()).map_err(|_| format!("{} in JSON", allowed()))
            }
            (Kind::Structure | Kind::List | Kind::Map, Source::Tag) => Err(format!(
                "a tag's value cannot {}; use the environment variable {VARIABLE}{} with its JSON",
                row.kind.must(),
                self.field
            )),
        }
    }

    fn unknown(&self) -> String {
        let ours = [TAG_STACK, TAG_TUNING, TAG_DECISION];
        if self.source == Source::Tag && ours.iter().any(|tag| tag.strip_prefix(TAG) == Some(self.field)) {
            return "it is set on training jobs by the stack".to_owned();
        }
        let known: Vec<&str> = rows().filter_map(field_of).collect();
        format!("Controller has no such field; known there: {}", known.join(", "))
    }
}

/// The name of a field of `Controller`, if the row is of one.
fn field_of(row: &Constraint) -> Option<&'static str> {
    row.path.strip_prefix("Controller.").filter(|field| !field.contains(['.', '[', '{']))
}

fn is_same(one: &Value, other: &Value) -> bool {
    one == other || (one.is_number() && one.as_f64() == other.as_f64())
}
