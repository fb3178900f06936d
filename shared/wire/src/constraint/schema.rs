//! The JSON Schema of a request, from the rows of the table.
//!
//! The rules between fields are not part of it, so a request that fits the schema may still be refused.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Constraint, Kind, rows};

/// A field with its members, elements or values.
#[derive(Debug, Default)]
struct Node {
    row: Option<&'static Constraint>,
    members: BTreeMap<&'static str, Node>,
}

/// Returns the JSON Schema (2020-12) of a request for a tuning job.
pub fn schema() -> Value {
    let mut root = Node::default();
    for row in accepted() {
        let mut node = &mut root;
        for part in parts(row.path) {
            node = node.members.entry(part).or_default();
        }
        node.row = Some(row);
    }
    root.structure()
}

/// Returns the rows of all fields that the controller accepts: neither they nor a field above them is refused.
fn accepted() -> impl Iterator<Item = &'static Constraint> {
    let is_refused =
        |row: &&Constraint| row.unsupported.is_some_and(|unsupported| unsupported.values.is_empty());
    let refused: Vec<&str> = rows().filter(is_refused).map(|row| row.path).collect();
    let is_within = |path: &str, refused: &str| {
        path.strip_prefix(refused).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '{']))
    };
    rows().filter(move |row| !refused.iter().any(|refused| is_within(row.path, refused)))
}

/// Returns the parts of a path: member names, `[]` for an element, `{}` for a value and `{key}` for a key.
fn parts(path: &'static str) -> Vec<&'static str> {
    let mut parts = Vec::new();
    for part in path.split('.') {
        let mut rest = part;
        while let Some(next) = rest.get(1..).and_then(|later| later.find(['[', '{'])) {
            let (first, later) = rest.split_at(next + 1);
            parts.push(first);
            rest = later;
        }
        parts.push(rest);
    }
    parts
}

impl Node {
    fn schema(&self) -> Value {
        let Some(row) = self.row else { return self.structure() };
        let mut schema = match row.kind {
            Kind::Structure => self.structure(),
            Kind::List => json!({"type": "array", "items": self.part("[]")}),
            Kind::Map => {
                let mut map = json!({"type": "object", "additionalProperties": self.part("{}")});
                if self.members.contains_key("{key}") {
                    map["propertyNames"] = self.part("{key}");
                }
                map
            }
            Kind::Text => json!({"type": "string"}),
            Kind::Integer => json!({"type": "integer"}),
            Kind::Number => json!({"type": "number"}),
            Kind::Dollars => json!({"type": "number", "exclusiveMinimum": 0}),
            Kind::Boolean => json!({"type": "boolean"}),
            Kind::Scalar => json!({"type": ["string", "number"]}),
        };
        let (least, most) = match row.kind {
            Kind::Text | Kind::Scalar => ("minLength", "maxLength"),
            Kind::List => ("minItems", "maxItems"),
            Kind::Map => ("minProperties", "maxProperties"),
            Kind::Structure | Kind::Integer | Kind::Number | Kind::Dollars | Kind::Boolean => {
                ("minimum", "maximum")
            }
        };
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                schema[name] = value;
            }
        };
        set(least, row.min.map(Value::from));
        set(most, row.max.map(Value::from));
        set("pattern", row.pattern.map(|pattern| json!(format!("^({pattern})$"))));
        let refused = row.unsupported.map_or(&[][..], |unsupported| unsupported.values);
        let values: Vec<&str> = row.values.iter().copied().filter(|value| !refused.contains(value)).collect();
        set("enum", (!values.is_empty()).then(|| json!(values)));
        schema
    }

    fn part(&self, name: &str) -> Value {
        self.members.get(name).map_or_else(|| json!({}), Self::schema)
    }

    fn structure(&self) -> Value {
        let properties: Map<String, Value> =
            self.members.iter().map(|(name, node)| ((*name).to_owned(), node.schema())).collect();
        let is_required = |node: &Node| node.row.is_some_and(|row| row.required);
        let required: Vec<&str> =
            self.members.iter().filter(|(_, node)| is_required(node)).map(|(name, _)| *name).collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accepted_row_has_a_place_in_the_schema() {
        let schema = schema();
        for row in accepted() {
            let mut place = &schema;
            for part in parts(row.path) {
                place = match part {
                    "[]" => &place["items"],
                    "{}" => &place["additionalProperties"],
                    "{key}" => &place["propertyNames"],
                    name => &place["properties"][name],
                };
            }
            assert!(place["type"].is_string() || place["type"].is_array(), "{}", row.path);
        }
        assert!(schema["properties"].get("Autotune").is_none(), "it is refused");
        assert_eq!(parts("A.B[]{key}"), ["A", "B", "[]", "{key}"]);
        let limits = &schema["properties"]["HyperParameterTuningJobConfig"]["properties"]["ResourceLimits"];
        assert_eq!(
            limits["properties"]["MaxParallelTrainingJobs"],
            json!({"type": "integer", "minimum": 1, "maximum": 1_000})
        );
        assert_eq!(limits["required"], json!(["MaxParallelTrainingJobs"]));
    }
}
