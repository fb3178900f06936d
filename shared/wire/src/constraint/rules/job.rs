//! Rules of the training job: its image, data, time limits, instances and tags.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{violation, when};
use crate::request::{OWN_TAGS, Request, Source, Violation, is_tag, lift_violations, shortened};

const JOB: &str = "TrainingJobDefinition";
const CHANNELS: &str = "TrainingJobDefinition.InputDataConfig";
const FLAT: &str = "TrainingJobDefinition.ResourceConfig";
const TUNING: &str = "TrainingJobDefinition.HyperParameterTuningResourceConfig";
const INSTANCE_FIELDS: [&str; 3] = ["InstanceType", "InstanceCount", "VolumeSizeInGB"];
const TAGS_MAX: usize = 50;
/// Longest checkpoint prefix: 1,024 characters less `/<tuning>-<incarnation>/<trial>/`.
const CHECKPOINT_MAX: usize = 1_024 - 48;

pub(super) fn one_definition(request: &Request) -> Vec<Violation> {
    let none = request.at(JOB).is_none() && request.at("TrainingJobDefinitions").is_none();
    when(none, JOB, "TrainingJobDefinition is required")
}

pub(super) fn image_or_algorithm(request: &Request) -> Vec<Violation> {
    let path = format!("{JOB}.AlgorithmSpecification");
    if request.at(&path).is_none() {
        return Vec::new();
    }
    let given =
        ["TrainingImage", "AlgorithmName"].map(|member| request.at(&format!("{path}.{member}")).is_some());
    when(given[0] == given[1], &path, "Give either TrainingImage or AlgorithmName, and not both")
}

pub(super) fn channel_names(request: &Request) -> Vec<Violation> {
    let mut seen = BTreeSet::new();
    let channels = request.list(CHANNELS).iter().enumerate();
    let check = |(index, channel): (usize, &Value)| {
        let name = channel.get("ChannelName")?.as_str()?;
        let path = format!("{CHANNELS}[{index}].ChannelName");
        let message = format!("Channel '{}' is given twice; names must differ", shortened(name));
        (!seen.insert(name.to_owned())).then(|| violation(&path, &message))
    };
    channels.filter_map(check).collect()
}

pub(super) fn data_source(request: &Request) -> Vec<Violation> {
    const KINDS: [&str; 3] = ["S3DataSource", "FileSystemDataSource", "DatasetSource"];
    let check = |(index, channel): (usize, &Value)| {
        let source = channel.get("DataSource")?;
        let given =
            KINDS.iter().filter(|kind| source.get(**kind).is_some_and(|value| !value.is_null())).count();
        let path = format!("{CHANNELS}[{index}].DataSource");
        (given != 1).then(|| violation(&path, &format!("Give exactly one of {}", KINDS.join(", "))))
    };
    request.list(CHANNELS).iter().enumerate().filter_map(check).collect()
}

pub(super) fn spot_wait(request: &Request) -> Vec<Violation> {
    let path = format!("{JOB}.StoppingCondition.MaxWaitTimeInSeconds");
    let runtime = request.max_runtime_seconds();
    match request.max_wait_seconds() {
        _ if !request.is_spot() => Vec::new(),
        Some(wait) if wait >= runtime => Vec::new(),
        Some(wait) => {
            let message = format!(
                "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to \
                 MaxRuntimeInSeconds: {wait} is less than {runtime}"
            );
            vec![violation(&path, &message)]
        }
        None => {
            let message = format!(
                "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to \
                 MaxRuntimeInSeconds ({runtime}) when EnableManagedSpotTraining is set to true"
            );
            vec![violation(&path, &message)]
        }
    }
}

pub(super) fn wait_without_spot(request: &Request) -> Vec<Violation> {
    when(
        !request.is_spot() && request.max_wait_seconds().is_some(),
        &format!("{JOB}.StoppingCondition.MaxWaitTimeInSeconds"),
        "Invalid MaxWaitTimeInSeconds. It is only supported when EnableManagedSpotTraining is set to true",
    )
}

pub(super) fn checkpoint_length(request: &Request) -> Vec<Violation> {
    let length = request.checkpoint_uri().map_or(0, |uri| uri.chars().count());
    let message = format!(
        "S3Uri must have length less than or equal to {CHECKPOINT_MAX}, so that a prefix for each trial fits behind it"
    );
    when(length > CHECKPOINT_MAX, &format!("{JOB}.CheckpointConfig.S3Uri"), &message)
}

pub(super) fn environment(request: &Request) -> Vec<Violation> {
    lift_violations(request, Source::Variable)
}

pub(super) fn resource_config(request: &Request) -> Vec<Violation> {
    let both = request.at(FLAT).is_some() == request.at(TUNING).is_some();
    let message = "Give either ResourceConfig or HyperParameterTuningResourceConfig, and not both";
    when(both && request.at(JOB).is_some(), FLAT, message)
}

pub(super) fn instance_fields(request: &Request) -> Vec<Violation> {
    let missing = |form: &str| {
        let message = "InstanceType, InstanceCount and VolumeSizeInGB are required";
        let paths = INSTANCE_FIELDS.iter().map(|field| format!("{form}.{field}"));
        paths
            .filter(|path| request.at(path).is_none())
            .map(|path| violation(&path, message))
            .collect::<Vec<_>>()
    };
    if request.at(FLAT).is_some() {
        missing(FLAT)
    } else if request.at(TUNING).is_some() && request.at(&format!("{TUNING}.InstanceConfigs")).is_none() {
        missing(TUNING)
    } else {
        Vec::new()
    }
}

pub(super) fn instance_configs(request: &Request) -> Vec<Violation> {
    let path = format!("{TUNING}.InstanceConfigs");
    let flat = INSTANCE_FIELDS.iter().any(|field| request.at(&format!("{TUNING}.{field}")).is_some());
    let message =
        "InstanceConfigs excludes InstanceType, InstanceCount and VolumeSizeInGB beside it; leave out one";
    when(flat && request.at(&path).is_some(), &path, message)
}

pub(super) fn spot_fallback(request: &Request) -> Vec<Violation> {
    let path = "Controller.SpotFallback";
    let broken = request.text(path) == Some("OnDemand") && !request.is_spot();
    when(
        broken,
        path,
        "SpotFallback OnDemand needs EnableManagedSpotTraining: without it training jobs run on demand anyway",
    )
}

pub(super) fn keep_alive(request: &Request) -> Vec<Violation> {
    let path = format!("{FLAT}.KeepAlivePeriodInSeconds");
    if request.integer(&path).is_none_or(|seconds| seconds <= 0) {
        return Vec::new();
    }
    let spot = "KeepAlivePeriodInSeconds must be 0 or absent with EnableManagedSpotTraining: there are no warm pools \
                of spot instances";
    when(request.is_spot(), &path, spot)
}

pub(super) fn max_instances(request: &Request) -> Vec<Violation> {
    let needed = request.instance_choices().iter().map(|choice| choice.count).max().unwrap_or(1);
    let path = "Controller.MaxInstances";
    let broken = request.count(path).is_some_and(|instances| instances < needed);
    when(
        broken,
        path,
        &format!("MaxInstances must be at least InstanceCount, {needed}: else no training job fits"),
    )
}

pub(super) fn metric_host(request: &Request) -> Vec<Violation> {
    // Of the choices there may be, the smallest has the host as well.
    let count = request.instance_choices().iter().map(|choice| choice.count).min().unwrap_or(1);
    let number = request.metric_host().strip_prefix("algo-").and_then(|number| number.parse::<u32>().ok());
    let message = format!("MetricHost must be one of the job's hosts, algo-1 to algo-{count}");
    when(number.is_none_or(|number| number > count), "Controller.MetricHost", &message)
}

pub(super) fn tag_count(request: &Request) -> Vec<Violation> {
    let count = request.job_tags().count();
    let message = format!(
        "Tags must have at most {} elements, not {count}: {OWN_TAGS} of a training job's {TAGS_MAX} are ours",
        TAGS_MAX.saturating_sub(OWN_TAGS)
    );
    when(count.saturating_add(OWN_TAGS) > TAGS_MAX, "Tags", &message)
}

pub(super) fn tag_keys(request: &Request) -> Vec<Violation> {
    let mut seen = BTreeSet::new();
    let check = |(index, tag): (usize, &Value)| {
        let key = tag.get("Key")?.as_str()?;
        let lower = key.to_lowercase();
        let wrong = if lower.starts_with("aws:") {
            "keys beginning with 'aws:' are reserved by AWS"
        } else if lower.starts_with("hyperband:") && !is_tag(key) {
            "'hyperband:' and the field of Controller behind it are written just so"
        } else if seen.insert(key.to_owned()) {
            return None;
        } else {
            "the key is given twice; keys must differ"
        };
        Some(violation(
            &format!("Tags[{index}].Key"),
            &format!("Tag key '{}' is refused: {wrong}", shortened(key)),
        ))
    };
    let mut found: Vec<Violation> = request.list("Tags").iter().enumerate().filter_map(check).collect();
    found.append(&mut lift_violations(request, Source::Tag));
    found
}
