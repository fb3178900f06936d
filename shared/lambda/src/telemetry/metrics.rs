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

const fn count(name: &'static str, emitted_by: &'static [&'static str], meaning: &'static str) -> Metric {
    Metric { name, unit: Unit::Count, emitted_by, meaning }
}

const fn milliseconds(
    name: &'static str,
    emitted_by: &'static [&'static str],
    meaning: &'static str,
) -> Metric {
    Metric { name, unit: Unit::Milliseconds, emitted_by, meaning }
}

const INGEST: &[&str] = &["job-events", "job-logs"];
const DECIDER: &[&str] = &["decider"];
const ACTUATOR: &[&str] = &["actuator"];
const SWEEPER: &[&str] = &["sweeper"];
const PERFORMERS: &[&str] = &["actuator", "sweeper"];
const API: &[&str] = &["api"];

/// Metric `FactsRecorded`.
pub const FACTS_RECORDED: Metric = count("FactsRecorded", INGEST, "new facts");
/// Metric `EventsIgnored`.
pub const EVENTS_IGNORED: Metric = count(
    "EventsIgnored",
    INGEST,
    "deliveries that concern no tuning of this stack; written with the next line, or every 100 deliveries",
);
/// Metric `EventsUnreadable`.
pub const EVENTS_UNREADABLE: Metric = count(
    "EventsUnreadable",
    &["job-events", "job-logs", "decider", "actuator", "sweeper"],
    "unreadable events and stream records",
);
/// Metric `LogLines`.
pub const LOG_LINES: Metric = count("LogLines", &["job-logs"], "log lines with an objective value");
/// Metric `StepsWritten`.
pub const STEPS_WRITTEN: Metric = count("StepsWritten", DECIDER, "steps written");
/// Metric `DecideFailed`.
pub const DECIDE_FAILED: Metric = count(
    "DecideFailed",
    DECIDER,
    "tunings of a batch that could not be decided; delivered again, unless the error is permanent",
);
/// Metric `FactAgeMs`.
pub const FACT_AGE_MS: Metric = milliseconds(
    "FactAgeMs",
    DECIDER,
    "for each step, the time from its oldest fact to the end of the invocation that wrote it",
);
/// Metric `TrialsStopped`.
pub const TRIALS_STOPPED: Metric = count("TrialsStopped", DECIDER, "trials stopped at a rung");
/// Metric `TrialsPromoted`.
pub const TRIALS_PROMOTED: Metric =
    count("TrialsPromoted", DECIDER, "trials that continued past a rung or were promoted");
/// Metric `TuningsStarted`.
pub const TUNINGS_STARTED: Metric = count("TuningsStarted", DECIDER, "tunings whose first step was written");
/// Metric `TuningsEnded`.
pub const TUNINGS_ENDED: Metric =
    count("TuningsEnded", DECIDER, "tunings that ended, failed tunings included");
/// Metric `TuningsFailed`.
pub const TUNINGS_FAILED: Metric = count("TuningsFailed", DECIDER, "tunings that failed");
/// Metric `CapNotices`.
pub const CAP_NOTICES: Metric =
    count("CapNotices", DECIDER, "times that a tuning or a month reached 50 %, 80 % or 100 % of its cap");
/// Metric `MonthCapNotices`.
pub const MONTH_CAP_NOTICES: Metric =
    count("MonthCapNotices", DECIDER, "times that a month reached 80 % or 100 % of its cap");
/// Metric `BudgetOverruns`.
pub const BUDGET_OVERRUNS: Metric =
    count("BudgetOverruns", DECIDER, "tunings with a job that cost more than its reservation");
/// Metric `CapacityWaits`.
pub const CAPACITY_WAITS: Metric =
    count("CapacityWaits", DECIDER, "times that a tuning got no instances for ten minutes");
/// Metric `ActionsPerformed`.
pub const ACTIONS_PERFORMED: Metric = count("ActionsPerformed", PERFORMERS, "settled actions");
/// Metric `ActionsDeferred`.
pub const ACTIONS_DEFERRED: Metric = count("ActionsDeferred", PERFORMERS, "deferrals of an action");
/// Metric `ActionsFailed`.
pub const ACTIONS_FAILED: Metric = count(
    "ActionsFailed",
    ACTUATOR,
    "actions of a batch that were not completed; delivered again, unless the error is permanent",
);
/// Metric `JobsStarted`.
pub const JOBS_STARTED: Metric = count("JobsStarted", PERFORMERS, "training jobs started");
/// Metric `JobsStopped`.
pub const JOBS_STOPPED: Metric = count("JobsStopped", PERFORMERS, "training jobs ordered to stop");
/// Metric `SweepMs`.
pub const SWEEP_MS: Metric = milliseconds("SweepMs", SWEEPER, "duration of a sweep that had work");
/// Metric `TuningsActive`.
pub const TUNINGS_ACTIVE: Metric = count("TuningsActive", SWEEPER, "active tunings visited by a sweep");
/// Metric `ActionsLeft`.
pub const ACTIONS_LEFT: Metric =
    count("ActionsLeft", SWEEPER, "due actions and silent jobs left to the next sweep");
/// Metric `TuningsStuck`.
pub const TUNINGS_STUCK: Metric =
    count("TuningsStuck", SWEEPER, "tunings with undecided facts and no step for ten minutes");
/// Metric `ActionsMissed`.
pub const ACTIONS_MISSED: Metric = count(
    "ActionsMissed",
    SWEEPER,
    "unclaimed actions, except starts, at least 15 seconds after their order; log reads: two minutes",
);
/// Metric `SweepFailed`.
pub const SWEEP_FAILED: Metric = count(
    "SweepFailed",
    SWEEPER,
    "tunings and listed jobs that a sweep failed to read or write, failed listings, failed sweeps",
);
/// Metric `EventsMissed`.
pub const EVENTS_MISSED: Metric = count(
    "EventsMissed",
    SWEEPER,
    "silent training jobs with a state that no event had delivered within a minute",
);
/// Metric `DeliveriesMissed`.
pub const DELIVERIES_MISSED: Metric = count(
    "DeliveriesMissed",
    SWEEPER,
    "silent training jobs with such a state, or with values that no log batch had delivered within four minutes",
);
/// Metric `OrphansStopped`.
pub const ORPHANS_STOPPED: Metric = count(
    "OrphansStopped",
    SWEEPER,
    "running training jobs of this stack that a sweep stopped, because no decision had ordered them",
);
/// Metric `TrainingServiceCalls`.
pub const TRAINING_SERVICE_CALLS: Metric =
    count("TrainingServiceCalls", SWEEPER, "calls of a sweep to SageMaker and CloudWatch Logs");
/// Metric `RequestsRefused`.
pub const REQUESTS_REFUSED: Metric = count("RequestsRefused", API, "rejected requests");

/// All metrics.
pub const ALL: [Metric; 32] = [
    FACTS_RECORDED,
    EVENTS_IGNORED,
    EVENTS_UNREADABLE,
    LOG_LINES,
    STEPS_WRITTEN,
    DECIDE_FAILED,
    FACT_AGE_MS,
    TRIALS_STOPPED,
    TRIALS_PROMOTED,
    TUNINGS_STARTED,
    TUNINGS_ENDED,
    TUNINGS_FAILED,
    CAP_NOTICES,
    MONTH_CAP_NOTICES,
    BUDGET_OVERRUNS,
    CAPACITY_WAITS,
    ACTIONS_PERFORMED,
    ACTIONS_DEFERRED,
    ACTIONS_FAILED,
    JOBS_STARTED,
    JOBS_STOPPED,
    SWEEP_MS,
    TUNINGS_ACTIVE,
    ACTIONS_LEFT,
    TUNINGS_STUCK,
    ACTIONS_MISSED,
    SWEEP_FAILED,
    EVENTS_MISSED,
    DELIVERIES_MISSED,
    ORPHANS_STOPPED,
    TRAINING_SERVICE_CALLS,
    REQUESTS_REFUSED,
];

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
