//! Measures the logs of the functions. Formats each invocation with the deployed code, counts the bytes, and collects
//! the names of the metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use tuning::unit::time::{Millis, Time};

use lambda::outcomes;
use lambda::telemetry::Report;
use serde_json::Value;
use simulator::site::Function;
use simulator::tally::{InvocationResult, LogWriter};

/// An invocation ID of the usual length.
const REQUEST: &str = "6c2d3bd4-5b0c-4f0e-9d0a-2f3c1f6f2f10";
/// A stack name of a usual length.
const STACK: &str = "hyperband-prod";

/// Names of the metrics that the functions wrote.
#[derive(Debug, Clone, Default)]
pub struct MetricNames {
    /// While a tuning was active.
    pub busy: BTreeSet<String>,
    /// While the stack was idle.
    pub idle: BTreeSet<String>,
}

/// Returns the program name of a function.
pub fn program(function: Function) -> &'static str {
    match function {
        Function::Api => "api",
        Function::JobEvents => "job-events",
        Function::JobLogs => "job-logs",
        Function::Decider => "decider",
        Function::Actuator => "actuator",
        Function::Sweeper => "sweeper",
    }
}

/// Formats the logs of all functions, to measure them.
#[derive(Debug, Default)]
pub struct LogMeter {
    writers: BTreeMap<Function, lambda::telemetry::LogWriter>,
    names: Arc<Mutex<MetricNames>>,
    is_idle: bool,
}

impl LogMeter {
    /// Returns a meter, and the place where it collects the names of the metrics.
    pub fn new() -> (Self, Arc<Mutex<MetricNames>>) {
        let meter = Self::default();
        let names = Arc::clone(&meter.names);
        (meter, names)
    }

    fn collect_names(&self, text: &str) {
        for line in text.lines().filter(|line| line.contains("_aws")) {
            let line: Value = serde_json::from_str(line).unwrap();
            let metrics = line["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap();
            let new = metrics.iter().map(|metric| metric["Name"].as_str().unwrap().to_owned());
            let mut names = self.names.lock().unwrap();
            if self.is_idle { names.idle.extend(new) } else { names.busy.extend(new) }
        }
    }
}

impl LogWriter for LogMeter {
    fn write(&mut self, function: Function, now: i64, result: InvocationResult<'_>) -> u64 {
        let mut report = Report::default();
        // The return values are for Lambda. The report contains a failure too.
        match result {
            InvocationResult::Recorded(result, about) => {
                let _ = outcomes::recorded(Some(result.clone()), about, &mut report);
            }
            InvocationResult::Decided(decided) => {
                outcomes::decided(decided, Time(now), &mut report);
            }
            InvocationResult::ActionBatch(acts) => {
                outcomes::acts(acts, &mut report);
            }
            InvocationResult::Swept(swept, ms) => {
                let _ = outcomes::swept(Some(swept.clone()), Millis(ms), &mut report);
            }
        }
        let writer = self
            .writers
            .entry(function)
            .or_insert_with(|| lambda::telemetry::LogWriter::new(program(function), STACK));
        let text = writer.text(report, REQUEST, Time(now));
        self.collect_names(&text);
        u64::try_from(text.len()).unwrap()
    }

    fn begin_idle(&mut self) {
        self.is_idle = true;
    }
}
