//! `GetMetricStatistics` of CloudWatch for the metrics of this machine's training jobs.
//!
//! `SageMaker` publishes the metrics of a training job to CloudWatch, and `TrainingJobAnalytics` of the `SageMaker`
//! Python SDK reads them there. This module returns them from the log of the job.

use std::collections::BTreeMap;

use local::training::{JobRecords, series};
use serde::Deserialize;
use serde_json::{Value, json};
use tuning::log::fact::MetricLine;
use wire::events::logs::MetricPattern;
use wire::request::Request;

/// Prefix of CloudWatch's operations in the header `X-Amz-Target`.
pub(super) const TARGET: &str = "GraniteServiceVersion20100801.";
/// The only operation.
pub(super) const OPERATION: &str = "GetMetricStatistics";
const NAMESPACE: &str = "/aws/sagemaker/TrainingJobs";
const DIMENSION: &str = "TrainingJobName";
/// CloudWatch's maximum number of datapoints.
const POINTS_MAX: f64 = 1_440.0;

/// The members of a request that count here. Times are seconds since the epoch.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Asked {
    namespace: String,
    metric_name: String,
    #[serde(default)]
    dimensions: Vec<Dimension>,
    start_time: f64,
    end_time: f64,
    period: u32,
    #[serde(default)]
    statistics: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Dimension {
    name: String,
    value: String,
}

impl Asked {
    /// Reads and checks a request. Returns the error for the caller.
    pub(super) fn parse(body: &[u8]) -> Result<Self, String> {
        let asked: Self = serde_json::from_slice(body)
            .map_err(|error| format!("invalid GetMetricStatistics, expected its members as JSON: {error}"))?;
        if asked.period == 0 {
            return Err("invalid Period 0: expected a number of seconds above 0, for example 60".to_owned());
        }
        let points = (asked.end_time - asked.start_time) / f64::from(asked.period);
        if !points.is_finite() || points > POINTS_MAX {
            return Err(format!(
                "the time range has more than {POINTS_MAX} periods: use a larger Period or a shorter range"
            ));
        }
        Ok(asked)
    }

    /// Returns the training job that the request is about. Other namespaces and jobs have no metrics here.
    pub(super) fn job(&self) -> Option<&str> {
        let [Dimension { name, value }] = self.dimensions.as_slice() else { return None };
        (self.namespace == NAMESPACE && name == DIMENSION).then_some(value)
    }

    /// Returns the answer for a job or a metric that this machine does not have.
    pub(super) fn no_values(&self) -> Value {
        self.datapoints(&[])
    }

    /// Returns the answer with the values of the job's log. Blocks.
    pub(super) fn answer(&self, records: &JobRecords, request: &Request) -> std::io::Result<Value> {
        let is_objective = self.metric_name == request.objective_metric();
        let given = request.metric_patterns().find(|(name, _)| *name == self.metric_name);
        let regex = given.map(|(_, regex)| regex.to_owned());
        let regex = regex.or_else(|| request.metric_regex().filter(|_| is_objective));
        let pattern = regex.and_then(|regex| MetricPattern::new(&regex, None).ok());
        let (Some(job), Some(pattern)) = (self.job(), pattern) else { return Ok(self.no_values()) };
        let found = series(records.log(job, Some(request.metric_host())), &pattern)?;
        Ok(self.datapoints(&found))
    }

    /// Returns the answer with the wanted statistics of each period that has values.
    fn datapoints(&self, lines: &[MetricLine]) -> Value {
        let mut periods: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        let span = i64::from(self.period).saturating_mul(1_000);
        for line in lines {
            #[expect(clippy::cast_precision_loss, reason = "a time in milliseconds has at most 2^53")]
            let at = line.at.0 as f64 / 1_000.0;
            if let Some(value) = line.value.filter(|_| at >= self.start_time && at < self.end_time) {
                periods.entry(line.at.0.div_euclid(span).saturating_mul(span)).or_default().push(value);
            }
        }
        let points: Vec<Value> = periods.iter().map(|(at, values)| self.datapoint(*at, values)).collect();
        json!({"Label": self.metric_name, "Datapoints": points})
    }

    fn datapoint(&self, at: i64, values: &[f64]) -> Value {
        let sum: f64 = values.iter().sum();
        let count = f64::from(u32::try_from(values.len()).unwrap_or(u32::MAX));
        let mut point = json!({"Timestamp": at.div_euclid(1_000), "Unit": "None"});
        for name in &self.statistics {
            point[name] = json!(match name.as_str() {
                "Average" => sum / count,
                "Sum" => sum,
                "SampleCount" => count,
                "Minimum" => values.iter().copied().fold(f64::INFINITY, f64::min),
                "Maximum" => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                _ => continue,
            });
        }
        point
    }
}

#[cfg(test)]
mod tests {
    use tuning::unit::time::Time;

    use super::*;

    fn asked(change: &Value) -> Result<Asked, String> {
        let mut body = json!({
            "Namespace": NAMESPACE, "MetricName": "loss",
            "Dimensions": [{"Name": DIMENSION, "Value": "t-abc123-0-0-1"}],
            "StartTime": 0, "EndTime": 86_400, "Period": 60, "Statistics": ["Average", "SampleCount"],
        });
        for (name, value) in change.as_object().unwrap() {
            body[name] = value.clone();
        }
        Asked::parse(body.to_string().as_bytes())
    }

    fn line(at: i64, value: Option<f64>) -> MetricLine {
        MetricLine { id: String::new(), at: Time(at), index: None, value }
    }

    #[test]
    fn each_period_with_values_has_the_wanted_statistics() {
        let lines =
            [line(0, Some(4.0)), line(59_999, Some(2.0)), line(60_000, None), line(120_000, Some(1.0))];
        let answer = asked(&json!({"EndTime": 120.5})).unwrap().datapoints(&lines);
        let expected = json!([
            {"Timestamp": 0, "Unit": "None", "Average": 3.0, "SampleCount": 2.0},
            {"Timestamp": 120, "Unit": "None", "Average": 1.0, "SampleCount": 1.0},
        ]);
        assert_eq!(answer, json!({"Label": "loss", "Datapoints": expected}));
        let earlier = asked(&json!({"EndTime": 59.9, "Statistics": ["Maximum"]})).unwrap().datapoints(&lines);
        assert_eq!(earlier["Datapoints"], json!([{"Timestamp": 0, "Unit": "None", "Maximum": 4.0}]));
    }

    #[test]
    fn invalid_requests_get_a_clear_error() {
        for (change, expected) in [
            (json!({"Period": 0}), "invalid Period 0"),
            (json!({"Period": 1}), "more than 1440"),
            (json!({"StartTime": -1e308, "EndTime": 1e308}), "more than 1440"),
            (json!({"EndTime": "now"}), "invalid GetMetricStatistics"),
        ] {
            let error = asked(&change).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn only_metrics_of_training_jobs_are_known() {
        assert_eq!(asked(&json!({})).unwrap().job(), Some("t-abc123-0-0-1"));
        assert_eq!(asked(&json!({"Namespace": "AWS/EC2"})).unwrap().job(), None);
        assert_eq!(asked(&json!({"Dimensions": []})).unwrap().job(), None);
    }
}
