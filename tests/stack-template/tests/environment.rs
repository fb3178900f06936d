//! No combination of parameters exceeds the size that Lambda allows for the variables of a function.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use stack_template::Template;

/// Lambda's limit for all variables of a function, in bytes. Lambda measures them as a JSON object.
const LIMIT: usize = 4096;
/// The greatest lengths of values that only a deployment knows.
const KNOWN_AT_DEPLOYMENT: [(&str, usize); 4] =
    [("AWS::StackName", 128), ("AWS::Partition", 10), ("AWS::Region", 16), ("AWS::AccountId", 12)];
/// `CloudFormation` appends the logical name and 13 characters to the name of the stack.
const GENERATED_NAME: usize = 128 + "-Table-".len() + 13;

/// Returns the greatest length of a parameter's value. Panics if nothing bounds it.
fn longest_parameter(name: &str, parameter: &Value) -> usize {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned).len();
    if let Some(allowed) = parameter["AllowedValues"].as_array() {
        return allowed.iter().map(text).max().unwrap();
    }
    match parameter["Type"].as_str() {
        Some("String") => {
            let length = parameter["MaxLength"].as_u64();
            usize::try_from(length.unwrap_or_else(|| panic!("{name} has no MaxLength"))).unwrap()
        }
        Some("Number") => text(&parameter["MaxValue"]),
        kind => panic!("the length of {name} is not bounded: its type is {kind:?}"),
    }
}

/// Returns the greatest length of a value of the template.
fn longest(template: &Template, value: &Value) -> usize {
    if let Some(text) = value.as_str() {
        return text.len();
    }
    if let Some(choice) = value.get("Fn::If") {
        return longest(template, &choice[1]).max(longest(template, &choice[2]));
    }
    if let Some(text) = value.get("Fn::Sub").and_then(Value::as_str) {
        if let Some(secret) =
            text.strip_prefix("{{resolve:secretsmanager:${").and_then(|end| end.strip_suffix("}}}"))
        {
            let length = &template.properties(secret)["GenerateSecretString"]["PasswordLength"];
            return usize::try_from(length.as_u64().unwrap()).unwrap();
        }
        let known = BTreeMap::from(KNOWN_AT_DEPLOYMENT);
        let mut parts = text.split("${");
        let first = parts.next().unwrap().len();
        let rest = parts.map(|part| {
            let (name, after) = part.split_once('}').unwrap();
            known[name] + after.len()
        });
        return first + rest.sum::<usize>();
    }
    let name = value["Ref"].as_str().unwrap_or_else(|| panic!("no bound is known for {value}"));
    if let Some(parameter) = template.0["Parameters"].get(name) {
        return longest_parameter(name, parameter);
    }
    if let Some((_, length)) = KNOWN_AT_DEPLOYMENT.iter().find(|(known, _)| *known == name) {
        return *length;
    }
    template.properties(name).get("Name").map_or(GENERATED_NAME, |given| longest(template, given))
}

/// Returns the size of the variables of `function` as JSON, each with its longest value.
fn size(template: &Template, function: &str) -> usize {
    let global = &template.0["Globals"]["Function"]["Environment"]["Variables"];
    let own = &template.properties(function)["Environment"]["Variables"];
    let variables = [global, own].into_iter().filter_map(Value::as_object).flat_map(Map::iter);
    let one = |(name, value): (&String, &Value)| name.len() + longest(template, value) + r#""":"","#.len();
    variables.map(one).sum::<usize>() + "{}".len()
}

#[test]
fn no_combination_of_parameters_exceeds_the_environment_of_a_function() {
    // The name of a restored table is longer than that of a new one.
    for template in [Template::whole(), Template::with(&["direct-calls", "restored-table"])] {
        let functions = template.of_type("AWS::Serverless::Function");
        assert!(functions.len() >= 7);
        for function in functions.keys() {
            let size = size(&template, function);
            assert!(
                size <= LIMIT,
                "the variables of {function} can have {size} bytes, Lambda allows {LIMIT}"
            );
        }
    }
}
