//! Appends to the lists of `Controller` in a request.

use serde_json::{Map, Value, json};

/// Appends objects to a list of `Controller`. Leaves members of the wrong type for validation to reject.
pub(crate) fn append(body: &mut Value, name: &str, added: impl IntoIterator<Item = Map<String, Value>>) {
    let mut added = added.into_iter().map(Value::Object).peekable();
    let Value::Object(members) = body else { return };
    if added.peek().is_none() {
        return;
    }
    let controller = members.entry("Controller").or_insert(Value::Null);
    if controller.is_null() {
        *controller = json!({});
    }
    let Value::Object(controller) = controller else { return };
    let all = controller.entry(name).or_insert(Value::Null);
    if all.is_null() {
        *all = json!([]);
    }
    if let Value::Array(all) = all {
        all.extend(added);
    }
}
