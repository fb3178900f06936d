//! What the functions write into their logs: the text that the deployed programs make of an invocation, by the same code.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use function::told;
use serde_json::Value;
use simulator::site::Function;
use simulator::tally::{Teller, Told};
use telemetry::Report;

/// An id of an invocation, for its length.
const REQUEST: &str = "6c2d3bd4-5b0c-4f0e-9d0a-2f3c1f6f2f10";
/// A name of a stack, for its length.
const STACK: &str = "hyperband-prod";

/// The names of the metrics that were written.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// While a tuning was active.
    pub busy: BTreeSet<String>,
    /// Since.
    pub idle: BTreeSet<String>,
}

/// Writes the logs of all functions.
#[derive(Debug, Default)]
pub struct Logs {
    tellers: BTreeMap<Function, telemetry::Teller>,
    names: Arc<Mutex<Names>>,
    at_rest: bool,
}

impl Logs {
    /// Logs, and where the names of the metrics in them are gathered.
    pub fn new() -> (Self, Arc<Mutex<Names>>) {
        let logs = Self::default();
        let names = Arc::clone(&logs.names);
        (logs, names)
    }

    fn gather(&self, text: &str) {
        for line in text.lines().filter(|line| line.contains("_aws")) {
            let line: Value = serde_json::from_str(line).unwrap();
            let metrics = line["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap();
            let new = metrics.iter().map(|metric| metric["Name"].as_str().unwrap().to_owned());
            let mut names = self.names.lock().unwrap();
            if self.at_rest { names.idle.extend(new) } else { names.busy.extend(new) }
        }
    }
}

impl Teller for Logs {
    fn bytes(&mut self, function: Function, now: i64, told: Told<'_>) -> u64 {
        let mut report = Report::default();
        // The answers are Lambda's; a failure is told by the report as well.
        match told {
            Told::Recorded(result, about) => {
                let _ = told::recorded(Some(result.clone()), about, &mut report);
            }
            Told::Decided(decided) => {
                told::decided(decided, now, &mut report);
            }
            Told::Acts(acts) => {
                told::acts(acts, &mut report);
            }
            Told::Swept(swept, ms) => {
                let _ = told::swept(Some(swept.clone()), ms, &mut report);
            }
        }
        let teller = self
            .tellers
            .entry(function)
            .or_insert_with(|| telemetry::Teller::new(super::job::program(function), STACK));
        let text = teller.text(report, REQUEST, now);
        self.gather(&text);
        u64::try_from(text.len()).unwrap()
    }

    fn rests(&mut self) {
        self.at_rest = true;
    }
}
