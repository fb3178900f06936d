//! The stack's template, for the tests that hold it against the code.
//!
//! Reads YAML with the tags of `CloudFormation` into JSON as the service itself would (`!Ref x` is `{"Ref": "x"}`). Assumes that
//! cfn-lint has checked the template's form. Must never know a name of the code: that is what the tests bring.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "helpers of tests fail with their test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value, json};

/// The project's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The template of the stack.
#[derive(Debug)]
pub struct Template(pub Value);

/// One statement of a role: an effect of `Allow`, what it allows, on what, and when.
#[derive(Debug, Clone)]
pub struct Grant {
    /// The action, such as `dynamodb:GetItem`.
    pub action: String,
    /// The resource, as the template says it.
    pub resource: Value,
    /// The condition, null if there is none.
    pub condition: Value,
}

impl Template {
    /// `infra/template.yaml`.
    pub fn read() -> Self {
        let text = fs::read_to_string(root().join("infra/template.yaml")).unwrap();
        Self(plain(&Yaml::load_from_str(&text).unwrap()[0]))
    }

    /// The names and values of all resources of this type.
    pub fn of_type(&self, kind: &str) -> BTreeMap<&str, &Value> {
        let resources = self.0["Resources"].as_object().unwrap().iter();
        let found = resources.filter(|(_, resource)| resource["Type"] == kind);
        found.map(|(name, resource)| (name.as_str(), &resource["Properties"])).collect()
    }

    /// The properties of resource `name`.
    pub fn properties(&self, name: &str) -> &Value {
        let properties = &self.0["Resources"][name]["Properties"];
        assert!(properties.is_object(), "the template has no {name}");
        properties
    }

    /// All that a function's environment has.
    pub fn variables(&self, function: &str) -> BTreeSet<&str> {
        let global = &self.0["Globals"]["Function"]["Environment"]["Variables"];
        let own = &self.properties(function)["Environment"]["Variables"];
        let names = [global, own].into_iter().filter_map(Value::as_object).flat_map(Map::keys);
        names.map(String::as_str).collect()
    }

    /// The name of the role of `function`.
    pub fn role(&self, function: &str) -> &str {
        self.properties(function)["Role"]["Fn::GetAtt"][0].as_str().unwrap()
    }

    /// The managed policies that a role has when all that is optional is there: each of this template.
    pub fn managed(&self, role: &str) -> Vec<&str> {
        let arns = &self.properties(role)["ManagedPolicyArns"];
        let arns = arns.get("Fn::If").map_or(arns, |choice| &choice[1]);
        let named = list(arns).into_iter().filter(|arn| !arn.is_null());
        named.map(|arn| arn["Ref"].as_str().unwrap_or_else(|| panic!("{role} has {arn}"))).collect()
    }

    /// What the role of `function` grants, an action each: by its own policies and by managed ones.
    pub fn grants(&self, function: &str) -> Vec<Grant> {
        let role = self.role(function);
        let own = self.properties(role)["Policies"].as_array().unwrap().iter();
        let managed = self.managed(role).into_iter().map(|policy| self.properties(policy));
        let statements = own.chain(managed).flat_map(|policy| list(&policy["PolicyDocument"]["Statement"]));
        let grants = statements.flat_map(|statement| {
            assert_eq!(statement["Effect"], "Allow", "{role} {statement}");
            list(&statement["Action"]).into_iter().map(move |action| Grant {
                action: action.as_str().unwrap().to_owned(),
                resource: statement["Resource"].clone(),
                condition: statement["Condition"].clone(),
            })
        });
        grants.collect()
    }
}

/// A list, or the only one of it.
pub fn list(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |values| values.iter().collect())
}

fn plain(node: &Yaml<'_>) -> Value {
    match node {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(truth)) => json!(truth),
        Yaml::Value(Scalar::Integer(number)) => json!(number),
        Yaml::Value(Scalar::FloatingPoint(number)) => json!(number.into_inner()),
        Yaml::Value(Scalar::String(text)) => json!(text),
        Yaml::Sequence(nodes) => nodes.iter().map(plain).collect(),
        Yaml::Mapping(nodes) => {
            let text = |key: &Yaml<'_>| plain(key).as_str().unwrap().to_owned();
            Value::Object(nodes.iter().map(|(key, node)| (text(key), plain(node))).collect())
        }
        Yaml::Tagged(tag, node) => tagged(&tag.suffix, &plain(node)),
        Yaml::Alias(_) | Yaml::BadValue | Yaml::Representation(..) => {
            unreachable!("not in a template: {node:?}")
        }
    }
}

fn tagged(tag: &str, node: &Value) -> Value {
    match (tag, node) {
        ("Ref" | "Condition", _) => json!({ tag: node }),
        ("GetAtt", Value::String(path)) => {
            let (name, attribute) = path.split_once('.').unwrap();
            json!({"Fn::GetAtt": [name, attribute]})
        }
        _ => json!({ format!("Fn::{tag}"): node }),
    }
}
