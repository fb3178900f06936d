//! Metric patterns: warnings about patterns that cut numbers, and metrics without a pattern.

use serde_json::{Value, json};

use crate::world::{QUICK, World, request};

/// Prints nine epochs, all but the first with an exponent.
const SMALL: &str = r"
printf '[0]\tvalidation-auc:0.5\n'
for i in 1 2 3 4 5 6 7 8; do
  printf '[%d]\tvalidation-auc:%d.5e-%d\n' $i $i $((9 - i))
  sleep 0.02
done
";

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

fn cutting() -> World {
    let world = World::new(SMALL);
    world.write_request("request.json", &with_regex(Some("validation-auc:([0-9.]+)")));
    world
}

fn codes(shown: &Value) -> Vec<&str> {
    shown["Warnings"].as_array().unwrap().iter().map(|one| one["Code"].as_str().unwrap()).collect()
}

const CUT: &str = "The Regex of metric 'validation:auc' cuts numbers: in a line such as \"validation-auc:1e-11\" it \
                   captures '1', so 1e-11 would be read as 1. [NumberCut]\n  Use the Regex \
                   'validation-auc:([-+.\\w]*\\w)' (in JSON \"validation-auc:([-+.\\\\w]*\\\\w)\"): ";

#[test]
fn check_and_plan_warn_of_a_pattern_that_cuts_numbers() {
    let world = cutting();
    for command in ["check", "plan"] {
        let out = world.hyperband(&[command, "request.json"]).with_code(0).out;
        assert!(out.contains(CUT), "{out}");
        let shown = world.hyperband(&[command, "request.json", "--output", "json"]).with_code(0);
        assert!(codes(&shown.json()).contains(&"NumberCut") && shown.err.is_empty(), "{shown:?}");
    }
    for regex in ["validation-auc:([-+.\\w]*\\w)", "validation-auc:(\\S+)", "validation-auc:([-+0-9.eE]+)"] {
        world.write_request("request.json", &with_regex(Some(regex)));
        for command in ["check", "plan"] {
            let shown = world.hyperband(&[command, "request.json", "--output", "json"]).with_code(0).json();
            assert!(!codes(&shown).contains(&"NumberCut"), "{regex}: {shown}");
        }
    }
}

#[test]
fn check_shows_the_line_of_a_log_whose_number_is_cut() {
    let world = cutting();
    world.write(
        "train.log",
        "[0]\tvalidation-auc:0.5\n[1]\tvalidation-auc:2.5e-3\n[2]\tvalidation-auc:1e-3\n",
    );
    let arguments = ["check", "request.json", "--log", "train.log"];
    let out = world.hyperband(&arguments).with_code(0).out;
    assert!(out.contains("it captures '2.5' of 2.5e-3. [NumberCutInLog]\n  Use the Regex "), "{out}");
    assert!(!out.contains("[NumberCut]"), "one warning per metric: {out}");
    let shown = world.hyperband(&[&arguments[..], &["--output", "json"]].concat()).with_code(0).json();
    assert_eq!(codes(&shown).iter().filter(|code| code.starts_with("NumberCut")).count(), 1, "{shown}");
}

#[test]
fn run_warns_once_of_a_cut_number_in_the_log_and_prints_clean_json() {
    let world = cutting();
    let ended = world.run(&["--output", "json"]).with_code(0);
    assert!(ended.err.contains(CUT), "{}", ended.err);
    let lines: Vec<&str> = ended.err.lines().filter(|line| line.contains("[NumberCutInLog]")).collect();
    assert_eq!(lines.len(), 1, "{}", ended.err);
    assert!(
        lines[0].contains("validation-auc:1.5e-8\" it captures '1.5' of 1.5e-8. "),
        "the first cut line of the first job: {lines:?}"
    );
    assert_eq!(ended.json()["TuningJob"]["HyperParameterTuningJobStatus"], "Completed");
    let world = World::new(QUICK);
    let ended = world.run(&[]).with_code(0);
    assert!(!ended.err.contains("warning"), "{}", ended.err);
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
fn the_last_value_of_every_metric_is_described_reported_and_exported() {
    let world = World::new(
        "echo '[0] validation-auc:0.25 recall=0.5'; echo '[1] validation-auc:0.5000000000000001 recall=0.75'; echo loss=nan",
    );
    let mut body = with_regex(Some(r"validation-auc:([-+.\w]*\w)"));
    let definitions = &mut body["TrainingJobDefinition"]["AlgorithmSpecification"]["MetricDefinitions"];
    for name in ["recall", "loss"] {
        let other = json!({"Name": name, "Regex": format!(r"{name}=([-+.\w]*\w)")});
        definitions.as_array_mut().unwrap().push(other);
    }
    world.write_request("request.json", &body);
    let ended = world.run(&["--jobs", "3", "--output", "json"]).with_code(0).json();
    for job in ended["TrainingJobs"].as_array().unwrap() {
        assert_eq!(job["Controller"]["Metrics"], json!({"recall": 0.75}), "{job}");
    }
    let csv = world.hyperband(&["export", "t", "--format", "csv"]).with_code(0).out;
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].ends_with(",Reason,recall") && lines[1].ends_with(",0.75"), "{csv}");
    let jsonl = world.hyperband(&["export", "t", "--format", "jsonl"]).with_code(0).out;
    let row: Value = serde_json::from_str(jsonl.lines().next().unwrap()).unwrap();
    assert_eq!(row["FinalMetrics"], json!({"recall": 0.75}), "{row}");
    assert_eq!((&row["BestEpoch"], &row["BestValue"]), (&json!(2), &json!(0.500_000_000_000_000_1)), "{row}");
    let curves = json!({"validation:auc": [[1, 0.25], [2, 0.5]], "recall": [[1, 0.5], [2, 0.75]]});
    assert_eq!(row["Metrics"], curves, "the values of each epoch");
    world.hyperband(&["report", "t", "-o", "t.html"]).with_code(0);
    assert!(world.read("t.html").contains(r#""metrics":{"recall":0.75}"#));
    world.hyperband(&["replay", "t"]).with_code(0);
}

#[test]
fn regression_a_job_that_fails_before_its_objective_keeps_its_other_metric() {
    let world = World::new("echo recall=0.5; exit 1");
    let mut body = with_regex(Some(r"validation-auc:([-+.\w]*\w)"));
    let definitions = &mut body["TrainingJobDefinition"]["AlgorithmSpecification"]["MetricDefinitions"];
    definitions.as_array_mut().unwrap().push(json!({"Name": "recall", "Regex": r"recall=([-+.\w]*\w)"}));
    world.write_request("request.json", &body);
    let ended = world.run(&["--jobs", "1", "--output", "json"]).with_code(1).json();
    assert_eq!(ended["TrainingJobs"][0]["Controller"]["Metrics"], json!({"recall": 0.5}), "{ended}");
}

#[test]
fn a_stack_requires_a_pattern() {
    let world = World::new(QUICK);
    world.write_request("request.json", &with_regex(None));
    let ended =
        world.hyperband(&["submit", "request.json", "--endpoint", "https://example.com"]).with_code(2);
    assert!(
        ended.err.contains(
            "MetricName 'validation:auc' has no definition, and MetricDefinitions defines none; for example, add"
        ),
        "{ended:?}"
    );
    assert!(ended.err.contains(r#""Regex":"metric=([-+.\\w]*\\w)""#), "{ended:?}");
}
