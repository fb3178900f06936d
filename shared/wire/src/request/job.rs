//! Converts a request to the JSON of `CreateTrainingJob`.
//!
//! The training job gets every field of the training job definition unchanged, and no field of `Controller`, even if a
//! tag or a variable sets it. The request must be validated: no hyperparameter is both tuned and static.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tuning::definition::{INSTANCE_COUNT, JobLimits};
use tuning::log::ruling::Launch;
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::ChoiceId;

use super::{DEFINITION, OBJECTIVE_HYPERPARAMETER, Request};
use crate::algorithm::StoppedModel;
use crate::describe::Model;
use crate::names::VARIABLE_PREFIX;

/// Fields of a training job definition that `CreateTrainingJob` lacks, or that are computed for each training job.
const NOT_COPIED: &[&str] = &[
    "DefinitionName",
    "TuningObjective",
    "HyperParameterRanges",
    "StaticHyperParameters",
    "HyperParameterTuningResourceConfig",
    "ResourceConfig",
];
/// Field with the seconds for which SageMaker keeps instances after a job.
const KEEP_ALIVE: &str = "KeepAlivePeriodInSeconds";
/// Default directory of checkpoints in SageMaker's containers.
const CHECKPOINTS: &str = "/opt/ml/checkpoints";

/// The variable that makes Python write each line of its output at once, and its value. Python buffers the output of a
/// container, so an epoch's value would arrive when the program ends.
const UNBUFFERED: (&str, &str) = ("PYTHONUNBUFFERED", "1");

/// The variable with the name of the training job definition, where the request has a list of them: one program may serve all.
pub const DEFINITION_VARIABLE: &str = "SM_DEFINITION_NAME";

/// Parameters of one training job.
#[derive(Debug, Clone, Copy)]
pub struct TrainingJob<'a> {
    /// `TrainingJobName`.
    pub name: &'a str,
    /// Tuning ID (name and incarnation). It separates the checkpoints of two tunings with the same name.
    pub tuning_id: &'a str,
    /// Number of the trial. All attempts of a trial share its checkpoints.
    pub trial: u32,
    /// The tuned hyperparameters, by name.
    pub configuration: &'a BTreeMap<String, String>,
    /// Time limits of the training job.
    pub limits: JobLimits,
    /// The controller's own tags, by key.
    pub tags: &'a BTreeMap<String, String>,
    /// Name of the hyperparameter that sets the number of epochs, and that number; `None` = the request sets it.
    pub resource: Option<(&'a str, Epochs)>,
    /// Choice of instances and other deviations from the request.
    pub launch: Launch,
}

impl Request {
    /// Returns the body of `CreateTrainingJob`.
    pub fn create_training_job(&self, job: &TrainingJob<'_>) -> Value {
        let (own, instances) = self.with_choice(job.trial, job.launch.instances);
        own.create_own(
            &TrainingJob { launch: Launch { instances, ..job.launch }, ..*job },
            self.has_definition_list(),
        )
    }

    fn create_own(&self, job: &TrainingJob<'_>, is_of_list: bool) -> Value {
        let mut members = self.object(DEFINITION).cloned().unwrap_or_default();
        let mut variables = match members.remove("Environment") {
            Some(Value::Object(variables)) => variables,
            _ => Map::new(),
        };
        variables.retain(|name, _| !name.starts_with(VARIABLE_PREFIX));
        if self.adds_unbuffered() {
            variables.insert(UNBUFFERED.0.to_owned(), json!(UNBUFFERED.1));
        }
        if let Some(name) = members.get("DefinitionName").filter(|_| is_of_list) {
            variables.insert(DEFINITION_VARIABLE.to_owned(), name.clone());
        }
        for name in NOT_COPIED {
            members.remove(*name);
        }
        if !variables.is_empty() {
            members.insert("Environment".to_owned(), Value::Object(variables));
        }
        members.insert("TrainingJobName".to_owned(), json!(job.name));
        members.insert("HyperParameters".to_owned(), Value::Object(self.hyperparameters(job)));
        let mut resources = self.resource_config(job.launch.instances);
        // Only the jobs for which the decider reserved the money keep their instances.
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
            let uri = format!("{prefix}/{}/{:05}/", job.tuning_id, job.trial);
            checkpoints.insert("S3Uri".to_owned(), Value::String(uri));
            checkpoints.entry("LocalPath").or_insert_with(|| json!(CHECKPOINTS));
        }
        name_runs(&mut members, job);
        members.insert("Tags".to_owned(), self.all_tags(job.tags));
        Value::Object(members)
    }

    /// Returns whether training jobs get `PYTHONUNBUFFERED`: unless the request sets the variable, or its algorithm is built
    /// in.
    pub fn adds_unbuffered(&self) -> bool {
        let given = self.at(&format!("{DEFINITION}.Environment.{}", UNBUFFERED.0));
        given.is_none() && self.built_in().is_none()
    }

    fn hyperparameters(&self, job: &TrainingJob<'_>) -> Map<String, Value> {
        let mut all = self.static_hyperparameters().cloned().unwrap_or_default();
        let count = self.own_choices().get(job.launch.instances.index()).map_or(1, |choice| choice.count);
        let tuned = job.configuration.iter().filter(|(name, _)| !self.is_instance_count(name));
        all.extend(tuned.map(|(name, value)| (name.clone(), json!(value))));
        for name in self.scaled_hyperparameters() {
            if let Some(product) = all.get(name).and_then(Value::as_str).and_then(|value| times(value, count))
            {
                all.insert(name.clone(), json!(product));
            }
        }
        all.insert(OBJECTIVE_HYPERPARAMETER.to_owned(), json!(self.objective_metric()));
        if let Some((name, epochs)) = job.resource {
            all.insert(name.to_owned(), json!(epochs.to_string()));
        }
        if let Some(StoppedModel::With(name)) = self.built_in().map(|algorithm| algorithm.stopped_model) {
            all.entry(name).or_insert_with(|| json!("true"));
        }
        all
    }

    /// Returns `ResourceConfig` from either form in the request, with the instances of choice `index`.
    pub(crate) fn resource_config(&self, choice: ChoiceId) -> Map<String, Value> {
        let choices = self.own_choices();
        let chosen = choices.get(choice.index()).or(choices.last());
        if let Some(given) = self.object("TrainingJobDefinition.ResourceConfig") {
            let mut given = given.clone();
            if let Some(chosen) = chosen.filter(|_| !self.instance_counts().is_empty()) {
                given.insert("InstanceCount".to_owned(), json!(chosen.count));
            }
            return given;
        }
        let mut made = Map::new();
        if let Some(chosen) = chosen {
            made.insert("InstanceType".to_owned(), json!(chosen.instance_type));
            made.insert("InstanceCount".to_owned(), json!(chosen.count));
            made.insert("VolumeSizeInGB".to_owned(), json!(chosen.volume_gib));
        }
        if let Some(key) = &self.fields.job.tuning_resources.volume_kms_key_id {
            made.insert("VolumeKmsKeyId".to_owned(), json!(key));
        }
        made
    }

    /// Returns whether a parameter of the space is the number of instances, and no hyperparameter.
    fn is_instance_count(&self, name: &str) -> bool {
        name == INSTANCE_COUNT && !self.instance_counts().is_empty()
    }

    fn stopping_condition(&self, limits: JobLimits) -> Value {
        let mut condition = json!({"MaxRuntimeInSeconds": limits.max_runtime_seconds});
        if let Some(wait) = limits.max_wait_seconds {
            condition["MaxWaitTimeInSeconds"] = json!(wait);
        }
        if let Some(pending) = self.fields.job.stopping_condition.pending {
            condition["MaxPendingTimeInSeconds"] = json!(pending);
        }
        condition
    }

    /// Returns whether a stopped training job leaves a model.
    pub fn stopped_job_model(&self) -> Model {
        match self.built_in().map(|algorithm| algorithm.stopped_model) {
            Some(StoppedModel::None) => Model::None,
            Some(StoppedModel::With(name)) => match self.static_hyperparameter(name) {
                None | Some("true") => Model::Left,
                Some(_) => Model::None,
            },
            Some(StoppedModel::Unknown) | None => Model::IfSaved,
        }
    }

    /// Returns all tags of the request by key, also those that set fields of `Controller`.
    pub fn sent_tags(&self) -> BTreeMap<String, String> {
        let pair = |tag: &super::fields::Tag| Some((tag.key.clone()?, tag.value.clone()?));
        self.fields.tags.iter().filter_map(pair).collect()
    }

    /// Returns the user's tags in their order, then the controller's.
    fn all_tags(&self, ours: &BTreeMap<String, String>) -> Value {
        let ours = ours.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        self.job_tags().chain(ours).map(|(key, value)| json!({"Key": key, "Value": value})).collect()
    }
}

/// Returns a number times a count: an integer stays one. `None` if the text is no number, or the product has no value.
pub(crate) fn times(number: &str, count: u32) -> Option<String> {
    if let Ok(integer) = number.parse::<i64>() {
        return integer.checked_mul(i64::from(count)).map(|product| product.to_string());
    }
    let product = number.parse::<f64>().ok()? * f64::from(count);
    product.is_finite().then(|| product.to_string())
}

/// Gives each trial its own run in the trackers that the request names. A given name of the run is the prefix.
fn name_runs(members: &mut Map<String, Value>, job: &TrainingJob<'_>) {
    for (tracker, run) in
        [("ExperimentConfig", "TrialComponentDisplayName"), ("MlflowConfig", "MlflowRunName")]
    {
        let Some(Value::Object(config)) = members.get_mut(tracker) else { continue };
        let prefix = config.get(run).and_then(Value::as_str).unwrap_or(job.tuning_id);
        let name = format!("{prefix}-{}", job.trial);
        config.insert(run.to_owned(), Value::String(name));
    }
}
