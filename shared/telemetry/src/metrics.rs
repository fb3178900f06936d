//! The metrics: one table of names, units, who emits them and what they mean; and the line in CloudWatch's embedded format.
//!
//! All have the namespace [`NAMESPACE`] and one dimension, [`STACK`]. Zero is never written: an invocation that did nothing
//! writes nothing. A metric may be added; none is ever renamed, since dashboards and alarms outside hang on it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

/// The namespace of all metrics.
pub const NAMESPACE: &str = "Hyperband";
/// The dimension of all metrics: the stack's name.
pub const STACK: &str = "Stack";

/// Most values of one metric in a line: what the format allows.
const VALUES_MAX: usize = 100;

/// A unit, as CloudWatch knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Counted; in one line they are added up.
    Count,
    /// Times; in one line each stands for itself.
    Milliseconds,
}

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// The functions that emit it.
    pub emitted_by: &'static [&'static str],
    /// What it means.
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

/// Facts that were new.
pub const FACTS_RECORDED: Metric = count("FactsRecorded", INGEST, "facts that were new");
/// Deliveries about nothing of this stack.
pub const EVENTS_IGNORED: Metric = count(
    "EventsIgnored",
    INGEST,
    "deliveries about no tuning of this stack; written with the next line, or once 100 have gathered",
);
/// What cannot be read.
pub const EVENTS_UNREADABLE: Metric = count(
    "EventsUnreadable",
    &["job-events", "job-logs", "decider", "actuator", "sweeper"],
    "events and stream records that cannot be read",
);
/// Log lines with the objective.
pub const LOG_LINES: Metric = count("LogLines", &["job-logs"], "log lines with a value of the objective");
/// Steps.
pub const STEPS_WRITTEN: Metric = count("StepsWritten", DECIDER, "steps written");
/// Tunings that could not be decided on.
pub const DECIDE_FAILED: Metric = count(
    "DecideFailed",
    DECIDER,
    "tunings of a batch that could not be decided on; delivered again, unless for good",
);
/// The age of facts.
pub const FACT_AGE_MS: Metric = milliseconds(
    "FactAgeMs",
    DECIDER,
    "of each step, the time from when its oldest fact happened until the end of the call that wrote it",
);
/// Trials over at a rung.
pub const TRIALS_STOPPED: Metric =
    count("TrialsStopped", DECIDER, "trials that are over since they were not among the best of a rung");
/// Trials let go on.
pub const TRIALS_PROMOTED: Metric =
    count("TrialsPromoted", DECIDER, "times that a trial was let go on at a rung");
/// Tunings begun.
pub const TUNINGS_STARTED: Metric = count("TuningsStarted", DECIDER, "tunings whose first step was written");
/// Tunings over.
pub const TUNINGS_ENDED: Metric = count("TuningsEnded", DECIDER, "tunings that ended, failed ones included");
/// Tunings that failed.
pub const TUNINGS_FAILED: Metric =
    count("TuningsFailed", DECIDER, "tunings that ended because they cannot succeed");
/// Notices of caps.
pub const CAP_NOTICES: Metric = count(
    "CapNotices",
    DECIDER,
    "times that half, four fifths or the end of a cap was reached, a tuning's or a month's",
);
/// Bills above what was reserved.
pub const BUDGET_OVERRUNS: Metric =
    count("BudgetOverruns", DECIDER, "tunings with a bill above what its job could cost");
/// Actions done.
pub const ACTIONS_PERFORMED: Metric = count("ActionsPerformed", PERFORMERS, "actions that were settled");
/// Actions put off.
pub const ACTIONS_DEFERRED: Metric = count("ActionsDeferred", PERFORMERS, "times that an action was put off");
/// Actions that failed.
pub const ACTIONS_FAILED: Metric = count(
    "ActionsFailed",
    ACTUATOR,
    "actions of a batch that were not brought to their end; delivered again, unless for good",
);
/// Training jobs started.
pub const JOBS_STARTED: Metric = count("JobsStarted", PERFORMERS, "training jobs started");
/// Training jobs stopped.
pub const JOBS_STOPPED: Metric = count("JobsStopped", PERFORMERS, "training jobs told to stop");
/// How long a sweep took.
pub const SWEEP_MS: Metric =
    milliseconds("SweepMs", SWEEPER, "how long a sweep took that had something to do");
/// Active tunings.
pub const TUNINGS_ACTIVE: Metric = count("TuningsActive", SWEEPER, "active tunings that a sweep visited");
/// What a sweep left.
pub const ACTIONS_LEFT: Metric =
    count("ActionsLeft", SWEEPER, "actions that were due and jobs that were silent, left to the next sweep");
/// Tunings that are not decided on.
pub const TUNINGS_STUCK: Metric = count(
    "TuningsStuck",
    SWEEPER,
    "tunings without a step for ten minutes of which something that is stored waits for the decider",
);
/// Actions that the actuator did not perform.
pub const ACTIONS_MISSED: Metric = count(
    "ActionsMissed",
    SWEEPER,
    "actions that nobody had taken up a quarter of a minute and more after they were ordered",
);
/// What a sweep could not do.
pub const SWEEP_FAILED: Metric = count(
    "SweepFailed",
    SWEEPER,
    "tunings and listed jobs that a sweep could not read or write, failed listings, failed sweeps",
);
/// Unknown jobs.
pub const ORPHANS_STOPPED: Metric =
    count("OrphansStopped", SWEEPER, "running training jobs of this stack that no decision knows, stopped");
/// Calls of the training service.
pub const TRAINING_SERVICE_CALLS: Metric =
    count("TrainingServiceCalls", SWEEPER, "calls of SageMaker and of its logs by a sweep");
/// Requests refused.
pub const REQUESTS_REFUSED: Metric = count("RequestsRefused", API, "requests that were refused");

/// All of them.
pub const ALL: [Metric; 28] = [
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
    BUDGET_OVERRUNS,
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
    ORPHANS_STOPPED,
    TRAINING_SERVICE_CALLS,
    REQUESTS_REFUSED,
];

/// Values of metrics, for one line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metrics(BTreeMap<&'static str, (Unit, Vec<u64>)>);

impl Metrics {
    /// Counts `value`, or notes a time; nothing if it is zero.
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

    /// Adds all of `other`.
    pub fn add_all(&mut self, other: Self) {
        for (name, (unit, values)) in other.0 {
            for value in values {
                self.add(Metric { name, unit, emitted_by: &[], meaning: "" }, value);
            }
        }
    }

    /// The count of a metric.
    pub fn count(&self, metric: Metric) -> u64 {
        self.0.get(metric.name).map_or(0, |(_, values)| values.iter().sum())
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The line; `at` in ms since the epoch.
    pub fn line(&self, stack: &str, at: i64) -> String {
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
        assert_eq!(metrics.line("prod", 1_789_000_200_000), expected);
    }

    #[test]
    fn more_times_than_the_format_allows_are_left_out_and_counts_go_on() {
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
