//! A history as text, to be pasted on a command line: everything it is made from, short where it is as usual.
//!
//! What is told is the difference to a calm plan and to plain tunings, as a JSON merge patch (RFC 7386), whatever the
//! fields are: a field that is added later is told too.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Run;
use crate::case::{Case, Choices};
use crate::plan::Plan;

/// The text's form.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    seed: u64,
    #[serde(default = "nothing")]
    plan: Value,
    cases: Vec<CaseText>,
}

/// A tuning.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseText {
    name: String,
    /// Its choices, as far as they are not plain.
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    choices: Value,
    /// What was changed since it was made from them.
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    changed: Value,
}

fn nothing() -> Value {
    Value::Object(Map::new())
}

fn is_nothing(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

fn value<T: Serialize>(of: &T) -> Value {
    // Strings as keys and finite numbers only: this does not fail.
    serde_json::to_value(of).unwrap_or_default()
}

/// The text of a run; whether it is traced is not in it.
pub fn text(run: &Run) -> String {
    let case = |case: &Case| CaseText {
        name: case.name.clone(),
        choices: patch(&value(&Choices::plain()), &value(&case.choices)),
        changed: patch(&value(&Case::of(&case.name, &case.choices)), &value(case)),
    };
    let plan = patch(&value(&Plan::calm()), &value(&run.plan));
    value(&Text { seed: run.seed, plan, cases: run.cases.iter().map(case).collect() }).to_string()
}

/// The run of a text, not traced.
pub fn parse(text: &str) -> Result<Run, String> {
    let text: Text = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let case = |case: &CaseText| {
        let choices: Choices = patched(&Choices::plain(), &case.choices)?;
        patched(&Case::of(&case.name, &choices), &case.changed)
    };
    let cases: Result<Vec<Case>, String> = text.cases.iter().map(case).collect();
    Ok(Run { seed: text.seed, plan: patched(&Plan::calm(), &text.plan)?, cases: cases?, trace: false })
}

/// `case` as it would be, had it been made from `choices`: what was changed since stays changed.
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

/// What makes `to` of `from`.
fn patch(from: &Value, to: &Value) -> Value {
    let (Some(from), Some(to)) = (from.as_object(), to.as_object()) else { return to.clone() };
    let gone = from.keys().filter(|name| !to.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let changed = to.iter().filter(|(name, new)| from.get(*name) != Some(new)).map(|(name, new)| {
        let old = from.get(name).unwrap_or(&Value::Null);
        // An object in place of something else is told whole.
        let told = if old.is_object() && new.is_object() { patch(old, new) } else { new.clone() };
        (name.clone(), told)
    });
    Value::Object(gone.chain(changed).collect())
}

fn merge(base: &mut Value, patch: &Value) {
    let Some(changes) = patch.as_object() else {
        *base = patch.clone();
        return;
    };
    if !base.is_object() {
        *base = nothing();
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
