//! From the request to the JSON of `CreateTrainingJob`.
//!
//! Everything of the training job definition is passed on as it came; nothing of `Controller` is, wherever it was given. Assumes a checked
//! request: a tuned parameter overrides no static one.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tuning::definition::JobLimits;
use tuning::ruling::Launch;

use super::{DEFINITION, OBJECTIVE_HYPERPARAMETER, Request, lift};
use crate::algorithm::StoppedModel;
use crate::describe::Model;

/// Members of a training job definition that a training job has not, or that are made anew.
const NOT_PASSED: &[&str] = &[
    "DefinitionName",
    "TuningObjective",
    "HyperParameterRanges",
    "StaticHyperParameters",
    "HyperParameterTuningResourceConfig",
    "ResourceConfig",
];
/// How long instances are kept after a job.
const KEEP_ALIVE: &str = "KeepAlivePeriodInSeconds";
/// Where SageMaker puts checkpoints in the container, unless told otherwise.
const CHECKPOINTS: &str = "/opt/ml/checkpoints";

/// One training job to be created.
#[derive(Debug, Clone, Copy)]
pub struct TrainingJob<'a> {
    /// `TrainingJobName`.
    pub name: &'a str,
    /// The tuning's id (name and incarnation): checkpoints of two tunings of one name lie apart.
    pub tuning_id: &'a str,
    /// Number of the trial: all its attempts have the same checkpoints.
    pub trial: u32,
    /// The tuned hyperparameters.
    pub configuration: &'a BTreeMap<String, String>,
    /// The limits to send.
    pub limits: JobLimits,
    /// Our tags.
    pub tags: &'a BTreeMap<String, String>,
    /// Hyperparameter that sets the epochs, and their number.
    pub resource: Option<(&'a str, u32)>,
    /// What else is not as the request says.
    pub launch: Launch,
}

impl Request {
    /// The request for a training job.
    pub fn create_training_job(&self, job: &TrainingJob<'_>) -> Value {
        let mut members = self.object(DEFINITION).cloned().unwrap_or_default();
        for name in NOT_PASSED {
            members.remove(*name);
        }
        if let Some(Value::Object(variables)) = members.get_mut("Environment") {
            variables.retain(|name, _| !lift::is_variable(name));
            if variables.is_empty() {
                members.remove("Environment");
            }
        }
        members.insert("TrainingJobName".to_owned(), json!(job.name));
        members.insert("HyperParameters".to_owned(), Value::Object(self.hyperparameters(job)));
        let mut resources = self.resource_config(job.launch.instances);
        // Not after every job.
        if resources.remove(KEEP_ALIVE).is_some() && job.limits.keep_alive_seconds > 0 {
            resources.insert(KEEP_ALIVE.to_owned(), json!(job.limits.keep_alive_seconds));
        }
        members.insert("ResourceConfig".to_owned(), Value::Object(resources));
        if job.launch.on_demand {
            members.insert("EnableManagedSpotTraining".to_owned(), json!(false));
        }
        members.insert("StoppingCondition".to_owned(), self.stopping_condition(job.limits));
        if let Some(Value::Object(checkpoints)) = members.get_mut("CheckpointConfig") {
            let prefix = self.checkpoint_uri().unwrap_or_default().trim_end_matches('/');
            let uri = if tuning::planted!(CheckpointPrefixOfAttempt) {
                format!("{prefix}/{}/{}/", job.tuning_id, job.name)
            } else {
                format!("{prefix}/{}/{:05}/", job.tuning_id, job.trial)
            };
            checkpoints.insert("S3Uri".to_owned(), Value::String(uri));
            checkpoints.entry("LocalPath").or_insert_with(|| json!(CHECKPOINTS));
        }
        members.insert("Tags".to_owned(), self.all_tags(job.tags));
        Value::Object(members)
    }

    fn hyperparameters(&self, job: &TrainingJob<'_>) -> Map<String, Value> {
        let mut all = self.static_hyperparameters().cloned().unwrap_or_default();
        all.extend(job.configuration.iter().map(|(name, value)| (name.clone(), json!(value))));
        all.insert(OBJECTIVE_HYPERPARAMETER.to_owned(), json!(self.objective_metric()));
        if let Some((name, epochs)) = job.resource {
            all.insert(name.to_owned(), json!(epochs.to_string()));
        }
        if let Some(StoppedModel::With(name)) = self.built_in().map(|algorithm| algorithm.stopped_model) {
            all.entry(name).or_insert_with(|| json!("true"));
        }
        all
    }

    /// `ResourceConfig` from whichever form the request has, with the instances of choice `index`.
    pub(crate) fn resource_config(&self, index: u32) -> Map<String, Value> {
        if let Some(given) = self.object("TrainingJobDefinition.ResourceConfig") {
            return given.clone();
        }
        let mut made = Map::new();
        let choices = self.instance_choices();
        let chosen = usize::try_from(index).ok().and_then(|index| choices.get(index)).or(choices.last());
        if let Some(chosen) = chosen {
            made.insert("InstanceType".to_owned(), json!(chosen.instance_type));
            made.insert("InstanceCount".to_owned(), json!(chosen.count));
            made.insert("VolumeSizeInGB".to_owned(), json!(chosen.volume_gib));
        }
        if let Some(key) = self.at("TrainingJobDefinition.HyperParameterTuningResourceConfig.VolumeKmsKeyId")
        {
            made.insert("VolumeKmsKeyId".to_owned(), key.clone());
        }
        made
    }

    fn stopping_condition(&self, limits: JobLimits) -> Value {
        let mut condition = json!({"MaxRuntimeInSeconds": limits.max_runtime_seconds});
        if let Some(wait) = limits.max_wait_seconds {
            condition["MaxWaitTimeInSeconds"] = json!(wait);
        }
        if let Some(pending) = self.at("TrainingJobDefinition.StoppingCondition.MaxPendingTimeInSeconds") {
            condition["MaxPendingTimeInSeconds"] = pending.clone();
        }
        condition
    }

    /// Whether a training job that is stopped leaves a model.
    pub fn model_of_stopped(&self) -> Model {
        match self.built_in().map(|algorithm| algorithm.stopped_model) {
            Some(StoppedModel::None) => Model::None,
            Some(StoppedModel::With(name)) => match self.static_hyperparameter(name) {
                None | Some("true") => Model::Left,
                Some(_) => Model::None,
            },
            Some(StoppedModel::Unknown) | None => Model::IfSaved,
        }
    }

    /// The user's tags in their order, then ours.
    fn all_tags(&self, ours: &BTreeMap<String, String>) -> Value {
        let ours = ours.iter().map(|(key, value)| json!({"Key": key, "Value": value}));
        Value::Array(self.job_tags().cloned().chain(ours).collect())
    }
}
