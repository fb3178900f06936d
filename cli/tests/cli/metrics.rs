//! Metrics without a pattern.

use serde_json::{Value, json};

use crate::world::{QUICK, World, request};

/// Prints nine epochs as lines of JSON.
const JSON_LINES: &str = r#"
echo 'training with --loss=7'
for i in 1 2 3 4 5 6 7 8 9; do
  printf '{"epoch": %d, "val_loss": 3, "loss": 2.5e-%d}\n' $i $((i + 10))
  sleep 0.02
done
"#;

/// Returns the request with another `Regex`, or without any definition.
fn with_regex(regex: Option<&str>) -> Value {
    let mut request = request("t");
    let definitions = regex.map(|regex| json!([{"Name": "validation:auc", "Regex": regex}]));
    request["TrainingJobDefinition"]["AlgorithmSpecification"]["MetricDefinitions"] = json!(definitions);
    request
}

#[test]
fn run_reads_a_metric_without_a_pattern_from_lines_of_json() {
    let world = World::new(JSON_LINES);
    let mut request = with_regex(None);
    request["HyperParameterTuningJobConfig"]["HyperParameterTuningJobObjective"] =
        json!({"Type": "Minimize", "MetricName": "loss"});
    request["Controller"]["EpochPattern"] = json!("\"epoch\": ([0-9]+)");
    request["Controller"]["EpochBase"] = json!(1);
    world.write_request("request.json", &request);
    let checked = world.hyperband(&["check", "request.json", "--output", "json"]).with_code(0).json();
    let warnings = checked["Warnings"].as_array().unwrap();
    let found = warnings.iter().find(|one| one["Code"] == "RegexRequiredByStack").unwrap();
    let advice = found["Advice"].as_str().unwrap();
    assert!(advice.contains(r#"add {"Name":"loss","Regex":"loss=([-+.\\w]*\\w)"} to Metric"#), "{advice}");
    world.hyperband(&["plan", "request.json"]).with_code(0);
    let ended = world.run(&["--output", "json"]).with_code(0);
    assert!(!ended.err.contains("warning"), "{}", ended.err);
    let tuning = &ended.json()["TuningJob"];
    let best = &tuning["BestTrainingJob"]["FinalHyperParameterTuningJobObjectiveMetric"];
    assert_eq!((&best["MetricName"], &best["Value"]), (&json!("loss"), &json!(2.5e-19)), "{best}");
    let definitions = &tuning["TrainingJobDefinition"]["AlgorithmSpecification"]["MetricDefinitions"];
    let regex = r#"(?:^|[^\w./-])["']?loss["']?\s*[=:]\s*["']?([-+.\w]*\w)"#;
    assert_eq!(
        definitions,
        &json!([{"Name": "loss", "Regex": regex}]),
        "Describe shows the built-in pattern"
    );
    // The same command continues or shows the same tuning.
    let again = world.run(&["--output", "json"]).with_code(0);
    assert!(again.err.starts_with("t has already ended"), "{again:?}");
}

#[test]
fn a_stack_requires_a_pattern() {
    let world = World::new(QUICK);
    world.write_request("request.json", &with_regex(None));
    let ended = world.hyperband(&["submit", "request.json", "--endpoint", "http://127.0.0.1:1"]).with_code(2);
    assert!(
        ended.err.contains("MetricName 'validation:auc' has no definition; for example, add"),
        "{ended:?}"
    );
    assert!(ended.err.contains(r#""Regex":"metric=([-+.\\w]*\\w)""#), "{ended:?}");
}
