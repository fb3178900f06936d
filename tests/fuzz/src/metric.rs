//! Target `metric`: a user's patterns on log lines. A pattern that compiles must read any line in bounded time and
//! memory.

use std::collections::BTreeSet;

use tuning::log::fact::JobKey;
use tuning::unit::time::Time;
use wire::events::logs::{Explanation, LogEvent, MetricPattern, Reading, StreamLines};
use wire::request::{Request, compile_pattern};

/// The input is lines: the pattern of the metric, the pattern of the epoch (empty = none), then log lines. A `*` at the
/// start, which no pattern has, repeats the first log line up to the longest line that the pattern reads.
pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (long, text) = text.strip_prefix('*').map_or((false, &*text), |rest| (true, rest));
    let mut lines = text.split('\n');
    let metric = lines.next().unwrap_or_default();
    let epoch = lines.next().filter(|epoch| !epoch.is_empty());
    let pattern = match MetricPattern::new(metric, epoch) {
        Ok(pattern) => pattern,
        Err(error) => {
            let text = error.to_string();
            assert!(!text.is_empty() && text.len() <= 600, "an error text of {} bytes", text.len());
            let broken = [Some(metric), epoch].into_iter().flatten().any(|one| compile_pattern(one).is_err());
            return assert!(broken, "{text}");
        }
    };
    check_request(metric);
    let mut found = StreamLines::default();
    for (number, line) in lines.enumerate() {
        let repeats = if long { pattern.max_line_bytes() / line.len().max(1) } else { 1 };
        let message = line.repeat(repeats);
        let event = LogEvent { id: number.to_string(), timestamp: 1, message };
        found.add(&event, &check_line(&pattern, &event));
        if long {
            break;
        }
    }
    let has_lines = !found.is_empty();
    let facts = found.into_facts(JobKey::new(0, 0, 1), "stream");
    assert!(!has_lines || !facts.is_empty());
}

fn check_line(pattern: &MetricPattern, event: &LogEvent) -> Reading {
    let reading = pattern.read(&event.message);
    if let Some(cut) = &reading.cut {
        assert!(cut.whole.contains(&cut.captured) && cut.line.contains(&cut.whole), "{cut:?}");
        assert!(cut.captured.bytes().any(|byte| byte.is_ascii_digit()), "{cut:?}");
    }
    let lines = reading.lines(&event.id, Time(event.timestamp));
    let ids: BTreeSet<&str> = lines.iter().map(|line| line.id.as_str()).collect();
    assert_eq!(ids.len(), lines.len(), "each line has its own ID");
    let mut lines = lines.iter();
    for shown in &reading.shown {
        match shown {
            Explanation::Value { captured, value, index } => {
                assert!(value.is_none_or(f64::is_finite), "{captured}");
                let number = captured.parse::<f64>().ok().filter(|number| number.is_finite());
                assert_eq!(number.map(f64::to_bits), value.map(f64::to_bits), "{captured}");
                let line = lines.next().map(|line| (line.at.0, line.index, line.value.map(f64::to_bits)));
                assert_eq!(line, Some((event.timestamp, *index, value.map(f64::to_bits))));
            }
            Explanation::NotANumber { captured } => assert!(captured.parse::<f64>().is_err()),
            Explanation::NoMatch | Explanation::TooLong => {}
        }
    }
    assert!(lines.next().is_none());
    reading
}

/// Checks a user's pattern for the metric of a built-in algorithm. The request keeps the user's pattern, and an epoch
/// pattern that it derives from the algorithm's lines compiles.
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
