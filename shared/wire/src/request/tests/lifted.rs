//! Tests of fields of `Controller` that tags and environment variables set.

use serde_json::{Value, json};

use super::super::Request;
use super::sample;

/// Returns the sample request without `Controller`, with tags and environment variables.
fn body(tags: &[(&str, &str)], variables: &Value) -> Value {
    let mut body = sample();
    body.as_object_mut().unwrap().remove("Controller");
    body["Tags"] = tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect();
    body["TrainingJobDefinition"]["Environment"] = variables.clone();
    body
}

fn rejection(body: Value) -> String {
    Request::check(body).unwrap_err().message
}

#[test]
fn regression_tags_and_variables_set_fields_of_controller() {
    let tags = [
        ("team", "example"),
        ("hyperband:MaxCostUsd", "12.5"),
        ("hyperband:ReductionFactor", "4"),
        ("hyperband:Sampler", "Random"),
    ];
    let variables = json!({
        "LEVEL": "info",
        "HYPERBAND_MaxInterruptions": "7",
        "HYPERBAND_EpochPattern": r"epoch=([0-9]+)",
        "HYPERBAND_MetricHost": "\"algo-2\"",
        "HYPERBAND_InstancePricesUsdPerHour": r#"{"ml.m5.large": 0.115}"#,
    });
    let sent = body(&tags, &variables);
    let request = Request::check(sent.clone()).unwrap();
    let controller = json!({
        "MaxCostUsd": 12.5,
        "ReductionFactor": 4,
        "Sampler": "Random",
        "MaxInterruptions": 7,
        "EpochPattern": "epoch=([0-9]+)",
        "MetricHost": "algo-2",
        "InstancePricesUsdPerHour": {"ml.m5.large": 0.115},
    });
    assert_eq!(request.body()["Controller"], controller);
    assert_eq!(request.body()["Tags"], sent["Tags"], "Describe shows the tags that were sent");
    assert_eq!(request.body()["TrainingJobDefinition"], sent["TrainingJobDefinition"]);
    let again = Request::check(request.body().clone()).unwrap();
    assert_eq!(again, request, "a stored or described request is accepted again");
    assert_eq!(request.tags().keys().collect::<Vec<_>>(), ["team"]);
}

#[test]
fn sources_of_a_field_must_have_equal_values() {
    let mut both = body(&[("hyperband:MaxCostUsd", "12")], &json!({"HYPERBAND_MaxCostUsd": "12.0"}));
    both["Controller"] = json!({"MaxCostUsd": 12, "Sampler": null});
    let request = Request::check(both.clone()).unwrap();
    assert_eq!(request.body()["Controller"], json!({"MaxCostUsd": 12}));
    both["Controller"]["MaxCostUsd"] = json!(13);
    let message = rejection(both);
    for expected in [
        "2 validation errors",
        "Invalid tag 'hyperband:MaxCostUsd': its value 12 differs from 13, which another source sets; set MaxCostUsd \
         only once (at 'Tags[0]')",
        "Invalid environment variable 'HYPERBAND_MaxCostUsd': its value 12.0 differs from 13, which another source \
         sets",
    ] {
        assert!(message.contains(expected), "{message}");
    }
    let two = body(&[("hyperband:MaxCostUsd", "12")], &json!({"HYPERBAND_MaxCostUsd": "13"}));
    assert!(
        rejection(two).contains("Invalid environment variable 'HYPERBAND_MaxCostUsd': its value 13 differs")
    );
    let twice = body(&[("hyperband:MaxCostUsd", "12"), ("hyperband:MaxCostUsd", "12")], &json!({}));
    assert!(rejection(twice).contains("a key that no other tag has"));
}

#[test]
fn a_violation_names_the_tag_or_the_variable() {
    let tag = |key: &str, value: &str| rejection(body(&[(key, value)], &json!({})));
    let variable = |name: &str, value: &str| {
        let mut variables = json!({});
        variables[name] = json!(value);
        rejection(body(&[], &variables))
    };
    for (message, expected) in [
        (
            tag("hyperband:MaxCostUsd", "five"),
            "Invalid tag 'hyperband:MaxCostUsd': its value 'five' must be a number greater than 0 (US dollars), for \
             example 20",
        ),
        (
            tag("hyperband:MaxCostUsd", "-5"),
            "Value '-5' at 'Controller.MaxCostUsd' failed to satisfy constraint: Member must be a number greater than \
             0 (US dollars), for example 20 (set by tag 'hyperband:MaxCostUsd')",
        ),
        (
            tag("hyperband:ReductionFactor", "2.5"),
            "must be a whole number, for example 10 (set by tag 'hyperband:ReductionFactor')",
        ),
        (tag("hyperband:MaxCostUSD", "5"), "Controller has no such field; expected one of MaxCostUsd, "),
        (tag("Hyperband:MaxCostUsd", "5"), "in their exact case"),
        (tag("hyperband:tuning", "x"), "the stack sets this tag on training jobs"),
        (
            tag("hyperband:InstancePricesUsdPerHour", "1"),
            "set the environment variable HYPERBAND_InstancePricesUsdPerHour",
        ),
        (
            variable("HYPERBAND_MaxCostUsd", "{"),
            "Invalid environment variable 'HYPERBAND_MaxCostUsd': its value '{' must be a number",
        ),
        (variable("HYPERBAND_MaxCostUsd", "\"5\""), "its value '\"5\"' must be a number"),
        (
            variable("HYPERBAND_InstancePricesUsdPerHour", "{ml.m5.large: 1}"),
            "(a map of names to values) in JSON",
        ),
        (variable("HYPERBAND_InstancePricesUsdPerHour", "7"), "(set by environment variable"),
        (variable("HYPERBAND_MetricHost", "\"algo-1"), "must be a string"),
        (variable("HYPERBAND_HOME", "/tmp"), "Controller has no such field"),
    ] {
        assert!(message.starts_with("1 validation error detected: "), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn invalid_types_of_controller_and_tags_are_reported() {
    let mut wrong = body(&[("hyperband:MaxCostUsd", "5")], &json!({}));
    wrong["Controller"] = json!("cheap");
    assert!(rejection(wrong).contains("Value 'cheap' at 'Controller'"));
    let no_text = json!([{"Key": "hyperband:MaxCostUsd", "Value": 5}]);
    let mut wrong = body(&[], &json!({}));
    wrong["Tags"] = no_text;
    assert!(rejection(wrong).contains("Value '5' at 'Tags[0].Value'"));
}
