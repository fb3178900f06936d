//! The metrics: one table of names, units, emitters and meanings; and the line in CloudWatch's embedded metric format.
//!
//! All metrics have the namespace [`NAMESPACE`] and one dimension, [`STACK`]. Zero is never written, so an invocation
//! without work writes nothing. A metric may be added but never renamed, since alarms outside this project depend on
//! it.

use std::collections::BTreeMap;
use tuning::unit::time::Time;

use serde::Serialize;
use serde_json::{Value, json};

/// The namespace of all metrics.
pub const NAMESPACE: &str = "Hyperband";
/// The dimension of all metrics: the stack's name.
pub const STACK: &str = "Stack";

/// Maximum values of one metric in a line, a limit of the format.
const VALUES_MAX: usize = 100;

/// A unit, as CloudWatch knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// A count; the values of one line are summed.
    Count,
    /// A time; a line keeps each value.
    Milliseconds,
}

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// The name.
    pub name: &'static str,
    /// The unit.
    pub unit: Unit,
    /// The functions that emit it.
    pub emitted_by: &'static [&'static str],
    /// The meaning.
    pub meaning: &'static str,
}

/// Defines the metrics. A row has the constant, the name, the unit, the functions that emit it, and the meaning.
macro_rules! metrics {
    ($($constant:ident = $name:literal, $unit:ident, $emitted_by:expr, $meaning:literal;)*) => {
        $(
            #[doc = concat!("Metric `", $name, "`.")]
            pub const $constant: Metric =
                Metric { name: $name, unit: Unit::$unit, emitted_by: $emitted_by, meaning: $meaning };
        )*

        /// All metrics.
        pub const ALL: &[Metric] = &[$($constant),*];
    };
}

const INGEST: &[&str] = &["job-events", "job-logs"];
const DECIDER: &[&str] = &["decider"];
const ACTUATOR: &[&str] = &["actuator"];
const SWEEPER: &[&str] = &["sweeper"];
const PERFORMERS: &[&str] = &["actuator", "sweeper"];
const API: &[&str] = &["api"];

metrics! {
    FACTS_RECORDED = "FactsRecorded", Count, INGEST, "new facts";
    EVENTS_IGNORED = "EventsIgnored", Count, INGEST,
        "deliveries that concern no tuning of this stack; written with the next line, or every 100 deliveries";
    EVENTS_UNREADABLE = "EventsUnreadable", Count, &["job-events", "job-logs", "decider", "actuator", "sweeper"],
        "unreadable events and stream records";
    LOG_LINES = "LogLines", Count, &["job-logs"], "log lines with an objective value";
    STEPS_WRITTEN = "StepsWritten", Count, DECIDER, "steps written";
    DECIDE_FAILED = "DecideFailed", Count, DECIDER,
        "tunings of a batch that could not be decided; delivered again, unless the error is permanent";
    FACT_AGE_MS = "FactAgeMs", Milliseconds, DECIDER,
        "for each step, the time from its oldest fact to the end of the invocation that wrote it";
    TRIALS_STOPPED = "TrialsStopped", Count, DECIDER, "trials stopped at a rung";
    TRIALS_PROMOTED = "TrialsPromoted", Count, DECIDER, "trials that continued past a rung or were promoted";
    TUNINGS_STARTED = "TuningsStarted", Count, DECIDER, "tunings whose first step was written";
    TUNINGS_ENDED = "TuningsEnded", Count, DECIDER, "tunings that ended, failed tunings included";
    TUNINGS_FAILED = "TuningsFailed", Count, DECIDER, "tunings that failed";
    CAP_NOTICES = "CapNotices", Count, DECIDER,
        "times that a tuning or a month reached 50 %, 80 % or 100 % of its cap";
    MONTH_CAP_NOTICES = "MonthCapNotices", Count, DECIDER, "times that a month reached 80 % or 100 % of its cap";
    BUDGET_OVERRUNS = "BudgetOverruns", Count, DECIDER, "tunings with a job that cost more than its reservation";
    CAPACITY_WAITS = "CapacityWaits", Count, DECIDER, "times that a tuning got no instances for ten minutes";
    ACTIONS_PERFORMED = "ActionsPerformed", Count, PERFORMERS, "settled actions";
    ACTIONS_DEFERRED = "ActionsDeferred", Count, PERFORMERS, "deferrals of an action";
    ACTIONS_FAILED = "ActionsFailed", Count, ACTUATOR,
        "actions of a batch that were not completed; delivered again, unless the error is permanent";
    JOBS_STARTED = "JobsStarted", Count, PERFORMERS, "training jobs started";
    JOBS_STOPPED = "JobsStopped", Count, PERFORMERS, "training jobs ordered to stop";
    SWEEP_MS = "SweepMs", Milliseconds, SWEEPER, "duration of a sweep that had work";
    TUNINGS_ACTIVE = "TuningsActive", Count, SWEEPER, "active tunings visited by a sweep";
    ACTIONS_LEFT = "ActionsLeft", Count, SWEEPER, "due actions and silent jobs left to the next sweep";
    TUNINGS_STUCK = "TuningsStuck", Count, SWEEPER, "tunings with undecided facts and no step for ten minutes";
    ACTIONS_MISSED = "ActionsMissed", Count, SWEEPER,
        "unclaimed actions, except starts, at least 15 seconds after their order; log reads: two minutes";
    SWEEP_FAILED = "SweepFailed", Count, SWEEPER,
        "tunings and listed jobs that a sweep failed to read or write, failed listings, failed sweeps";
    EVENTS_MISSED = "EventsMissed", Count, SWEEPER,
        "silent training jobs with a state that no event had delivered within a minute";
    DELIVERIES_MISSED = "DeliveriesMissed", Count, SWEEPER,
        "silent training jobs with such a state, or with values that no log batch had delivered within four minutes";
    ORPHANS_STOPPED = "OrphansStopped", Count, SWEEPER,
        "running training jobs of this stack that a sweep stopped, because no decision had ordered them";
    TRAINING_SERVICE_CALLS = "TrainingServiceCalls", Count, SWEEPER,
        "calls of a sweep to SageMaker and CloudWatch Logs";
    REQUESTS_REFUSED = "RequestsRefused", Count, API, "rejected requests";
}

/// Values of metrics, for one line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metrics(BTreeMap<&'static str, (Unit, Vec<u64>)>);

impl Metrics {
    /// Adds `value` to a count, or records a time. Ignores zero.
    pub fn add(&mut self, metric: Metric, value: u64) {
        if value == 0 {
            return;
        }
        let (unit, values) = self.0.entry(metric.name).or_insert((metric.unit, Vec::new()));
        if *unit == Unit::Count
            && let Some(sum) = values.first_mut()
        {
            *sum = sum.saturating_add(value);
        } else if values.len() < VALUES_MAX {
            values.push(value);
        }
    }

    /// Adds all values of `other`.
    pub fn add_all(&mut self, other: Self) {
        for (name, (unit, values)) in other.0 {
            for value in values {
                self.add(Metric { name, unit, emitted_by: &[], meaning: "" }, value);
            }
        }
    }

    /// Returns the sum of a metric.
    pub fn count(&self, metric: Metric) -> u64 {
        self.0.get(metric.name).map_or(0, |(_, values)| values.iter().sum())
    }

    /// Returns whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the line..
    pub fn line(&self, stack: &str, at: Time) -> String {
        let defined: Vec<Value> =
            self.0.iter().map(|(name, (unit, _))| json!({"Name": name, "Unit": unit})).collect();
        let mut line = json!({
            "_aws": {
                "Timestamp": at,
                "CloudWatchMetrics": [{"Namespace": NAMESPACE, "Dimensions": [[STACK]], "Metrics": defined}],
            },
            STACK: stack,
        });
        for (name, (_, values)) in &self.0 {
            line[*name] = match values.as_slice() {
                [value] => json!(value),
                values => json!(values),
            };
        }
        line.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_metric_is_in_the_table_once_with_an_emitter() {
        let names: BTreeSet<&str> = ALL.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), ALL.len());
        for metric in ALL {
            assert!(!metric.emitted_by.is_empty() && !metric.meaning.is_empty(), "{}", metric.name);
            assert_eq!(metric.unit == Unit::Milliseconds, metric.name.ends_with("Ms"), "{}", metric.name);
        }
        assert!(!names.contains(STACK));
    }

    #[test]
    fn a_line_is_in_the_embedded_format() {
        let mut metrics = Metrics::default();
        metrics.add(STEPS_WRITTEN, 1);
        metrics.add(STEPS_WRITTEN, 2);
        metrics.add(TRIALS_STOPPED, 0);
        metrics.add(FACT_AGE_MS, 250);
        metrics.add(FACT_AGE_MS, 70);
        let expected = concat!(
            r#"{"FactAgeMs":[250,70],"Stack":"prod","StepsWritten":3,"_aws":{"CloudWatchMetrics":[{"Dimensions":[["Stack"]],"#,
            r#""Metrics":[{"Name":"FactAgeMs","Unit":"Milliseconds"},{"Name":"StepsWritten","Unit":"Count"}],"#,
            r#""Namespace":"Hyperband"}],"Timestamp":1789000200000}}"#,
        );
        assert_eq!(metrics.line("prod", Time(1_789_000_200_000)), expected);
    }

    #[test]
    fn times_above_the_limit_of_the_format_are_dropped_and_counts_are_complete() {
        let mut metrics = Metrics::default();
        for _ in 0..250 {
            metrics.add(FACT_AGE_MS, 5);
            metrics.add(LOG_LINES, 5);
        }
        assert_eq!((metrics.count(LOG_LINES), metrics.count(FACT_AGE_MS)), (1_250, 500));
        let mut sum = metrics.clone();
        sum.add_all(metrics);
        assert_eq!((sum.count(LOG_LINES), sum.count(FACT_AGE_MS)), (2_500, 500));
    }
}
