//! Requests for tunings on one machine: the built-in pattern of a metric without `Regex`, and defaults of other fields.
//!
//! SageMaker requires a `Regex` for each metric of a custom image, and so does a stack. On one machine, a metric that
//! the training program prints as `name=VALUE` or `name: VALUE` needs none. The pattern becomes part of the stored
//! request, so that Describe shows it and a later release cannot change it for a running tuning.

mod defaults;

use serde_json::{Value, json};

use super::definitions::change_each;
use super::metric::NUMBER_PATTERN;
use super::{Request, RequestError};
use crate::algorithm::Metric;

pub use defaults::{LOCAL_INSTANCE_TYPE, required_by_stack};

impl Request {
    /// Like [`Request::check`], for a tuning on one machine: the fields of [`required_by_stack`] get defaults, and a
    /// metric without `Regex` gets [`default_regex`].
    pub fn check_local(mut body: Value) -> Result<Self, RequestError> {
        change_each(&mut body, |one| {
            defaults::add(one);
            add_patterns(one);
        });
        Self::check(body)
    }
}

/// Returns the pattern of a metric without `Regex`. Reads `name=VALUE` and `name: VALUE`, with spaces around the sign
/// and quotes around the name, as in a line of JSON. Does not read `val_name`, `train/name` or the option `--name`.
pub fn default_regex(metric: &str) -> String {
    let name = regex::escape(metric);
    format!(r#"(?:^|[^\w./-])["']?{name}["']?\s*[=:]\s*["']?{NUMBER_PATTERN}"#)
}

/// Adds the missing patterns of a request. Leaves members of the wrong type for validation to reject.
fn add_patterns(body: &mut Value) {
    let request = Request::from_stored(body.clone());
    let objective = request.objective_metric();
    let Some(Value::Object(specification)) =
        body.pointer_mut("/TrainingJobDefinition/AlgorithmSpecification")
    else {
        return;
    };
    let definitions = specification.entry("MetricDefinitions").or_insert(Value::Null);
    if definitions.is_null() {
        *definitions = json!([]);
    }
    let Value::Array(definitions) = definitions else { return };
    for definition in definitions.iter_mut().filter_map(Value::as_object_mut) {
        let Some(name) = definition.get("Name").and_then(Value::as_str).map(str::to_owned) else { continue };
        if definition.get("Regex").is_none_or(Value::is_null) {
            let built_in = request.built_in().and_then(|algorithm| algorithm.metric(&name));
            let regex = built_in.map_or_else(|| default_regex(&name), Metric::pattern);
            definition.insert("Regex".to_owned(), Value::from(regex));
        }
    }
    let defined = definitions.iter().any(|definition| definition["Name"] == objective);
    if !defined && !objective.is_empty() && request.built_in().is_none() {
        definitions.push(json!({"Name": objective, "Regex": default_regex(objective)}));
    }
    if definitions.is_empty() {
        specification.remove("MetricDefinitions");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::logs::{Explanation, MetricPattern};
    use crate::sample;

    /// Returns the captured text and the value.
    fn read(metric: &str, line: &str) -> Option<(String, Option<f64>)> {
        match MetricPattern::new(&default_regex(metric), None).unwrap().explain(line) {
            Explanation::Value { captured, value, .. } => Some((captured, value)),
            _ => None,
        }
    }

    #[test]
    fn the_built_in_pattern_reads_the_usual_lines() {
        for (metric, line, captured, value) in [
            ("loss", "loss=0.5", "0.5", Some(0.5)),
            ("loss", "epoch 3 loss: 1e-11", "1e-11", Some(1e-11)),
            ("loss", "epoch 3, loss = -0.5, lr = 1", "-0.5", Some(-0.5)),
            ("loss", "loss :+3", "+3", Some(3.0)),
            ("loss", r#"{"epoch": 3, "loss": 2.5E-7, "lr": 1}"#, "2.5E-7", Some(2.5e-7)),
            ("loss", r#"{"loss":NaN}"#, "NaN", None),
            ("loss", "{'loss': '.5'}", ".5", Some(0.5)),
            ("loss", "INFO:root:loss=-Infinity", "-Infinity", None),
            ("loss", "val_loss=2 loss=1", "1", Some(1.0)),
            ("loss", "train --loss=2\tloss=1", "1", Some(1.0)),
            ("loss", "3#011loss=1#011acc=2", "1", Some(1.0)),
            ("loss", "10/10 - loss: 0.25 - accuracy: 0.5", "0.25", Some(0.25)),
            ("validation:auc", "validation:auc=0.75.", "0.75", Some(0.75)),
            ("top-1 (%)", "top-1 (%): 95%", "95", Some(95.0)),
        ] {
            assert_eq!(read(metric, line), Some((captured.to_owned(), value)), "{line}");
        }
    }

    #[test]
    fn the_built_in_pattern_ignores_other_names_and_other_text() {
        for line in
            ["val_loss=1", "train/loss=1", "train.loss: 1", "--loss=1", "losses=1", "loss 1", "loss=high"]
        {
            assert_eq!(read("loss", line), None, "{line}");
        }
    }

    #[test]
    fn a_metric_without_a_pattern_gets_the_built_in_one() {
        let path = "TrainingJobDefinition.AlgorithmSpecification.MetricDefinitions";
        let with = |definitions: Value| {
            let changes = json!({"TrainingJobDefinition": {"AlgorithmSpecification": {
                "MetricDefinitions": definitions,
            }}});
            let body = sample::with(sample::request("t"), changes);
            assert!(Request::check(body.clone()).is_err(), "a stack requires a Regex");
            Request::check_local(body).unwrap()
        };
        let own = json!({"Name": "loss", "Regex": "loss=(.+)"});
        let auc = json!({"Name": "auc", "Regex": default_regex("auc")});
        assert_eq!(with(json!(null)).at(path), Some(&json!([auc])));
        assert_eq!(with(json!([])).at(path), Some(&json!([auc])));
        assert_eq!(with(json!([{"Name": "auc"}, own])).at(path), Some(&json!([auc, own])));
        assert_eq!(with(json!([own, {"Name": "auc", "Regex": null}])).at(path), Some(&json!([own, auc])));
        assert_eq!(with(json!([own])).at(path), Some(&json!([own, auc])));
    }

    #[test]
    fn other_requests_stay_unchanged() {
        let whole = sample::request("t");
        assert_eq!(Request::check_local(whole.clone()).unwrap().body(), &whole);
        let algorithm = |metric: &str| {
            let changes = json!({
                "HyperParameterTuningJobConfig": {"HyperParameterTuningJobObjective": {"MetricName": metric}},
                "TrainingJobDefinition": {"AlgorithmSpecification": {
                    "TrainingImage": null, "AlgorithmName": "xgboost", "MetricDefinitions": null,
                }},
            });
            sample::with(sample::request("t"), changes)
        };
        let known = algorithm("validation:auc");
        assert_eq!(Request::check_local(known.clone()).unwrap().body(), &known);
        assert!(
            Request::check_local(algorithm("validation:kappa")).is_err(),
            "the algorithm does not print it"
        );
        for wrong in [json!([1]), json!("x"), json!([{"Regex": "(.)"}])] {
            let changes =
                json!({"TrainingJobDefinition": {"AlgorithmSpecification": {"MetricDefinitions": wrong}}});
            assert!(Request::check_local(sample::with(sample::request("t"), changes)).is_err());
        }
        assert!(Request::check_local(json!({})).is_err());
    }
}
