//! Training jobs in the responses of Describe and List.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tuning::definition::Objective;
use tuning::unit::money::MicroUsd;

use super::finite;
use crate::shape::{optional_dollars, optional_seconds, seconds};

/// A training job: an entry of `TrainingJobSummaries`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct TrainingJobSummary {
    /// `TrainingJobName`.
    #[serde(rename = "TrainingJobName")]
    pub name: String,
    /// `TrainingJobArn`.
    #[serde(rename = "TrainingJobArn")]
    pub arn: String,
    /// Time of creation; in JSON, seconds since the epoch.
    #[serde(rename = "CreationTime", with = "seconds")]
    #[schemars(with = "f64")]
    pub created_ms: i64,
    /// Time when training and billing began; in JSON, seconds since the epoch.
    #[serde(rename = "TrainingStartTime")]
    #[serde(with = "optional_seconds", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub started_ms: Option<i64>,
    /// Time when training and billing ended; in JSON, seconds since the epoch.
    #[serde(rename = "TrainingEndTime")]
    #[serde(with = "optional_seconds", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub ended_ms: Option<i64>,
    /// `TrainingJobStatus`.
    #[serde(rename = "TrainingJobStatus")]
    pub status: String,
    /// The tuned hyperparameters, by name.
    #[serde(rename = "TunedHyperParameters")]
    pub tuned: BTreeMap<String, String>,
    /// `ObjectiveStatus`.
    pub objective_status: String,
    /// Reason of a failure, see [`failure_reason`](super::failure_reason).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// The last value of the objective.
    #[serde(rename = "FinalHyperParameterTuningJobObjectiveMetric", skip_serializing_if = "Option::is_none")]
    pub final_objective: Option<FinalObjective>,
    /// Name of the tuning job that launched it; only in `OverallBestTrainingJob`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning_job_name: Option<String>,
    /// `DefinitionName` of its training job definition, if the request has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_job_definition_name: Option<String>,
    /// The data that AMT's response lacks.
    pub controller: JobController,
}

/// `FinalHyperParameterTuningJobObjectiveMetric`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct FinalObjective {
    /// Direction of the objective. AMT shows it only for the best job.
    #[serde(rename = "Type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub direction: Option<Objective>,
    /// Name of the metric.
    pub metric_name: String,
    /// The value.
    pub value: f64,
}

impl FinalObjective {
    /// Returns the last value without a direction; `None` if the job emitted no value that JSON has.
    pub fn new(metric: &str, value: Option<f64>) -> Option<Self> {
        let value = value.and_then(finite)?;
        Some(Self { direction: None, metric_name: metric.to_owned(), value })
    }
}

/// `Controller` of a training job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct JobController {
    /// The trial.
    pub trial: u32,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The bracket of the trial.
    pub bracket: u32,
    /// The epochs that the trial has trained.
    pub resource: u32,
    /// The detailed status: how it ended, or its current phase.
    pub state: String,
    /// The rung at which the training job ends; `None` without promotion, like the next three members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rung: Option<u32>,
    /// The level of that rung, in epochs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// The epochs of the checkpoint from which it resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<u32>,
    /// The epochs at which it began, if that is fewer than its trial had reached when it was promoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated_from: Option<u32>,
    /// `BillableTimeInSeconds`, once known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub billable_seconds: Option<u64>,
    /// The best value of the objective so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_value: Option<f64>,
    /// Reason of a stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The reservation for its bill.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub reserved_usd: Option<MicroUsd>,
    /// The booked cost; `None` until the bill is booked.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub cost_usd: Option<MicroUsd>,
    /// Whether the best training job left a model: a word of [`Model`]; `None` for other jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The last values of the metrics beside the objective, once it has ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
}

/// A training job with its curve.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct TrainingJobDetail {
    /// The members that a list shows too.
    #[serde(flatten)]
    pub job: TrainingJobSummary,
    /// The curve of its trial, at most 201 points.
    pub curve: Vec<CurvePoint>,
}

/// A point of a learning curve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct CurvePoint {
    /// The epoch.
    pub resource: u32,
    /// The value of the objective; `None` if it was no finite number.
    pub value: Option<f64>,
}

/// A page of `ListTrainingJobsForHyperParameterTuningJob`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct TrainingJobPage {
    /// The training jobs.
    #[serde(rename = "TrainingJobSummaries")]
    pub jobs: Vec<TrainingJobSummary>,
    /// Token of the next page; `None` on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_token: Option<String>,
}

/// Whether a training job left a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// It completed, or its algorithm saves a model when it is stopped.
    Left,
    /// It failed, or its algorithm saves no model when it is stopped.
    None,
    /// It was stopped and left a model only if its program had saved one.
    IfSaved,
}

impl Model {
    /// Returns the value of `Controller.Model` of the best training job.
    pub fn word(self) -> &'static str {
        match self {
            Self::Left => "Left",
            Self::None => "None",
            Self::IfSaved => "IfSaved",
        }
    }
}
