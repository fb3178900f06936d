//! Parses a `CreateTrainingJob` request, with the checks and messages of SageMaker.
//!
//! The JSON is untrusted. Unknown fields are accepted, and the record keeps them. Does not access the disk.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use wire::constraint;
use wire::request::RequestError;

pub(crate) const TAGS_MAX: usize = 50;
const RUNTIME_SECONDS_DEFAULT: u64 = 86_400;

/// The message of a `ValidationException`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invalid(pub(crate) String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobRequest {
    pub(crate) name: String,
    pub(crate) hyperparameters: BTreeMap<String, String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) instance_type: String,
    pub(crate) instance_count: u32,
    pub(crate) spot: bool,
    /// How long the warm pool is retained after the job; 0 for spot jobs.
    pub(crate) keep_alive_seconds: u64,
    pub(crate) max_runtime_seconds: u64,
    /// `None` for on-demand jobs.
    pub(crate) max_wait_seconds: Option<u64>,
    pub(crate) checkpoint_uri: Option<String>,
    pub(crate) input_mode: String,
    pub(crate) channels: Vec<Channel>,
}

/// One entry of `InputDataConfig`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Channel {
    pub(crate) name: String,
    pub(crate) uri: String,
    pub(crate) sharded: bool,
    pub(crate) content_type: Option<String>,
    pub(crate) record_wrapper: String,
}

impl From<RequestError> for Invalid {
    fn from(error: RequestError) -> Self {
        Self(error.message)
    }
}

impl From<serde_json::Error> for Invalid {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

/// The fields of a request that the service reads. The rows of [`constraint::check_training_job`] have the bounds.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Fields {
    training_job_name: String,
    hyper_parameters: Option<BTreeMap<String, String>>,
    environment: Option<BTreeMap<String, String>>,
    algorithm_specification: AlgorithmSpecification,
    input_data_config: Option<Vec<InputData>>,
    resource_config: ResourceConfig,
    enable_managed_spot_training: Option<bool>,
    stopping_condition: Option<StoppingCondition>,
    checkpoint_config: Option<CheckpointConfig>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AlgorithmSpecification {
    training_input_mode: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct InputData {
    channel_name: String,
    data_source: DataSource,
    content_type: Option<String>,
    record_wrapper_type: Option<String>,
}

#[derive(Deserialize)]
struct DataSource {
    #[serde(rename = "S3DataSource")]
    s3: S3DataSource,
}

#[derive(Deserialize)]
struct S3DataSource {
    #[serde(rename = "S3Uri")]
    uri: String,
    #[serde(rename = "S3DataDistributionType")]
    distribution: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ResourceConfig {
    instance_type: String,
    instance_count: u32,
    keep_alive_period_in_seconds: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StoppingCondition {
    max_runtime_in_seconds: Option<u64>,
    max_wait_time_in_seconds: Option<u64>,
}

#[derive(Deserialize)]
struct CheckpointConfig {
    #[serde(rename = "S3Uri")]
    uri: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Tagged {
    tags: Option<Vec<Tag>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Tag {
    key: String,
    value: String,
}

impl JobRequest {
    pub(crate) fn parse(request: &Value) -> Result<Self, Invalid> {
        constraint::check_training_job(request)?;
        let fields = Fields::deserialize(request)?;
        let spot = fields.enable_managed_spot_training.unwrap_or(false);
        let (max_runtime_seconds, max_wait_seconds) =
            stopping(&fields.stopping_condition.unwrap_or_default(), spot)?;
        let resources = fields.resource_config;
        Ok(Self {
            name: fields.training_job_name,
            hyperparameters: fields.hyper_parameters.unwrap_or_default(),
            environment: fields.environment.unwrap_or_default(),
            tags: unique_tags(request)?,
            instance_type: resources.instance_type,
            instance_count: resources.instance_count,
            spot,
            keep_alive_seconds: keep_alive(resources.keep_alive_period_in_seconds.unwrap_or(0), spot)?,
            max_runtime_seconds,
            max_wait_seconds,
            checkpoint_uri: fields.checkpoint_config.map(|config| config.uri),
            input_mode: fields
                .algorithm_specification
                .training_input_mode
                .unwrap_or_else(|| "File".to_owned()),
            channels: channels(fields.input_data_config.unwrap_or_default())?,
        })
    }

    /// Returns the host names: `algo-1`, `algo-2`, …
    pub(crate) fn hosts(&self) -> Vec<String> {
        (1..=self.instance_count).map(|number| format!("algo-{number}")).collect()
    }
}

fn duplicate(value: &str, member: &str, rule: &str) -> Invalid {
    Invalid(format!(
        "1 validation error detected: Value '{value}' at '{member}' failed to satisfy constraint: Member must {rule}"
    ))
}

pub(crate) fn tags(request: &Value) -> Result<BTreeMap<String, String>, Invalid> {
    constraint::check_tags(request)?;
    unique_tags(request)
}

fn unique_tags(request: &Value) -> Result<BTreeMap<String, String>, Invalid> {
    let mut found = BTreeMap::new();
    for Tag { key, value } in Tagged::deserialize(request)?.tags.unwrap_or_default() {
        if found.contains_key(&key) {
            return Err(duplicate(&key, "tags", "have each key once"));
        }
        found.insert(key, value);
    }
    Ok(found)
}

fn keep_alive(seconds: u64, spot: bool) -> Result<u64, Invalid> {
    if seconds > 0 && spot {
        return Err(Invalid(
            "Invalid KeepAlivePeriodInSeconds. It is not supported when EnableManagedSpotTraining is set to true"
                .to_owned(),
        ));
    }
    Ok(seconds)
}

fn stopping(condition: &StoppingCondition, spot: bool) -> Result<(u64, Option<u64>), Invalid> {
    let runtime = condition.max_runtime_in_seconds.unwrap_or(RUNTIME_SECONDS_DEFAULT);
    match (spot, condition.max_wait_time_in_seconds) {
        (false, Some(_)) => Err(Invalid(
            "Invalid MaxWaitTimeInSeconds. It is only supported when EnableManagedSpotTraining is set to true"
                .to_owned(),
        )),
        (true, None) => Err(Invalid(
            "Invalid MaxWaitTimeInSeconds. It is required when EnableManagedSpotTraining is set to true".to_owned(),
        )),
        (true, Some(wait)) if wait < runtime => Err(Invalid(format!(
            "Invalid MaxWaitTimeInSeconds {wait}. It must be present and be greater than or equal to \
             MaxRuntimeInSeconds {runtime}"
        ))),
        (_, wait) => Ok((runtime, wait)),
    }
}

fn channels(listed: Vec<InputData>) -> Result<Vec<Channel>, Invalid> {
    let mut found: Vec<Channel> = Vec::new();
    for entry in listed {
        if found.iter().any(|other| other.name == entry.channel_name) {
            return Err(duplicate(&entry.channel_name, "inputDataConfig", "have each channel name once"));
        }
        let source = entry.data_source.s3;
        found.push(Channel {
            name: entry.channel_name,
            uri: source.uri,
            sharded: source.distribution.as_deref() == Some("ShardedByS3Key"),
            content_type: entry.content_type,
            record_wrapper: entry.record_wrapper_type.unwrap_or_else(|| "None".to_owned()),
        });
    }
    Ok(found)
}
