//! Violates each row and each rule once, in requests that set every field, and expects exactly that violation.

mod requests;
mod rows_broken;
mod rules_broken;

use std::collections::BTreeSet;

use proptest::prelude::*;
use regex::Regex;
use serde_json::{Value, json};

use self::requests::bases;
use super::*;
use crate::request::MAX_VIOLATIONS;
use tuning::unit::time::Time;

/// Returns the paths of the violations of a request.
fn reported(body: &Value) -> Vec<String> {
    match Request::check(body.clone()) {
        Ok(_) => Vec::new(),
        Err(error) => error.violations.into_iter().map(|violation| violation.path).collect(),
    }
}

#[test]
fn rows_are_well_formed() {
    let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(names.len(), RULES.len(), "two rules have the same name");
    check_rows(&rows().collect::<Vec<_>>(), &names);
    check_rows(&tag_rows().chain(table::TRAINING_JOB).collect::<Vec<_>>(), &names);
    for rule in RULES {
        assert!(rows().any(|row| row.rules.contains(&rule.name)), "no row has rule {}", rule.name);
        assert!(!rule.about.is_empty());
    }
}

fn check_rows(rows: &[&Constraint], names: &BTreeSet<&str>) {
    let paths: BTreeSet<&str> = rows.iter().map(|row| row.path).collect();
    assert_eq!(paths.len(), rows.len(), "a path has two rows");
    for row in rows {
        let parent = row.parent();
        assert!(parent.is_empty() || paths.contains(parent), "{}: its parent has no row", row.path);
        assert!(row.like.is_none_or(|like| paths.contains(like)), "{}", row.path);
        assert!(row.rules.iter().all(|rule| names.contains(rule)), "{}: unknown rule", row.path);
        assert!(
            row.unsupported
                .is_none_or(|unsupported| unsupported.values.iter().all(|value| row.values.contains(value)))
        );
        if let Some(pattern) = row.pattern {
            Regex::new(&format!("^(?:{pattern})$")).unwrap();
        }
    }
}

#[test]
fn a_training_job_is_checked_with_names_in_lower_case_and_may_have_unknown_fields() {
    let mut body = json!({
        "TrainingJobName": "job",
        "AlgorithmSpecification": {"TrainingImage": "x"},
        "RoleArn": "role",
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
        "ResourceConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large"},
        "InputDataConfig": [{"ChannelName": "train", "DataSource": {"S3DataSource": {"S3Uri": "s3://b/x"}}}],
    });
    assert_eq!(check_training_job(&body), Ok(()));
    body["InputDataConfig"][0]["ChannelName"] = json!("..");
    body["ResourceConfig"]["InstanceCount"] = json!(101);
    body["Environment"] = json!({"A-B": "1"});
    body["Tags"] = json!([{"Key": "k"}]);
    let error = check_training_job(&body).unwrap_err();
    let mut paths: Vec<&str> = error.violations.iter().map(|violation| violation.path.as_str()).collect();
    paths.sort_unstable();
    let expected = [
        "environment.A-B",
        "inputDataConfig[0].channelName",
        "resourceConfig.instanceCount",
        "tags[0].value",
    ];
    assert_eq!(paths, expected, "{error}");
    assert!(error.message.starts_with("4 validation errors detected: "), "{error}");
}

#[test]
fn requests_with_every_field_violate_only_unsupported_fields() {
    for base in bases() {
        let mut paths = reported(&base.body);
        paths.sort();
        assert_eq!(paths, base.rejected, "{}", base.name);
    }
}

#[test]
fn one_response_lists_all_violations_up_to_a_bound() {
    let mut body = bases()[0].body.clone();
    body["HyperParameterTuningJobName"] = json!("-");
    body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxParallelTrainingJobs"] = json!(0);
    body["Controller"]["MaxInstances"] = json!(1);
    let error = Request::check(body.clone()).unwrap_err();
    assert_eq!(
        error.message,
        "3 validation errors detected: Value '0' at \
         'HyperParameterTuningJobConfig.ResourceLimits.MaxParallelTrainingJobs' failed to satisfy constraint: Member \
         must have value greater than or equal to 1; Value '-' at 'HyperParameterTuningJobName' failed to satisfy \
         constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9](-*[a-zA-Z0-9])*; Invalid MaxInstances \
         1: expected at least InstanceCount, so that one training job fits; for example, 3 (at \
         'Controller.MaxInstances')"
    );
    for index in 0..50 {
        body[format!("Unknown{index}")] = json!(1);
    }
    let error = Request::check(body).unwrap_err();
    assert_eq!(error.violations.len(), MAX_VIOLATIONS);
    assert!(error.message.starts_with("52 validation errors detected: "), "{}", error.message);
    assert!(error.message.ends_with("; and 32 more"), "{}", error.message);
}

/// The message listed values that a rule rejects: the next attempt failed again.
#[test]
fn regression_the_message_of_a_wrong_value_lists_only_values_that_no_rule_rejects() {
    let wrong = |changes: &[(&str, Value)], path: &str| {
        let mut body = requests::flat();
        for (pointer, value) in changes {
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            body.pointer_mut(parent).unwrap()[name] = value.clone();
        }
        let error = Request::check(body).unwrap_err();
        let found = error.violations.into_iter().find(|violation| violation.path == path);
        found.map(|violation| violation.message.rsplit_once("Member must ").unwrap().1.to_owned())
    };
    let values = |list: &str| Some(format!("satisfy enum value set: [{list}]"));
    let config = "/HyperParameterTuningJobConfig";
    let strategy = |name: &str| (format!("{config}/Strategy"), json!(name));
    let stopping = (format!("{config}/TrainingJobEarlyStoppingType"), json!("auto"));
    let stopping_at = "HyperParameterTuningJobConfig.TrainingJobEarlyStoppingType";
    for (name, list) in [("Hyperband", "Off"), ("Random", "Off, Auto"), ("Nonsense", "Off, Auto")] {
        let (first, second) = (strategy(name), stopping.clone());
        let changes = [(first.0.as_str(), first.1), (second.0.as_str(), second.1)];
        assert_eq!(wrong(&changes, stopping_at), values(list), "{name}");
    }
    let sampler = ("/Controller/Sampler", json!("model"));
    for (name, expected) in [
        ("Hyperband", values("Model, Random, Sobol")),
        ("Bayesian", values("Model")),
        ("Grid", Some("be absent: other fields of this request exclude every value".to_owned())),
    ] {
        let (path, value) = strategy(name);
        assert_eq!(wrong(&[(&path, value), sampler.clone()], "Controller.Sampler"), expected, "{name}");
    }
    let spot = ("/TrainingJobDefinition/EnableManagedSpotTraining", json!(false));
    let fallback = ("/Controller/SpotFallback", json!("none"));
    assert_eq!(wrong(&[spot, fallback.clone()], "Controller.SpotFallback"), values("None"));
    assert_eq!(wrong(&[fallback], "Controller.SpotFallback"), values("OnDemand, None"));
    let range = format!("{config}/ParameterRanges/IntegerParameterRanges/0");
    let (scaling, least) = (format!("{range}/ScalingType"), format!("{range}/MinValue"));
    let at = "HyperParameterTuningJobConfig.ParameterRanges.IntegerParameterRanges[0].ScalingType";
    assert_eq!(wrong(&[(&scaling, json!("log"))], at), values("Auto, Linear, Logarithmic"));
    let changes = [(scaling.as_str(), json!("log")), (least.as_str(), json!("many"))];
    assert_eq!(wrong(&changes, at), values("Auto, Linear, Logarithmic, ReverseLogarithmic"), "no range");
}

#[test]
fn messages_shorten_long_values() {
    let mut body = bases()[0].body.clone();
    body["HyperParameterTuningJobName"] = json!("x".repeat(500_000));
    body["y".repeat(400_000)] = json!(1);
    let error = Request::check(body).unwrap_err();
    assert_eq!(error.violations.len(), 2);
    assert!(error.message.len() < 1_500, "{}", error.message.len());
}

/// Returns a place in a request, chosen by a chain of numbers modulo the number of children.
fn somewhere<'a>(value: &'a mut Value, choices: &[usize]) -> &'a mut Value {
    let Some((choice, rest)) = choices.split_first() else { return value };
    let count = match value {
        Value::Object(members) => members.len(),
        Value::Array(elements) => elements.len(),
        _ => 0,
    };
    if count == 0 {
        return value;
    }
    match value {
        Value::Object(members) => somewhere(members.values_mut().nth(choice % count).unwrap(), rest),
        Value::Array(elements) => somewhere(&mut elements[choice % count], rest),
        _ => value,
    }
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        "\\PC{0,8}".prop_map(Value::from),
        Just(json!("ml.m5.large")),
        Just(json!("9".repeat(40))),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[A-Za-z]{1,6}", inner, 0..4).prop_map(|members| json!(members)),
        ]
    })
}

proptest! {
    /// Any value at any place yields a result and no panic, also in a request that was not validated.
    #[test]
    fn no_request_panics(
        base in 0_usize..3,
        changes in prop::collection::vec((prop::collection::vec(any::<usize>(), 1..8), anything()), 1..4),
    ) {
        let mut body = bases()[base].body.clone();
        for (choices, value) in changes {
            *somewhere(&mut body, &choices) = value;
        }
        let text = serde_json::to_vec(&body).unwrap();
        let parsed = Request::parse(&text);
        if let Err(error) = &parsed {
            prop_assert!(!error.message.is_empty());
        }
        let unchecked = Request::from_stored(body);
        for request in parsed.iter().chain([&unchecked]) {
            let _ = request.definition(Time(0), "abc123", &crate::request::PriceAnswer::default());
            let _ = request.metric_regex();
        }
    }
}
