//! A user's patterns on a program's lines: what compiles reads any line, and within a bound.

use tuning::fact::JobKey;
use wire::events::logs::{Explanation, LogEvent, MetricPattern, lines_to_facts};
use wire::request::{Request, compile_pattern};

/// The input is lines: the metric's pattern, the epoch's (none if empty), then lines of a log. If the first begins with
/// `*`, which no pattern does, the first line of the log is repeated until it is as long as the pattern allows.
pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (long, text) = text.strip_prefix('*').map_or((false, &*text), |rest| (true, rest));
    let mut lines = text.split('\n');
    let metric = lines.next().unwrap_or_default();
    let epoch = lines.next().filter(|epoch| !epoch.is_empty());
    let pattern = match MetricPattern::new(metric, epoch) {
        Ok(pattern) => pattern,
        Err(error) => {
            let told = error.to_string();
            assert!(!told.is_empty() && told.len() <= 600, "an error of {} bytes", told.len());
            let broken = [Some(metric), epoch].into_iter().flatten().any(|one| compile_pattern(one).is_err());
            return assert!(broken, "{told}");
        }
    };
    check_request(metric);
    let mut found = Vec::new();
    for (number, line) in lines.enumerate() {
        let repeats = if long { pattern.max_line_bytes() / line.len().max(1) } else { 1 };
        let message = line.repeat(repeats);
        let event = LogEvent { id: number.to_string(), timestamp: 1, message };
        check_line(&pattern, &event);
        found.extend(pattern.line(&event));
        if long {
            break;
        }
    }
    let count = found.len();
    let facts = lines_to_facts(JobKey { trial: 0, rung: 0, attempt: 1 }, "stream", found);
    assert_eq!(facts.is_empty(), count == 0);
}

fn check_line(pattern: &MetricPattern, event: &LogEvent) {
    let explained = pattern.explain(&event.message);
    assert_eq!(explained == Explanation::TooLong, event.message.len() > pattern.max_line_bytes());
    let line = pattern.line(event);
    match explained {
        Explanation::Value { captured, value, index } => {
            assert!(value.is_none_or(f64::is_finite), "{captured}");
            let number = captured.parse::<f64>().ok().filter(|number| number.is_finite());
            assert_eq!(number.map(f64::to_bits), value.map(f64::to_bits), "{captured}");
            let line = line.map(|line| (line.at, line.index, line.value.map(f64::to_bits)));
            assert_eq!(line, Some((event.timestamp, index, value.map(f64::to_bits))));
        }
        Explanation::NotANumber { captured } => assert!(line.is_none() && captured.parse::<f64>().is_err()),
        Explanation::NoMatch | Explanation::TooLong => assert!(line.is_none()),
    }
}

/// A user's pattern under the name of a built-in algorithm's metric is tried on that algorithm's lines, to see whether its
/// epochs can be captured there: whatever it is, it stays the user's, and what captures the epochs compiles.
fn check_request(pattern: &str) {
    for (algorithm, metric) in
        [("xgboost", "validation:auc"), ("linear-learner", "validation:objective_loss")]
    {
        let body = serde_json::json!({
            "HyperParameterTuningJobConfig": {"HyperParameterTuningJobObjective": {"MetricName": metric}},
            "TrainingJobDefinition": {"AlgorithmSpecification": {
                "AlgorithmName": algorithm,
                "MetricDefinitions": [{"Name": metric, "Regex": pattern}],
            }},
        });
        let request = Request::from_stored(body);
        assert_eq!(request.metric_regex().as_deref(), Some(pattern));
        assert!(request.epoch_pattern().is_none_or(|epoch| compile_pattern(epoch).is_ok()), "{pattern}");
    }
}
