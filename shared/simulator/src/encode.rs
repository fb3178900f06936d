//! A history as text for the command line: all its parameters, except those with their default value.
//!
//! The text is a JSON merge patch (RFC 7386) against [`Plan::calm`] and [`Choices::plain`]. It is derived from the
//! serialized form, so it covers fields that are added later.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Run;
use crate::case::{Case, Choices};
use crate::plan::Plan;

/// The JSON form of a history.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    seed: u64,
    #[serde(default = "empty_object")]
    plan: Value,
    cases: Vec<CaseText>,
}

/// The JSON form of a tuning.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseText {
    name: String,
    /// Patch from the plain choices to those of the tuning.
    #[serde(default = "empty_object", skip_serializing_if = "is_empty_object")]
    choices: Value,
    /// Patch from the tuning that the choices make to the tuning itself.
    #[serde(default = "empty_object", skip_serializing_if = "is_empty_object")]
    changed: Value,
}

fn empty_object() -> Value {
    Value::Object(Map::new())
}

fn is_empty_object(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

fn value<T: Serialize>(of: &T) -> Value {
    // All keys are strings and all numbers are finite, so this cannot fail.
    serde_json::to_value(of).unwrap_or_default()
}

/// Returns the text of a run. It does not contain whether the run is traced.
pub fn text(run: &Run) -> String {
    let case = |case: &Case| CaseText {
        name: case.name.clone(),
        choices: patch(&value(&Choices::plain()), &value(&case.choices)),
        changed: patch(&value(&Case::of(&case.name, &case.choices)), &value(case)),
    };
    let plan = patch(&value(&Plan::calm()), &value(&run.plan));
    value(&Text { seed: run.seed, plan, cases: run.cases.iter().map(case).collect() }).to_string()
}

/// Returns the run of a text, with tracing off.
pub fn parse(text: &str) -> Result<Run, String> {
    let text: Text = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let case = |case: &CaseText| {
        let choices: Choices = patched(&Choices::plain(), &case.choices)?;
        patched(&Case::of(&case.name, &choices), &case.changed)
    };
    let cases: Result<Vec<Case>, String> = text.cases.iter().map(case).collect();
    Ok(Run { seed: text.seed, plan: patched(&Plan::calm(), &text.plan)?, cases: cases?, trace: false })
}

/// Returns `case` made from other choices. Fields that differ from what its own choices make keep their values.
pub(crate) fn remade(case: &Case, choices: &Choices) -> Option<Case> {
    let mut changed = patch(&value(&Case::of(&case.name, &case.choices)), &value(case));
    if let Some(changed) = changed.as_object_mut() {
        changed.remove("choices");
    }
    patched(&Case::of(&case.name, choices), &changed).ok()
}

fn patched<T: Serialize + DeserializeOwned>(base: &T, patch: &Value) -> Result<T, String> {
    let mut whole = value(base);
    let known = whole.as_object().cloned().unwrap_or_default();
    if let Some(name) =
        patch.as_object().into_iter().flat_map(Map::keys).find(|name| !known.contains_key(*name))
    {
        return Err(format!("unknown field {name}"));
    }
    merge(&mut whole, patch);
    serde_json::from_value(whole).map_err(|error| error.to_string())
}

/// Returns the merge patch that turns `from` into `to`.
fn patch(from: &Value, to: &Value) -> Value {
    let (Some(from), Some(to)) = (from.as_object(), to.as_object()) else { return to.clone() };
    let gone = from.keys().filter(|name| !to.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let changed = to.iter().filter(|(name, new)| from.get(*name) != Some(new)).map(|(name, new)| {
        let old = from.get(name).unwrap_or(&Value::Null);
        // An object that replaces another type is written whole.
        let patched = if old.is_object() && new.is_object() { patch(old, new) } else { new.clone() };
        (name.clone(), patched)
    });
    Value::Object(gone.chain(changed).collect())
}

fn merge(base: &mut Value, patch: &Value) {
    let Some(changes) = patch.as_object() else {
        *base = patch.clone();
        return;
    };
    if !base.is_object() {
        *base = empty_object();
    }
    let Some(base) = base.as_object_mut() else { return };
    for (name, change) in changes {
        if change.is_null() {
            base.remove(name);
        } else {
            merge(base.entry(name.as_str()).or_insert(Value::Null), change);
        }
    }
}
