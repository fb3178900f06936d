//! Parses a `CreateTrainingJob` request, with the checks and messages of SageMaker.
//!
//! The JSON is untrusted. Unknown top-level fields are accepted, and the record keeps them. Does not access the disk.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

const HYPERPARAMETERS_MAX: usize = 100;
const HYPERPARAMETER_NAME_LENGTH_MAX: usize = 256;
const HYPERPARAMETER_VALUE_LENGTH_MAX: usize = 2500;
const ENVIRONMENT_MAX: usize = 100;
const ENVIRONMENT_LENGTH_MAX: usize = 512;
pub(crate) const TAGS_MAX: usize = 50;
const CHANNELS_MAX: usize = 20;
const NAME_LENGTH_MAX: usize = 63;
/// `SageMaker`'s longest runtime, 28 days.
const RUNTIME_SECONDS_MAX: u64 = 2_419_200;
const RUNTIME_SECONDS_DEFAULT: u64 = 86_400;
/// `SageMaker`'s longest keep-alive period, 6 hours.
const KEEP_ALIVE_SECONDS_MAX: u64 = 21_600;
/// The maximum number of hosts of a job. Each host is a process and its shim.
const INSTANCES_MAX: u32 = 100;

/// The message of a `ValidationException`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invalid(pub(crate) String);

/// A validated request.
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

impl JobRequest {
    /// Validates the request.
    pub(crate) fn parse(request: &Value) -> Result<Self, Invalid> {
        let request =
            request.as_object().ok_or_else(|| Invalid("the request must be an object".to_owned()))?;
        let name = string(request, "TrainingJobName", "trainingJobName")?;
        check_name(&name)?;
        let algorithm = object(request, "AlgorithmSpecification", "algorithmSpecification")?;
        string(request, "RoleArn", "roleArn")?;
        string(
            object(request, "OutputDataConfig", "outputDataConfig")?,
            "S3OutputPath",
            "outputDataConfig.s3OutputPath",
        )?;
        let resources = object(request, "ResourceConfig", "resourceConfig")?;
        let spot = boolean(request, "EnableManagedSpotTraining")?;
        let (max_runtime_seconds, max_wait_seconds) = stopping(request, spot)?;
        Ok(Self {
            name,
            hyperparameters: hyperparameters(request)?,
            environment: environment(request)?,
            tags: tags(request)?,
            instance_type: string(resources, "InstanceType", "resourceConfig.instanceType")?,
            instance_count: instance_count(resources)?,
            spot,
            keep_alive_seconds: keep_alive(resources, spot)?,
            max_runtime_seconds,
            max_wait_seconds,
            checkpoint_uri: checkpoint_uri(request)?,
            input_mode: algorithm
                .get("TrainingInputMode")
                .and_then(Value::as_str)
                .unwrap_or("File")
                .to_owned(),
            channels: channels(request)?,
        })
    }

    /// Returns the host names: `algo-1`, `algo-2`, …
    pub(crate) fn hosts(&self) -> Vec<String> {
        (1..=self.instance_count).map(|number| format!("algo-{number}")).collect()
    }
}

fn constraint(value: &str, member: &str, rule: &str) -> Invalid {
    let start: String = value.chars().take(200).collect();
    Invalid(format!(
        "1 validation error detected: Value '{start}' at '{member}' failed to satisfy constraint: Member must {rule}"
    ))
}

fn missing(member: &str) -> Invalid {
    Invalid(format!(
        "1 validation error detected: Value null at '{member}' failed to satisfy constraint: Member must not be null"
    ))
}

fn present<'a>(from: &'a Map<String, Value>, field: &str) -> Option<&'a Value> {
    from.get(field).filter(|value| !value.is_null())
}

fn string(from: &Map<String, Value>, field: &str, member: &str) -> Result<String, Invalid> {
    let value = present(from, field).ok_or_else(|| missing(member))?;
    let text = value.as_str().ok_or_else(|| constraint(&value.to_string(), member, "be a string"))?;
    if text.is_empty() {
        return Err(constraint(text, member, "have length greater than or equal to 1"));
    }
    Ok(text.to_owned())
}

fn object<'a>(
    from: &'a Map<String, Value>,
    field: &str,
    member: &str,
) -> Result<&'a Map<String, Value>, Invalid> {
    let value = present(from, field).ok_or_else(|| missing(member))?;
    value.as_object().ok_or_else(|| constraint(&value.to_string(), member, "be an object"))
}

fn list<'a>(from: &'a Map<String, Value>, field: &str, member: &str) -> Result<&'a [Value], Invalid> {
    match present(from, field) {
        None => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(other) => Err(constraint(&other.to_string(), member, "be a list")),
    }
}

fn boolean(from: &Map<String, Value>, field: &str) -> Result<bool, Invalid> {
    match present(from, field) {
        None => Ok(false),
        Some(Value::Bool(value)) => Ok(*value),
        Some(other) => Err(constraint(&other.to_string(), field, "be a boolean")),
    }
}

fn whole(
    from: &Map<String, Value>,
    field: &str,
    member: &str,
    (low, high): (u64, u64),
) -> Result<Option<u64>, Invalid> {
    let Some(value) = present(from, field) else { return Ok(None) };
    let text = value.to_string();
    match value.as_u64() {
        Some(number) if number >= low && number <= high => Ok(Some(number)),
        Some(number) if number > high => {
            Err(constraint(&text, member, &format!("have value less than or equal to {high}")))
        }
        _ => Err(constraint(&text, member, &format!("have value greater than or equal to {low}"))),
    }
}

fn check_name(name: &str) -> Result<(), Invalid> {
    const PATTERN: &str = "[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}";
    let bytes = name.as_bytes();
    let hyphenated = bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric);
    if bytes.len() > NAME_LENGTH_MAX {
        return Err(constraint(name, "trainingJobName", "have length less than or equal to 63"));
    }
    if !hyphenated {
        let rule = format!("satisfy regular expression pattern: {PATTERN}");
        return Err(constraint(name, "trainingJobName", &rule));
    }
    Ok(())
}

fn strings(
    from: &Map<String, Value>,
    field: &str,
    member: &str,
    (entries, key, value): (usize, usize, usize),
) -> Result<BTreeMap<String, String>, Invalid> {
    if present(from, field).is_none() {
        return Ok(BTreeMap::new());
    }
    let map = object(from, field, member)?;
    if map.len() > entries {
        let rule = format!("have length less than or equal to {entries}");
        return Err(constraint(&format!("{} entries", map.len()), member, &rule));
    }
    map.iter()
        .map(|(name, content)| {
            let path = format!("{member}.{name}");
            let content =
                content.as_str().ok_or_else(|| constraint(&content.to_string(), &path, "be a string"))?;
            if name.chars().count() > key {
                return Err(constraint(name, member, &format!("have keys of length at most {key}")));
            }
            if content.chars().count() > value {
                let rule = format!("have length less than or equal to {value}");
                return Err(constraint(content, &path, &rule));
            }
            Ok((name.clone(), content.to_owned()))
        })
        .collect()
}

fn hyperparameters(request: &Map<String, Value>) -> Result<BTreeMap<String, String>, Invalid> {
    let limits = (HYPERPARAMETERS_MAX, HYPERPARAMETER_NAME_LENGTH_MAX, HYPERPARAMETER_VALUE_LENGTH_MAX);
    strings(request, "HyperParameters", "hyperParameters", limits)
}

fn environment(request: &Map<String, Value>) -> Result<BTreeMap<String, String>, Invalid> {
    let limits = (ENVIRONMENT_MAX, ENVIRONMENT_LENGTH_MAX, ENVIRONMENT_LENGTH_MAX);
    let found = strings(request, "Environment", "environment", limits)?;
    for (name, value) in &found {
        let good = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        if !good {
            let rule = "satisfy regular expression pattern: [a-zA-Z_][a-zA-Z0-9_]*";
            return Err(constraint(name, "environment", rule));
        }
        if value.contains('\0') {
            return Err(constraint(name, "environment", "not contain a NUL character"));
        }
    }
    Ok(found)
}

/// Parses the `Tags` of a request.
pub(crate) fn tags(request: &Map<String, Value>) -> Result<BTreeMap<String, String>, Invalid> {
    let listed = list(request, "Tags", "tags")?;
    if listed.len() > TAGS_MAX {
        let rule = "have length less than or equal to 50";
        return Err(constraint(&format!("{} tags", listed.len()), "tags", rule));
    }
    let mut found = BTreeMap::new();
    for tag in listed {
        let text = |field: &str| tag.get(field).and_then(Value::as_str);
        let (Some(key), Some(value)) = (text("Key"), text("Value")) else {
            return Err(constraint(&tag.to_string(), "tags", "have a Key and a Value"));
        };
        if key.is_empty() || key.chars().count() > 128 || value.chars().count() > 256 {
            return Err(constraint(key, "tags", "have keys of length 1 to 128 and values of at most 256"));
        }
        if found.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(constraint(key, "tags", "have each key once"));
        }
    }
    Ok(found)
}

fn instance_count(resources: &Map<String, Value>) -> Result<u32, Invalid> {
    let member = "resourceConfig.instanceCount";
    let limits = (1, u64::from(INSTANCES_MAX));
    let count = whole(resources, "InstanceCount", member, limits)?.ok_or_else(|| missing(member))?;
    u32::try_from(count).map_err(|_| missing(member))
}

fn keep_alive(resources: &Map<String, Value>, spot: bool) -> Result<u64, Invalid> {
    let member = "resourceConfig.keepAlivePeriodInSeconds";
    let seconds = whole(resources, "KeepAlivePeriodInSeconds", member, (0, KEEP_ALIVE_SECONDS_MAX))?;
    match seconds.unwrap_or(0) {
        seconds if seconds > 0 && spot => Err(Invalid(
            "Invalid KeepAlivePeriodInSeconds. It is not supported when EnableManagedSpotTraining is set to true"
                .to_owned(),
        )),
        seconds => Ok(seconds),
    }
}

fn stopping(request: &Map<String, Value>, spot: bool) -> Result<(u64, Option<u64>), Invalid> {
    let none = Map::new();
    let condition = match present(request, "StoppingCondition") {
        None => &none,
        Some(_) => object(request, "StoppingCondition", "stoppingCondition")?,
    };
    let bounds = (1, RUNTIME_SECONDS_MAX);
    let runtime = whole(condition, "MaxRuntimeInSeconds", "stoppingCondition.maxRuntimeInSeconds", bounds)?
        .unwrap_or(RUNTIME_SECONDS_DEFAULT);
    let wait =
        whole(condition, "MaxWaitTimeInSeconds", "stoppingCondition.maxWaitTimeInSeconds", (1, u64::MAX))?;
    match (spot, wait) {
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

fn checkpoint_uri(request: &Map<String, Value>) -> Result<Option<String>, Invalid> {
    if present(request, "CheckpointConfig").is_none() {
        return Ok(None);
    }
    let config = object(request, "CheckpointConfig", "checkpointConfig")?;
    string(config, "S3Uri", "checkpointConfig.s3Uri").map(Some)
}

fn channels(request: &Map<String, Value>) -> Result<Vec<Channel>, Invalid> {
    let listed = list(request, "InputDataConfig", "inputDataConfig")?;
    if listed.len() > CHANNELS_MAX {
        let rule = "have length less than or equal to 20";
        return Err(constraint(&format!("{} channels", listed.len()), "inputDataConfig", rule));
    }
    let mut found: Vec<Channel> = Vec::new();
    for (index, entry) in listed.iter().enumerate() {
        let channel = channel(entry, &format!("inputDataConfig.{}.member", index.saturating_add(1)))?;
        if found.iter().any(|other| other.name == channel.name) {
            return Err(constraint(&channel.name, "inputDataConfig", "have each channel name once"));
        }
        found.push(channel);
    }
    Ok(found)
}

fn channel(entry: &Value, member: &str) -> Result<Channel, Invalid> {
    let entry = entry.as_object().ok_or_else(|| constraint(&entry.to_string(), member, "be an object"))?;
    let name = string(entry, "ChannelName", &format!("{member}.channelName"))?;
    let good = name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        && name.bytes().any(|byte| byte != b'.');
    if !good {
        let rule = "satisfy regular expression pattern: [A-Za-z0-9\\.\\-_]+";
        return Err(constraint(&name, &format!("{member}.channelName"), rule));
    }
    let source = object(entry, "DataSource", &format!("{member}.dataSource"))?;
    let source = object(source, "S3DataSource", &format!("{member}.dataSource.s3DataSource"))?;
    let text = |field: &str| entry.get(field).and_then(Value::as_str).map(ToOwned::to_owned);
    let distribution =
        source.get("S3DataDistributionType").and_then(Value::as_str).unwrap_or("FullyReplicated");
    if !matches!(distribution, "FullyReplicated" | "ShardedByS3Key") {
        let rule = "satisfy enum value set: [FullyReplicated, ShardedByS3Key]";
        return Err(constraint(distribution, &format!("{member}.dataSource.s3DataSource"), rule));
    }
    Ok(Channel {
        name,
        uri: string(source, "S3Uri", &format!("{member}.dataSource.s3DataSource.s3Uri"))?,
        sharded: distribution == "ShardedByS3Key",
        content_type: text("ContentType"),
        record_wrapper: text("RecordWrapperType").unwrap_or_else(|| "None".to_owned()),
    })
}
