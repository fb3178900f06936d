//! `FinalMetricDataList`: the last value of each metric of a job, from the end of its first host's log.
//!
//! `SageMaker` also reads the log of `algo-1` only. Reads a bounded part of the log, and only for jobs with metric
//! definitions.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::Value;
use tuning::unit::time::Time;
use wire::events::logs::{Explanation, MetricPattern};

use super::job_log;
use super::log_stream::LogEvent;

/// The first host, which has the job's metrics.
const HOST: &str = "algo-1";
/// The most bytes read from the end of the log, over all runs of the job.
const READ_BYTES_MAX: u64 = 1024 * 1024;
/// The most metrics of a job; a request has no more definitions.
const METRICS_MAX: usize = 40;

/// A metric without a value so far.
struct Metric<'a> {
    name: &'a str,
    pattern: MetricPattern,
    found: Option<Final>,
}

/// The last value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Final {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) at: Time,
}

/// Returns the last finite value of each metric that `request` defines, in the order of the definitions. JSON has no
/// other numbers. Metrics without a value are absent. Blocks.
pub(crate) fn read(folder: &Path, request: &Value) -> io::Result<Vec<Final>> {
    let mut metrics = metrics(request);
    let mut budget = READ_BYTES_MAX;
    let mut streams = if metrics.is_empty() { Vec::new() } else { job_log::streams(folder)? };
    streams.retain(|(host, ..)| host == HOST);
    streams.sort_unstable_by_key(|(_, started, _)| std::cmp::Reverse(*started));
    for (_, _, path) in streams {
        if budget == 0 || metrics.iter().all(|metric| metric.found.is_some()) {
            break;
        }
        let end = end_of(&path, budget)?;
        budget = budget.saturating_sub(u64::try_from(end.len()).unwrap_or(u64::MAX));
        // A line that is incomplete at either end is not JSON.
        for line in end.split(|byte| *byte == b'\n').rev() {
            let Ok(event) = serde_json::from_slice::<LogEvent>(line) else { continue };
            for metric in &mut metrics {
                metric.look_at(&event);
            }
            if metrics.iter().all(|metric| metric.found.is_some()) {
                break;
            }
        }
    }
    Ok(metrics.into_iter().filter_map(|metric| metric.found).collect())
}

/// Returns the metrics of a request. `SageMaker` rejects a pattern that is not valid; here it has no values.
fn metrics<'a>(request: &'a Value) -> Vec<Metric<'a>> {
    let defined = request["AlgorithmSpecification"]["MetricDefinitions"].as_array().into_iter().flatten();
    let metric = |definition: &'a Value| {
        let pattern = MetricPattern::new(definition["Regex"].as_str()?, None).ok()?;
        Some(Metric { name: definition["Name"].as_str()?, pattern, found: None })
    };
    defined.take(METRICS_MAX).filter_map(metric).collect()
}

impl Metric<'_> {
    /// Takes the value of a line, unless a later line has one.
    fn look_at(&mut self, event: &LogEvent) {
        if self.found.is_none()
            && let Explanation::Value { value: Some(value), .. } = self.pattern.explain(&event.message)
        {
            self.found = Some(Final { name: self.name.to_owned(), value, at: event.timestamp });
        }
    }
}

/// Returns at most the last `budget` bytes of a file.
fn end_of(path: &Path, budget: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(budget)))?;
    let mut bytes = Vec::new();
    file.take(budget).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn line(at: i64, message: &str) -> String {
        let event = LogEvent { id: "1".to_owned(), timestamp: Time(at), message: message.to_owned() };
        serde_json::to_string(&event).unwrap() + "\n"
    }

    fn seen(name: &str, value: f64, at: i64) -> Final {
        Final { name: name.to_owned(), value, at: Time(at) }
    }

    fn request(metrics: &[(&str, &str)]) -> Value {
        let defined = metrics.iter().map(|(name, regex)| json!({"Name": name, "Regex": regex}));
        json!({"AlgorithmSpecification": {"MetricDefinitions": defined.collect::<Vec<_>>()}})
    }

    #[test]
    fn each_metric_has_its_last_finite_value_of_the_first_host() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
        write("algo-1-1000", line(1_000, "lr=0.5") + &line(1_001, "loss=9"));
        let last = line(2_000, "loss=2") + &line(2_500, "loss=1.5 acc=0.75") + &line(2_600, "loss=nan");
        write("algo-1-2000", last + r#"{"id":"1","timestamp":2700,"message":"loss=0"#);
        write("algo-2-2000", line(3_000, "loss=7"));
        let number = r"=([-+.\w]*\w)";
        let patterns: Vec<(&str, String)> =
            ["loss", "none", "acc", "lr"].map(|name| (name, format!("{name}{number}"))).to_vec();
        let mut defined: Vec<(&str, &str)> =
            patterns.iter().map(|(name, regex)| (*name, regex.as_str())).collect();
        defined.push(("broken", "(loss"));
        let expected = [seen("loss", 1.5, 2_500), seen("acc", 0.75, 2_500), seen("lr", 0.5, 1_000)];
        assert_eq!(read(folder.path(), &request(&defined)).unwrap(), expected);
    }

    #[test]
    fn only_the_end_of_a_long_log_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let long: String = (0..20_000).map(|at| line(at, "epoch without a value of the metric")).collect();
        assert!(u64::try_from(long.len()).unwrap() > READ_BYTES_MAX);
        fs::write(folder.path().join("algo-1-1"), line(0, "old=1") + &long + &line(9_000, "new=2")).unwrap();
        let found = read(folder.path(), &request(&[("old", "old=(.)"), ("new", "new=(.)")])).unwrap();
        assert_eq!(found, [seen("new", 2.0, 9_000)]);
    }

    #[test]
    fn a_job_without_definitions_or_without_a_log_has_no_values() {
        let missing = Path::new("/nonexistent");
        assert_eq!(read(missing, &json!({})).unwrap(), []);
        assert_eq!(read(missing, &request(&[("a", "a=(.)")])).unwrap(), []);
    }
}
