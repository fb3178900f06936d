//! The summary of a training job, as it is stored when the job leaves the state, and as describe shows a running one.

use search::Configuration;
use serde::{Deserialize, Serialize};

use crate::definition::JobLimits;
use crate::fact::{JobEnd, JobKey, JobPhase};
use crate::money::MicroUsd;
use crate::ruling::StopWhy;

/// A training job at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSummary {
    /// The job.
    pub job: JobKey,
    /// Bracket of its trial.
    pub bracket: u32,
    /// Its tuned hyperparameters.
    pub configuration: Configuration,
    /// Its last known state.
    pub phase: JobPhase,
    /// How it ended; `None` while it runs, or when it never started.
    pub end: Option<JobEnd>,
    /// When it was ordered, ms.
    pub ordered: i64,
    /// When its instances began to run.
    pub started: Option<i64>,
    /// When they ceased to.
    pub ended: Option<i64>,
    /// Why we stopped it.
    pub stop: Option<StopWhy>,
    /// Failure or refusal.
    pub message: Option<String>,
    /// Whether it never started.
    pub never_started: bool,
    /// The last value it emitted.
    pub last_value: Option<f64>,
    /// The best value it emitted.
    pub best_value: Option<f64>,
    /// Epochs its trial has reached.
    pub resource: u32,
    /// Rungs its trial has passed.
    pub rungs_passed: u32,
    /// The epochs to which it trains or trained, where trials are promoted; `None` = the largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// The epochs with which it went on, where its trial had been promoted; `None` before its first value, and if it did
    /// not go on from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<u32>,
    /// The epochs with which it began although its trial had been promoted with more: these were trained again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats_from: Option<u32>,
    /// Limits sent.
    pub limits: JobLimits,
    /// Whether it ran on demand although the request asks for spot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_demand: bool,
    /// Which of the request's choices of instances it ran on: 0 = the first.
    #[serde(default)]
    pub instances: u32,
    /// What it may cost at most; what it costs once billed.
    pub reservation: MicroUsd,
    /// Seconds billed, once known.
    pub billable_seconds: Option<u64>,
    /// What it cost, once known.
    pub cost: Option<MicroUsd>,
    /// Seconds for which its instances were kept afterwards, once known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retained_seconds: Option<u64>,
    /// What that cost, once booked; without seconds it is the whole reservation for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retained_cost: Option<MicroUsd>,
    /// Whether the bill never came and the reservation was taken in full.
    pub settled_in_full: bool,
    /// Interruptions so far.
    pub interruptions: u32,
    /// (epoch, value) of its trial, thinned to at most 200 points when the job is over.
    pub curve: Vec<(u32, Option<f64>)>,
}
