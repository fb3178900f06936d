//! The cluster sizes of a tuning job in the response of Describe.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tuning::unit::money::MicroUsd;

use crate::shape::optional_dollars;

/// What the trials of one cluster size have shown, where the search chooses it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct ClusterSize {
    /// Instances of a training job.
    pub instance_count: u32,
    /// Trials that were started.
    pub trials: u32,
    /// The best value at any epoch of a trial whose training job counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_value: Option<f64>,
    /// Median time of an epoch, in seconds; `None` before a training job of this size has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_per_epoch: Option<f64>,
    /// Cost of that time on the first instance type.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub usd_per_epoch: Option<MicroUsd>,
    /// Predicted billed time of a training to `MaxResource`, in seconds: the median start-up, all epochs, and the median
    /// end. `None` without `MaxResource`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_per_training: Option<f64>,
    /// Cost of that time on the first instance type.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub usd_per_training: Option<MicroUsd>,
    /// Time of an epoch on one instance, divided by that on this size; `None` unless both are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_up: Option<f64>,
}
