//! The explanation of one trial: every event and decision in order of time, with the numbers behind it.
//!
//! This module only has the data types; the use case that reads the event log fills them. Times are epoch seconds,
//! money is in dollars, and values that are not finite numbers are null.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::{BracketId, RungId, TrialId};
use tuning::unit::money::MicroUsd;

use crate::shape::{optional_dollars, optional_seconds, seconds};

/// The explanation of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Explanation {
    /// Name of the tuning job.
    #[serde(rename = "HyperParameterTuningJobName")]
    pub tuning: String,
    /// Number of the trial.
    pub trial: TrialId,
    /// `DefinitionName` of its training job definition, if the request has one.
    #[serde(rename = "TrainingJobDefinitionName", default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Bracket of the trial; 0 is the bracket that starts the most trials.
    pub bracket: BracketId,
    /// Levels of the rungs of the bracket, in epochs, lowest first; empty without Hyperband.
    pub rungs: Vec<Epochs>,
    /// How rungs are executed, and why; absent without Hyperband.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung_execution: Option<String>,
    /// How its hyperparameters were chosen.
    pub drawn: String,
    /// Tuned hyperparameters, by name.
    pub tuned_hyper_parameters: BTreeMap<String, String>,
    /// Name of the objective metric.
    pub metric_name: String,
    /// `Maximize` or `Minimize`.
    #[serde(rename = "Type")]
    pub direction: String,
    /// Training jobs of the trial, in order.
    pub training_jobs: Vec<ExplainedJob>,
    /// Events and decisions, in order of time.
    pub entries: Vec<Entry>,
    /// The current state in a sentence; absent once the trial is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

/// A training job of the trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ExplainedJob {
    /// Name of the training job.
    pub training_job_name: String,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Rung for which it was started.
    pub rung: RungId,
    /// Time of the order.
    #[serde(with = "seconds")]
    pub ordered_time: i64,
    /// Reason of this attempt.
    pub why: String,
    /// `MaxRuntimeInSeconds` of the training job.
    pub max_runtime_in_seconds: u64,
    /// `MaxWaitTimeInSeconds` of the training job (spot only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wait_time_in_seconds: Option<u64>,
    /// Reservation; absent without a price.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    pub reserved_usd: Option<MicroUsd>,
    /// Time when its instances began to run.
    #[serde(with = "optional_seconds", default, skip_serializing_if = "Option::is_none")]
    pub training_start_time: Option<i64>,
    /// Time when its instances stopped.
    #[serde(with = "optional_seconds", default, skip_serializing_if = "Option::is_none")]
    pub training_end_time: Option<i64>,
    /// Number of spot interruptions.
    pub interruptions: u32,
    /// How it ended; absent until its end is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Reason of a failure, or of a rejected `CreateTrainingJob`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// Billed seconds; absent until the bill is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billable_seconds: Option<u64>,
    /// Cost; absent until it is booked.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<MicroUsd>,
    /// Whether the whole reservation was booked because no bill arrived.
    pub settled_in_full: bool,
}

/// One event or decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Entry {
    /// Number of the step that recorded it; absent for results that arrived too late for any step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Time of that step.
    #[serde(with = "seconds")]
    pub time: i64,
    /// Kind of the entry.
    pub kind: Kind,
    /// The event or decision and its reason in one sentence.
    pub says: String,
    /// Name of the training job; absent if the entry concerns the whole trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_job_name: Option<String>,
    /// The comparison at a rung; absent for other entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<Box<Comparison>>,
    /// Values that arrived after the decision and had no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_values: Vec<EpochValue>,
}

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A training job was ordered.
    JobOrdered,
    /// The instances of a training job began to run.
    JobStarted,
    /// A spot interruption took the instances of a training job.
    JobInterrupted,
    /// An action was deferred.
    Deferred,
    /// The trial was compared with others at a rung.
    Judged,
    /// The trial reached the level of its rung and waits for promotion.
    RungReached,
    /// The trial was promoted to the next rung, in a new training job.
    Promoted,
    /// A training job did not resume from the checkpoint of the trial.
    ResourceRepeated,
    /// A training job was ordered to stop.
    StopOrdered,
    /// A read of the stored log of a training job was ordered.
    LogReadOrdered,
    /// A read of the bill of a training job was ordered.
    BillOrdered,
    /// The bill of a training job was booked after its conclusion, or a higher bill replaced it.
    BillBooked,
    /// More was reserved for a training job that lasts longer than its reservation pays for.
    ReservationExtended,
    /// No bill arrived, so the whole reservation was booked.
    SettledInFull,
    /// The cost of a warm pool was booked, or the release of its instances was ordered.
    InstancesKept,
    /// A training job ended, and its trial waits for a further attempt.
    AttemptAwaited,
    /// Results arrived after the decision.
    LateResults,
    /// The trial is over.
    TrialFinished,
}

/// The comparison of the trial with the others that had arrived at a rung.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Comparison {
    /// Bracket.
    pub bracket: BracketId,
    /// Rung in the bracket (0 = lowest).
    pub rung: RungId,
    /// The rung's level, in epochs.
    pub level: Epochs,
    /// The epoch whose value was compared.
    pub epoch: Epochs,
    /// Relation of that epoch to the level.
    pub compared: Compared,
    /// The compared value; null = not a finite number.
    pub value: Option<f64>,
    /// 1 = best.
    pub rank: u32,
    /// Trials that had arrived, this one included.
    pub arrived: u32,
    /// Number of arrived trials that may continue.
    pub allowed: u32,
    /// Whether this trial continued.
    pub went_on: bool,
    /// The rule of the comparison, with its numbers.
    pub rule: String,
    /// All trials that had arrived, best first, this one included.
    pub arrivals: Vec<ArrivalView>,
    /// Cost of the trial up to the comparison.
    pub cost: CostSoFar,
}

/// The epoch whose value was compared at a rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Compared {
    /// The epoch of the level.
    AtLevel,
    /// The first epoch above the level.
    Late,
    /// An epoch before the level: that of the best value so far, or the last one of a program that ended there.
    Earlier,
}

/// A trial at a rung.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ArrivalView {
    /// 1 = best.
    pub rank: u32,
    /// Number of the trial.
    pub trial: TrialId,
    /// Value of the trial; null = not a finite number.
    pub value: Option<f64>,
    /// Whether the trial continued.
    pub went_on: bool,
}

/// Cost of a trial up to a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CostSoFar {
    /// Billed seconds of ended jobs.
    pub billed_seconds: u64,
    /// Booked cost of ended jobs; absent without a price.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    pub billed_usd: Option<MicroUsd>,
    /// Estimated seconds of the job without a bill; absent if every job has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_seconds: Option<u64>,
    /// Estimated cost of those seconds; absent without a price.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    pub estimated_usd: Option<MicroUsd>,
}

/// A value at an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct EpochValue {
    /// The epoch; absent if the log line has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Epochs>,
    /// The value; null = not a finite number.
    pub value: Option<f64>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Readers of the JSON depend on these names.
    #[test]
    fn members_have_their_names_in_json() {
        let compared = Comparison {
            bracket: BracketId(0),
            rung: RungId(1),
            level: Epochs(3),
            epoch: Epochs(4),
            compared: Compared::Late,
            value: None,
            rank: 1,
            arrived: 1,
            allowed: 1,
            went_on: false,
            rule: "rule".to_owned(),
            arrivals: vec![ArrivalView { rank: 1, trial: TrialId(7), value: None, went_on: false }],
            cost: CostSoFar { billed_usd: Some(MicroUsd(500_000)), ..CostSoFar::default() },
        };
        let entry = Entry {
            step: Some(3),
            time: 1_500,
            kind: Kind::Judged,
            says: "says".to_owned(),
            training_job_name: Some("t-abc123-7-0-1".to_owned()),
            rung: Some(Box::new(compared)),
            late_values: vec![EpochValue { epoch: Some(Epochs(5)), value: Some(0.5) }],
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
            trial: TrialId(7),
            definition: None,
            bracket: BracketId(0),
            rungs: vec![Epochs(1), Epochs(3)],
            rung_execution: Some("Stop".to_owned()),
            drawn: "at random".to_owned(),
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
            "RungExecution": "Stop",
            "Drawn": "at random",
            "TunedHyperParameters": {"lr": "0.5"},
            "MetricName": "auc",
            "Type": "Maximize",
            "TrainingJobs": [],
            "Entries": [],
        });
        assert_eq!(serde_json::to_value(&explanation).unwrap(), expected);
    }
}
