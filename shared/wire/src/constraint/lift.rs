//! Reads fields of `Controller` from tags `hyperband:<Field>` and environment variables `HYPERBAND_<Field>`.
//!
//! SageMaker's own clients reject members that their service model lacks, so they cannot send `Controller`. Before the
//! request is validated, [`lift`] copies such fields into `Controller`. The tags and variables stay in the request, so
//! that Describe shows what was sent; training jobs never get them. A tag's value is plain text; a variable's value is
//! JSON, or a string without quotes. If two sources set a field to different values, validation rejects the request.

use serde_json::{Map, Value};

use super::{Constraint, Kind, rows};
use crate::names::{TAG_DECISION, TAG_PREFIX, TAG_STACK, TAG_TUNING, VARIABLE_PREFIX};
use crate::request::{DEFINITION, LIST, Request, Violation, job_definitions_mut, json_value, shortened};

const CONTROLLER: &str = "Controller";

/// The place beside `Controller` that sets a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Tag,
    /// `TrainingJobDefinition.Environment`.
    Variable,
}

/// A field of `Controller` that a tag or a variable sets.
#[derive(Debug, Clone)]
struct Given<'a> {
    source: Source,
    path: String,
    field: &'a str,
    text: &'a str,
}

/// Copies the fields that tags and variables set into `Controller`. Fields that `Controller` already has keep their
/// value.
pub(crate) fn lift(body: &mut Value) {
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

/// Removes the tags and variables whose fields are also in `Controller` of a stored request, so that a new request may
/// change these fields.
pub fn remove_lifted(body: &mut Value) {
    if let Some(Value::Array(tags)) = body.get_mut("Tags") {
        tags.retain(|tag| !tag["Key"].as_str().is_some_and(|key| key.starts_with(TAG_PREFIX)));
    }
    let variables = job_definitions_mut(body).filter_map(|one| one.get_mut("Environment")?.as_object_mut());
    for variables in variables {
        variables.retain(|name, _| !name.starts_with(VARIABLE_PREFIX));
    }
}

/// Returns the violations of fields that `source` sets, in a request that [`lift`] has already changed.
pub(super) fn violations(request: &Request, source: Source) -> Vec<Violation> {
    let given = all_given(request.body()).into_iter().filter(|given| given.source == source);
    let wrong = |given: &Given<'_>| -> Option<String> {
        let value = match given.value() {
            Ok(value) => value,
            Err(why) => return Some(why),
        };
        let other = request.object(CONTROLLER)?.get(given.field)?;
        let differs = !is_same(&value, other);
        differs.then(|| {
            format!(
                "its value {} differs from {}, which another source sets; set {} only once",
                shortened(&value.to_string()),
                shortened(&other.to_string()),
                given.field
            )
        })
    };
    let violation = |given: Given<'_>| {
        let message = format!("Invalid {}: {} (at '{}')", given.name(), wrong(&given)?, given.path);
        Some(Violation { path: given.path, message })
    };
    given.filter_map(violation).collect()
}

/// Appends the tag or the variable that set the field to each violation in `Controller`.
pub(super) fn append_sources(request: &Request, violations: &mut [Violation]) {
    let all = all_given(request.body());
    for violation in violations {
        let Some(rest) = violation.path.strip_prefix("Controller.") else { continue };
        let field = rest.split(['.', '[']).next().unwrap_or(rest);
        for given in all.iter().filter(|given| given.field == field) {
            violation.message = format!("{} (set by {})", violation.message, given.name());
        }
    }
}

fn all_given(body: &Value) -> Vec<Given<'_>> {
    let tags = body.get("Tags").and_then(Value::as_array).into_iter().flatten().enumerate();
    let tags = tags.filter_map(|(index, tag)| {
        let field = tag.get("Key")?.as_str()?.strip_prefix(TAG_PREFIX)?;
        let text = tag.get("Value")?.as_str()?;
        Some(Given { source: Source::Tag, path: format!("Tags[{index}]"), field, text })
    });
    let one = body.get(DEFINITION).map(|one| (DEFINITION.to_owned(), one));
    let list = body.get(LIST).and_then(Value::as_array).into_iter().flatten().enumerate();
    let all = one.into_iter().chain(list.map(|(index, one)| (format!("{LIST}[{index}]"), one)));
    let variables = all.flat_map(|(path, one)| {
        let variables = one.get("Environment").and_then(Value::as_object).into_iter().flatten();
        variables.filter_map(move |(name, value)| {
            let field = name.strip_prefix(VARIABLE_PREFIX)?;
            let path = format!("{path}.Environment.{}", shortened(name));
            Some(Given { source: Source::Variable, path, field, text: value.as_str()? })
        })
    });
    tags.chain(variables).collect()
}

impl Given<'_> {
    fn name(&self) -> String {
        let field = shortened(self.field);
        match self.source {
            Source::Tag => format!("tag '{TAG_PREFIX}{field}'"),
            Source::Variable => format!("environment variable '{VARIABLE_PREFIX}{field}'"),
        }
    }

    /// Returns the value of the field, or the reason why it is invalid.
    fn value(&self) -> Result<Value, String> {
        let Some(row) = rows().find(|row| field_of(row) == Some(self.field)) else {
            return Err(self.unknown());
        };
        let invalid = || format!("its value '{}' must {}", shortened(self.text), row.kind.requirement());
        match (row.kind, self.source) {
            (Kind::Text, Source::Variable) if self.text.starts_with('"') => {
                json_value(self.text.as_bytes()).ok().filter(Value::is_string).ok_or_else(invalid)
            }
            (Kind::Text | Kind::Scalar, _) => Ok(Value::String(self.text.to_owned())),
            (Kind::Integer | Kind::Number | Kind::Dollars, _) => {
                json_value(self.text.as_bytes()).ok().filter(Value::is_number).ok_or_else(invalid)
            }
            (Kind::Boolean, _) => {
                json_value(self.text.as_bytes()).ok().filter(Value::is_boolean).ok_or_else(invalid)
            }
            (Kind::Structure | Kind::List | Kind::Map, Source::Variable) => {
                json_value(self.text.as_bytes()).map_err(|_| format!("{} in JSON", invalid()))
            }
            (Kind::Structure | Kind::List | Kind::Map, Source::Tag) => Err(format!(
                "its value must {}, which a tag cannot hold; set the environment variable {VARIABLE_PREFIX}{} to its JSON \
                 instead",
                row.kind.requirement(),
                self.field
            )),
        }
    }

    fn unknown(&self) -> String {
        let ours = [TAG_STACK, TAG_TUNING, TAG_DECISION];
        if self.source == Source::Tag
            && ours.iter().any(|tag| tag.strip_prefix(TAG_PREFIX) == Some(self.field))
        {
            return "the stack sets this tag on training jobs; remove it".to_owned();
        }
        let known: Vec<&str> = rows().filter_map(field_of).collect();
        format!("Controller has no such field; expected one of {}", known.join(", "))
    }
}

/// Returns the field name of a row that describes a field of `Controller`.
fn field_of(row: &Constraint) -> Option<&'static str> {
    row.path.strip_prefix("Controller.").filter(|field| !field.contains(['.', '[', '{']))
}

fn is_same(one: &Value, other: &Value) -> bool {
    one == other || (one.is_number() && one.as_f64() == other.as_f64())
}
