//! The explanation of one trial: everything that was decided about it, with the numbers it rests on, in order of time.
//!
//! Plain data, to be filled by whoever reads the log. Times are epoch seconds, money is in dollars, values that are not
//! numbers are null. Never decides, and holds no rule of its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tuning::money::MicroUsd;

use crate::shape::{maybe_dollars, maybe_seconds, seconds};

/// One trial explained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Explanation {
    /// Name of the tuning.
    #[serde(rename = "HyperParameterTuningJobName")]
    pub tuning: String,
    /// The trial.
    pub trial: u32,
    /// Its bracket (0 = the most exploring).
    pub bracket: u32,
    /// Levels (epochs) at which the trials of its bracket are compared, lowest first; none without Hyperband.
    pub rungs: Vec<u32>,
    /// Its hyperparameters.
    pub tuned_hyper_parameters: BTreeMap<String, String>,
    /// The objective metric.
    pub metric_name: String,
    /// `Maximize` or `Minimize`.
    #[serde(rename = "Type")]
    pub direction: String,
    /// Its training jobs, in order.
    pub training_jobs: Vec<ExplainedJob>,
    /// What happened and what was decided, in order.
    pub entries: Vec<Entry>,
    /// How things stand, while the trial is not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

/// A training job of the trial, as far as it is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ExplainedJob {
    /// Its name.
    pub training_job_name: String,
    /// Which attempt it is.
    pub attempt: u32,
    /// Rung it was started for.
    pub rung: u32,
    /// When it was ordered.
    #[serde(with = "seconds")]
    pub ordered_time: i64,
    /// Why there is this attempt.
    pub why: String,
    /// `MaxRuntimeInSeconds` sent.
    pub max_runtime_in_seconds: u64,
    /// `MaxWaitTimeInSeconds` sent (spot only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wait_time_in_seconds: Option<u64>,
    /// What was reserved for it; absent without a price.
    #[serde(with = "maybe_dollars", default, skip_serializing_if = "Option::is_none")]
    pub reserved_usd: Option<MicroUsd>,
    /// When its instances began to run.
    #[serde(with = "maybe_seconds", default, skip_serializing_if = "Option::is_none")]
    pub training_start_time: Option<i64>,
    /// When they ceased to.
    #[serde(with = "maybe_seconds", default, skip_serializing_if = "Option::is_none")]
    pub training_end_time: Option<i64>,
    /// How often its instances were taken away.
    pub interruptions: u32,
    /// How it ended; absent while it is not known to have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Failure or refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// Seconds billed, once known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billable_seconds: Option<u64>,
    /// What it cost, once booked.
    #[serde(with = "maybe_dollars", default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<MicroUsd>,
    /// Whether the bill never came and the whole reservation was booked.
    pub settled_in_full: bool,
}

/// One thing that happened or was decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Entry {
    /// The step that took or made it; absent for what came too late for any step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// When: the time of that step.
    #[serde(with = "seconds")]
    pub time: i64,
    /// What kind of thing.
    pub kind: Kind,
    /// It and its reason in one sentence.
    pub says: String,
    /// The training job it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_job_name: Option<String>,
    /// The comparison at a rung.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<Box<Comparison>>,
    /// Values that came after the decision and changed nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_values: Vec<EpochValue>,
}

/// What kind of thing an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A training job was ordered.
    JobOrdered,
    /// Its instances began to run.
    JobStarted,
    /// Its instances were taken away.
    JobInterrupted,
    /// An order could not be carried out yet.
    Deferred,
    /// The trial was compared with others at a rung.
    Judged,
    /// The trial came to its rung's level and waits there.
    RungReached,
    /// The trial was promoted: it goes on at the next rung, in a training job of its own.
    Promoted,
    /// A training job did not go on from the trial's checkpoint.
    ResourceRepeated,
    /// A training job was ordered to stop.
    StopOrdered,
    /// A stored log was ordered to be read.
    LogReadOrdered,
    /// A bill was ordered to be read.
    BillOrdered,
    /// A bill never came: the reservation was booked in full.
    SettledInFull,
    /// What keeping its instances cost was booked, or they are to be let go.
    InstancesKept,
    /// A training job is over, and its trial waits for a further attempt.
    AttemptAwaited,
    /// Results came after the decision.
    LateResults,
    /// The trial is over.
    TrialFinished,
}

/// The trial among those that had arrived at a rung.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Comparison {
    /// Bracket.
    pub bracket: u32,
    /// Rung in the bracket (0 = lowest).
    pub rung: u32,
    /// The rung's level, in epochs.
    pub level: u32,
    /// The epoch whose value was compared.
    pub epoch: u32,
    /// How that epoch lies to the level.
    pub compared: Compared,
    /// The value; null = not a number.
    pub value: Option<f64>,
    /// 1 = best.
    pub rank: u32,
    /// Trials that had arrived, this one included.
    pub arrived: u32,
    /// How many of them go on.
    pub allowed: u32,
    /// Whether this one went on.
    pub went_on: bool,
    /// The rule with its numbers.
    pub rule: String,
    /// All that had arrived, best first, this one among them.
    pub arrivals: Vec<ArrivalView>,
    /// What the trial had cost until then.
    pub cost: CostSoFar,
}

/// The epoch whose value was compared at a rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Compared {
    /// That of the level.
    AtLevel,
    /// The first one above it.
    Late,
    /// The last one: the program had ended before the level.
    LastBeforeEnd,
}

/// A trial at a rung.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ArrivalView {
    /// 1 = best.
    pub rank: u32,
    /// The trial.
    pub trial: u32,
    /// Its value; null = not a number.
    pub value: Option<f64>,
    /// Whether it went on.
    pub went_on: bool,
}

/// What a trial has cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CostSoFar {
    /// Seconds that were billed.
    pub billed_seconds: u64,
    /// Booked for jobs that had ended; absent without a price.
    #[serde(with = "maybe_dollars", default, skip_serializing_if = "Option::is_none")]
    pub billed_usd: Option<MicroUsd>,
    /// The job that was not billed yet: an estimate of its seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_seconds: Option<u64>,
    /// An estimate of what they cost.
    #[serde(with = "maybe_dollars", default, skip_serializing_if = "Option::is_none")]
    pub estimated_usd: Option<MicroUsd>,
}

/// A value at an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct EpochValue {
    /// The epoch; absent where the line's place is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u32>,
    /// The value; null = not a number.
    pub value: Option<f64>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The names are a contract with whoever reads the JSON.
    #[test]
    fn the_members_are_named_as_elsewhere() {
        let compared = Comparison {
            bracket: 0,
            rung: 1,
            level: 3,
            epoch: 4,
            compared: Compared::Late,
            value: None,
            rank: 1,
            arrived: 1,
            allowed: 1,
            went_on: false,
            rule: "rule".to_owned(),
            arrivals: vec![ArrivalView { rank: 1, trial: 7, value: None, went_on: false }],
            cost: CostSoFar { billed_usd: Some(MicroUsd(500_000)), ..CostSoFar::default() },
        };
        let entry = Entry {
            step: Some(3),
            time: 1_500,
            kind: Kind::Judged,
            says: "says".to_owned(),
            training_job_name: Some("t-abc123-7-0-1".to_owned()),
            rung: Some(Box::new(compared)),
            late_values: vec![EpochValue { epoch: Some(5), value: Some(0.5) }],
        };
        let expected = json!({
            "Step": 3,
            "Time": 1.5,
            "Kind": "Judged",
            "Says": "says",
            "TrainingJobName": "t-abc123-7-0-1",
            "Rung": {
                "Bracket": 0, "Rung": 1, "Level": 3, "Epoch": 4, "Compared": "Late", "Value": null,
                "Rank": 1, "Arrived": 1, "Allowed": 1, "WentOn": false, "Rule": "rule",
                "Arrivals": [{"Rank": 1, "Trial": 7, "Value": null, "WentOn": false}],
                "Cost": {"BilledSeconds": 0, "BilledUsd": 0.5},
            },
            "LateValues": [{"Epoch": 5, "Value": 0.5}],
        });
        assert_eq!(serde_json::to_value(&entry).unwrap(), expected);
        let explanation = Explanation {
            tuning: "t".to_owned(),
            trial: 7,
            bracket: 0,
            rungs: vec![1, 3],
            tuned_hyper_parameters: [("lr".to_owned(), "0.5".to_owned())].into(),
            metric_name: "auc".to_owned(),
            direction: "Maximize".to_owned(),
            training_jobs: Vec::new(),
            entries: Vec::new(),
            now: None,
        };
        let expected = json!({
            "HyperParameterTuningJobName": "t",
            "Trial": 7,
            "Bracket": 0,
            "Rungs": [1, 3],
            "TunedHyperParameters": {"lr": "0.5"},
            "MetricName": "auc",
            "Type": "Maximize",
            "TrainingJobs": [],
            "Entries": [],
        });
        assert_eq!(serde_json::to_value(&explanation).unwrap(), expected);
    }
}
