//! What a training costs, in the response of Describe: the front of value against cost, and the cluster sizes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tuning::unit::money::MicroUsd;

use crate::shape::optional_dollars;

/// What a training of all epochs costs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase", default)]
pub struct Costs {
    /// The cluster sizes, ascending; empty unless the search chooses them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cluster_sizes: Vec<ClusterSize>,
    /// The trials of which no other has a value as good and a training as cheap, the best value first; empty before the
    /// first training job that counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub front: Vec<FrontTrial>,
    /// The cheapest trial whose value is within `ValueTolerance` of the best one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_buy: Option<Box<FrontTrial>>,
}

/// A trial of the front of value against cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct FrontTrial {
    /// Its latest training job that counts.
    pub training_job_name: String,
    /// The trial.
    pub trial: u32,
    /// Its best value at any epoch.
    pub value: f64,
    /// The epoch of that value.
    pub resource: u32,
    /// Instances of its training jobs.
    pub instance_count: u32,
    /// Billed time of a training to `MaxResource`, in seconds: the median start-up, all epochs in the time that this trial
    /// needs for one, and the median end. Without `MaxResource`, or if that is 1, the running time of its training job.
    /// `None` before the trial shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_per_training: Option<f64>,
    /// Cost of that time on the first instance type.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub usd_per_training: Option<MicroUsd>,
    /// Whether its pace is measured over all epochs. Otherwise, its time is predicted.
    pub measured: bool,
    /// Its hyperparameters.
    pub tuned_hyper_parameters: BTreeMap<String, String>,
}

/// What the trials of one cluster size have shown, where the search chooses it; or those of one of several training job
/// definitions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct ClusterSize {
    /// `DefinitionName`, with several training job definitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_job_definition_name: Option<String>,
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
