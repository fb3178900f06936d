//! The stack's template, for tests that compare it with the code.
//!
//! Converts YAML with `CloudFormation` tags to JSON as the service does (`!Ref x` becomes `{"Ref": "x"}`). Assumes that
//! cfn-lint has checked the template. Overlays require Python, because `infra/overlay.py` merges them. Must never
//! contain a name from the code; the tests provide those.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a failing helper fails its test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value, json};

/// Returns the root folder of the project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The overlays that add something. The other one, `restored-table`, replaces the table.
const ADDING: [&str; 5] = ["budget", "dashboard", "direct-calls", "kms", "vpc"];

/// The template of the stack.
#[derive(Debug)]
pub struct Template(pub Value);

/// One action that a statement of a role allows.
#[derive(Debug, Clone)]
pub struct Grant {
    /// The action, such as `dynamodb:GetItem`.
    pub action: String,
    /// The resource, as in the template.
    pub resource: Value,
    /// The condition, or null.
    pub condition: Value,
}

impl Template {
    /// Reads `infra/template.yaml`.
    pub fn read() -> Self {
        Self::parse(&fs::read_to_string(root().join("infra/template.yaml")).unwrap())
    }

    /// Returns the template with these overlays.
    pub fn with(overlays: &[&str]) -> Self {
        let mut merge = Command::new("python3");
        let done = merge.arg("-B").arg(root().join("infra/overlay.py")).args(overlays).output().unwrap();
        assert!(done.status.success(), "{overlays:?}: {}", String::from_utf8_lossy(&done.stderr));
        Self::parse(&String::from_utf8(done.stdout).unwrap())
    }

    /// Returns the template with all overlays that add something.
    pub fn whole() -> Self {
        Self::with(&ADDING)
    }

    fn parse(text: &str) -> Self {
        Self(plain(&Yaml::load_from_str(text).unwrap()[0]))
    }

    /// Returns the properties of all resources of a type, by name.
    pub fn of_type(&self, kind: &str) -> BTreeMap<&str, &Value> {
        let resources = self.0["Resources"].as_object().unwrap().iter();
        let found = resources.filter(|(_, resource)| resource["Type"] == kind);
        found.map(|(name, resource)| (name.as_str(), &resource["Properties"])).collect()
    }

    /// Returns the properties of resource `name`.
    pub fn properties(&self, name: &str) -> &Value {
        let properties = &self.0["Resources"][name]["Properties"];
        assert!(properties.is_object(), "the template has no resource {name}");
        properties
    }

    /// Returns the names of a function's environment variables.
    pub fn variables(&self, function: &str) -> BTreeSet<&str> {
        let global = &self.0["Globals"]["Function"]["Environment"]["Variables"];
        let own = &self.properties(function)["Environment"]["Variables"];
        let names = [global, own].into_iter().filter_map(Value::as_object).flat_map(Map::keys);
        names.map(String::as_str).collect()
    }

    /// Returns the name of the role of `function`.
    pub fn role(&self, function: &str) -> &str {
        self.properties(function)["Role"]["Fn::GetAtt"][0].as_str().unwrap()
    }

    /// Returns the managed policies of a role. Panics if one is not in this template.
    pub fn managed(&self, role: &str) -> Vec<&str> {
        let arns = list(&self.properties(role)["ManagedPolicyArns"]).into_iter().filter(|arn| !arn.is_null());
        arns.map(|arn| arn["Ref"].as_str().unwrap_or_else(|| panic!("{role} has {arn}"))).collect()
    }

    /// Returns the grants of the role of `function`, from its inline and managed policies and from those that name it.
    pub fn grants(&self, function: &str) -> Vec<Grant> {
        let role = self.role(function);
        let own = self.properties(role)["Policies"].as_array().unwrap().iter();
        let managed = self.managed(role).into_iter().map(|policy| self.properties(policy));
        let names_role = |policy: &&Value| list(&policy["Roles"]).contains(&&json!({ "Ref": role }));
        let attached = self.of_type("AWS::IAM::ManagedPolicy").into_values().filter(names_role);
        let policies = own.chain(managed).chain(attached);
        let statements = policies.flat_map(|policy| list(&policy["PolicyDocument"]["Statement"]));
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

/// Returns the metric of an alarm, or the metrics that it adds up. `CloudWatch` charges each.
pub fn metrics(alarm: &Value) -> Vec<&Value> {
    let Some(parts) = alarm["Metrics"].as_array() else { return vec![alarm] };
    parts
        .iter()
        .filter(|part| part["MetricStat"].is_object())
        .map(|part| &part["MetricStat"]["Metric"])
        .collect()
}

/// Returns the elements of a list, or a value that is not a list as the only element.
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
