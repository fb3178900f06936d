//! Fields of `Controller` by tag and by environment variable.

use serde_json::{Value, json};

use super::super::Request;
use super::sample;

/// The sample request without `Controller`, with tags and environment variables.
fn body(tags: &[(&str, &str)], variables: &Value) -> Value {
    let mut body = sample();
    body.as_object_mut().unwrap().remove("Controller");
    body["Tags"] = tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect();
    body["TrainingJobDefinition"]["Environment"] = variables.clone();
    body
}

fn refused(body: Value) -> String {
    Request::check(body).unwrap_err().message
}

#[test]
fn regression_a_field_of_controller_is_taken_from_a_tag_and_from_a_variable() {
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
    assert_eq!(request.body()["Tags"], sent["Tags"], "what was sent is echoed");
    assert_eq!(request.body()["TrainingJobDefinition"], sent["TrainingJobDefinition"]);
    let again = Request::check(request.body().clone()).unwrap();
    assert_eq!(again, request, "what is stored or described can be given again");
    assert_eq!(request.tags().keys().collect::<Vec<_>>(), ["team"]);
}

#[test]
fn what_is_in_controller_already_may_be_said_again_but_not_differently() {
    let mut both = body(&[("hyperband:MaxCostUsd", "12")], &json!({"HYPERBAND_MaxCostUsd": "12.0"}));
    both["Controller"] = json!({"MaxCostUsd": 12, "Sampler": null});
    let request = Request::check(both.clone()).unwrap();
    assert_eq!(request.body()["Controller"], json!({"MaxCostUsd": 12}));
    both["Controller"]["MaxCostUsd"] = json!(13);
    let message = refused(both);
    for expected in [
        "2 validation errors",
        "The tag 'hyperband:MaxCostUsd' is refused: it says 12 where something else says 13: give MaxCostUsd once \
         (at 'Tags[0]')",
        "The environment variable 'HYPERBAND_MaxCostUsd' is refused: it says 12.0 where something else says 13",
    ] {
        assert!(message.contains(expected), "{message}");
    }
    let two = body(&[("hyperband:MaxCostUsd", "12")], &json!({"HYPERBAND_MaxCostUsd": "13"}));
    assert!(refused(two).contains("The environment variable 'HYPERBAND_MaxCostUsd' is refused: it says 13"));
    let twice = body(&[("hyperband:MaxCostUsd", "12"), ("hyperband:MaxCostUsd", "12")], &json!({}));
    assert!(refused(twice).contains("the key is given twice"));
}

#[test]
fn what_is_wrong_names_the_tag_or_the_variable() {
    let tag = |key: &str, value: &str| refused(body(&[(key, value)], &json!({})));
    let variable = |name: &str, value: &str| {
        let mut variables = json!({});
        variables[name] = json!(value);
        refused(body(&[], &variables))
    };
    for (message, expected) in [
        (
            tag("hyperband:MaxCostUsd", "five"),
            "The tag 'hyperband:MaxCostUsd' is refused: its value 'five' must be a number greater than 0 (US dollars)",
        ),
        (
            tag("hyperband:MaxCostUsd", "-5"),
            "Value '-5' at 'Controller.MaxCostUsd' failed to satisfy constraint: Member must be a number greater than 0 \
             (US dollars) (given as tag 'hyperband:MaxCostUsd')",
        ),
        (
            tag("hyperband:ReductionFactor", "2.5"),
            "must be a whole number (given as tag 'hyperband:ReductionFactor')",
        ),
        (tag("hyperband:MaxCostUSD", "5"), "Controller has no such field; known there: MaxCostUsd, "),
        (tag("Hyperband:MaxCostUsd", "5"), "are written just so"),
        (tag("hyperband:tuning", "x"), "it is set on training jobs by the stack"),
        (
            tag("hyperband:InstancePricesUsdPerHour", "1"),
            "use the environment variable HYPERBAND_InstancePricesUsdPerHour",
        ),
        (
            variable("HYPERBAND_MaxCostUsd", "{"),
            "The environment variable 'HYPERBAND_MaxCostUsd' is refused: its value '{' must be a number",
        ),
        (variable("HYPERBAND_MaxCostUsd", "\"5\""), "its value '\"5\"' must be a number"),
        (
            variable("HYPERBAND_InstancePricesUsdPerHour", "{ml.m5.large: 1}"),
            "(a map of names to values) in JSON",
        ),
        (variable("HYPERBAND_InstancePricesUsdPerHour", "7"), "(given as environment variable"),
        (variable("HYPERBAND_MetricHost", "\"algo-1"), "must be a string"),
        (variable("HYPERBAND_HOME", "/tmp"), "Controller has no such field"),
    ] {
        assert!(message.starts_with("1 validation error detected: "), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_controller_that_is_no_object_is_told_as_before() {
    let mut wrong = body(&[("hyperband:MaxCostUsd", "5")], &json!({}));
    wrong["Controller"] = json!("cheap");
    assert!(refused(wrong).contains("Value 'cheap' at 'Controller'"));
    let no_text = json!([{"Key": "hyperband:MaxCostUsd", "Value": 5}]);
    let mut wrong = body(&[], &json!({}));
    wrong["Tags"] = no_text;
    assert!(refused(wrong).contains("Value '5' at 'Tags[0].Value'"));
}
