//! Prepares a host: its folder in the layout of /opt/ml, and its environment.
//!
//! Follows the SageMaker training toolkit. Writes only to the job's folder and to the checkpoint folder, and follows no
//! link when it clears a folder. The functions block.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thiserror::Error;

use super::arguments::Hyperparameters;
use super::channel::{self, Source};
use super::request::{Channel, JobRequest};
use super::slots::Slot;
use super::store::Layout;

/// Name of the only instance group of a homogeneous cluster.
const GROUP: &str = "homogeneousCluster";
/// The longest `NAME=value` that Linux passes to a program.
const VARIABLE_BYTES_MAX: usize = 128 * 1024 - 1;

#[derive(Debug, Clone)]
pub(crate) struct RunPlan {
    pub(crate) arn: String,
    pub(crate) attempt: String,
    /// The loopback address of each host.
    pub(crate) addresses: BTreeMap<String, String>,
    /// The slot of each host.
    pub(crate) slots: Vec<Slot>,
}

#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) host: String,
    pub(crate) environment: Vec<(String, String)>,
    /// The hyperparameters of the job, for its arguments.
    pub(crate) hyperparameters: Hyperparameters,
    pub(crate) lock: PathBuf,
    /// Lines for the start of its log.
    pub(crate) notes: Vec<String>,
}

/// Why a host could not be prepared. The message becomes the job's failure reason.
#[derive(Debug, Error)]
pub(crate) enum ContainerError {
    #[error("InternalServerError: cannot prepare {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("ClientError: Data download failed: channel {channel}: {}: {source}", path.display())]
    Data { channel: String, path: PathBuf, source: io::Error },
}

/// Prepares every host of a run. Removes the files of an earlier run, except checkpoints.
pub(crate) fn prepare(
    layout: &Layout,
    request: &JobRequest,
    plan: &RunPlan,
) -> Result<Vec<Container>, ContainerError> {
    let checkpoints = layout.checkpoints(&request.name, request.checkpoint_uri.as_deref());
    make_folder(&checkpoints)?;
    let hosts = request.hosts();
    let hyperparameters = Hyperparameters::of(&request.hyperparameters);
    let mut ready = Vec::new();
    for (index, host) in hosts.iter().enumerate() {
        let folder = layout.host(&request.name, host);
        clear(&folder)?;
        for part in ["input/config", "input/data", "model", "output/data"] {
            make_folder(&folder.join(part))?;
        }
        link(&checkpoints, &folder.join("checkpoints"))?;
        let mut notes = Vec::new();
        for channel in &request.channels {
            let note = fill_channel(&folder, channel, index, hosts.len())?;
            notes.extend(note.filter(|_| index == 0));
        }
        let resources = resource_config(request, &hosts, host);
        write_config(&folder, "hyperparameters", &json!(request.hyperparameters))?;
        write_config(&folder, "resourceconfig", &resources)?;
        write_config(&folder, "inputdataconfig", &input_data_config(request))?;
        let (environment, skipped) = environment(request, plan, &folder, (index, host), &resources);
        notes.extend(skipped.into_iter().map(|name| {
            format!(
                "[hyperband] skipped environment variable {name}: it is longer than Linux allows (128 KiB)"
            )
        }));
        let lock = layout.locks(&request.name).join(host);
        let hyperparameters = hyperparameters.clone();
        ready.push(Container { host: host.clone(), environment, hyperparameters, lock, notes });
    }
    Ok(ready)
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> ContainerError {
    let path = path.to_owned();
    move |source| ContainerError::Io { path, source }
}

fn make_folder(path: &Path) -> Result<(), ContainerError> {
    fs::create_dir_all(path).map_err(io_error(path))
}

fn clear(path: &Path) -> Result<(), ContainerError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error(path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn link(target: &Path, path: &Path) -> Result<(), ContainerError> {
    symlink(target, path).map_err(io_error(path))
}

fn write_config(folder: &Path, name: &str, value: &Value) -> Result<(), ContainerError> {
    let path = folder.join("input/config").join(format!("{name}.json"));
    fs::write(&path, value.to_string()).map_err(io_error(&path))
}

/// Links a channel's data. Returns a note when the data is not on this machine.
fn fill_channel(
    folder: &Path,
    channel: &Channel,
    host: usize,
    hosts: usize,
) -> Result<Option<String>, ContainerError> {
    let place = folder.join("input/data").join(&channel.name);
    let Source::Local(source) = channel::source(&channel.uri) else {
        make_folder(&place)?;
        let (name, uri) = (&channel.name, &channel.uri);
        return Ok(Some(format!("[hyperband] channel {name} is empty: {uri} is not on this machine")));
    };
    let data = |source_error| ContainerError::Data {
        channel: channel.name.clone(),
        path: source.clone(),
        source: source_error,
    };
    let source = fs::canonicalize(&source).map_err(data)?;
    let is_folder = source.is_dir();
    if is_folder && !channel.sharded {
        link(&source, &place)?;
        return Ok(None);
    }
    make_folder(&place)?;
    let files = if is_folder { channel::files(&source).map_err(data)? } else { vec![PathBuf::new()] };
    for file in files.iter().enumerate().filter(|(index, _)| !channel.sharded || index % hosts == host) {
        let (from, to) = if is_folder {
            (source.join(file.1), place.join(file.1))
        } else {
            (source.clone(), place.join(source.file_name().unwrap_or_default()))
        };
        if let Some(parent) = to.parent() {
            make_folder(parent)?;
        }
        link(&from, &to)?;
    }
    Ok(None)
}

fn resource_config(request: &JobRequest, hosts: &[String], host: &str) -> Value {
    json!({
        "current_host": host,
        "current_instance_type": request.instance_type,
        "current_group_name": GROUP,
        "hosts": hosts,
        "instance_groups": [{
            "instance_group_name": GROUP,
            "instance_type": request.instance_type,
            "hosts": hosts,
        }],
        "network_interface_name": "lo",
    })
}

fn input_data_config(request: &JobRequest) -> Value {
    let channel = |channel: &Channel| {
        let mut entry = json!({
            "TrainingInputMode": request.input_mode,
            "S3DistributionType": if channel.sharded { "ShardedByS3Key" } else { "FullyReplicated" },
            "RecordWrapperType": channel.record_wrapper,
        });
        if let (Some(entry), Some(content_type)) = (entry.as_object_mut(), &channel.content_type) {
            entry.insert("ContentType".to_owned(), json!(content_type));
        }
        (channel.name.clone(), entry)
    };
    Value::Object(request.channels.iter().map(channel).collect())
}

/// Returns the variables of a host, and the names of those that are too long. Own variables override the request's.
fn environment(
    request: &JobRequest,
    plan: &RunPlan,
    folder: &Path,
    (index, host): (usize, &str),
    resources: &Value,
) -> (Vec<(String, String)>, Vec<String>) {
    let at = |part: &str| folder.join(part).to_string_lossy().into_owned();
    let mut found: BTreeMap<String, String> = request.environment.clone();
    let mut put = |name: &str, value: String| {
        found.insert(name.to_owned(), value);
    };
    let own = Hyperparameters::of(&request.hyperparameters);
    put("SM_USER_ARGS", json!(own.options()).to_string());
    let mut hyperparameters = serde_json::Map::new();
    for (name, value) in own.values() {
        put(&format!("SM_HP_{}", name.to_uppercase()), variable_value(&value));
        hyperparameters.insert(name.clone(), value);
    }
    put("SM_HPS", Value::Object(hyperparameters).to_string());
    let channels: Vec<&str> = request.channels.iter().map(|channel| channel.name.as_str()).collect();
    for name in &channels {
        put(&format!("SM_CHANNEL_{}", name.to_uppercase()), at(&format!("input/data/{name}")));
    }
    put("SM_CHANNELS", json!(channels).to_string());
    put("SM_ROOT", folder.to_string_lossy().into_owned());
    put("SM_INPUT_DIR", at("input"));
    put("SM_INPUT_CONFIG_DIR", at("input/config"));
    put("SM_OUTPUT_DIR", at("output"));
    put("SM_OUTPUT_DATA_DIR", at("output/data"));
    put("SM_MODEL_DIR", at("model"));
    put("SM_HOSTS", json!(request.hosts()).to_string());
    put("SM_CURRENT_HOST", host.to_owned());
    put("SM_CURRENT_INSTANCE_TYPE", request.instance_type.clone());
    put("SM_NETWORK_INTERFACE_NAME", "lo".to_owned());
    put("SM_RESOURCE_CONFIG", resources.to_string());
    put("SM_INPUT_DATA_CONFIG", input_data_config(request).to_string());
    let slot = plan.slots.get(index);
    let devices = slot.map(|slot| slot.devices.as_slice()).unwrap_or_default();
    put("SM_NUM_GPUS", devices.len().to_string());
    if !devices.is_empty() {
        put("CUDA_VISIBLE_DEVICES", devices.join(","));
    }
    if let Some(slot) = slot {
        put("SM_SLOT", slot.number.to_string());
    }
    put("SM_NUM_CPUS", std::thread::available_parallelism().map_or(1, usize::from).to_string());
    put("SM_HOST_ADDRESSES", json!(plan.addresses).to_string());
    put("SM_ATTEMPT_ID", plan.attempt.clone());
    put("TRAINING_JOB_NAME", request.name.clone());
    put("TRAINING_JOB_ARN", plan.arn.clone());
    let fits = |name: &str, value: &str| name.len() + value.len() < VARIABLE_BYTES_MAX;
    let is_valid = |text: &str| !text.contains('\0');
    let skipped =
        found.iter().filter(|(name, value)| !fits(name, value)).map(|(name, _)| name.clone()).collect();
    found.retain(|name, value| fits(name, value) && is_valid(name) && is_valid(value) && !name.contains('='));
    (found.into_iter().collect(), skipped)
}

/// Formats a hyperparameter for a variable, like the toolkit: strings as they are, other values as JSON.
fn variable_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}
