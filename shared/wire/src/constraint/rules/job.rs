//! Rules for the training job: image, data, time limits, instances and tags.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{violation, when};
use crate::constraint::lift::{self, Source};
use crate::names::TAG_PREFIX;
use crate::request::{Channel, MOVED, OWN_TAGS, Request, SpotFallback, TAGS_MAX, Tag, Violation, shortened};

const JOB: &str = "TrainingJobDefinition";
const CHANNELS: &str = "TrainingJobDefinition.InputDataConfig";
const FLAT: &str = "TrainingJobDefinition.ResourceConfig";
const TUNING: &str = "TrainingJobDefinition.HyperParameterTuningResourceConfig";
/// Required fields of the flat resource forms, each with an example value as JSON.
const INSTANCE_FIELDS: [(&str, &str); 3] =
    [("InstanceType", "\"ml.m5.large\""), ("InstanceCount", "1"), ("VolumeSizeInGB", "30")];
/// Longest checkpoint prefix: 1,024 characters less `/<tuning>-<incarnation>/<trial>/`.
const CHECKPOINT_MAX: usize = 1_024 - 48;

pub(super) fn one_definition(request: &Request) -> Vec<Violation> {
    let message = "Missing TrainingJobDefinition: it is required, with AlgorithmSpecification, RoleArn, \
                   OutputDataConfig, StoppingCondition and ResourceConfig";
    let missing = when(request.at(JOB).is_none(), JOB, message);
    let misplaced = MOVED.into_iter().flat_map(|(own, of_config)| {
        let path = format!("{JOB}.{own}");
        let message = format!(
            "Invalid {own}: expected none in TrainingJobDefinition; move it to \
             HyperParameterTuningJobConfig.{of_config}, or use TrainingJobDefinitions"
        );
        when(request.at(&path).is_some(), &path, &message)
    });
    missing.into_iter().chain(misplaced).collect()
}

pub(super) fn image_or_algorithm(request: &Request) -> Vec<Violation> {
    let path = format!("{JOB}.AlgorithmSpecification");
    if request.at(&path).is_none() {
        return Vec::new();
    }
    let algorithm = &request.fields().job.algorithm;
    let has_image = algorithm.training_image.is_some();
    let found = if has_image {
        "both; remove one of them"
    } else {
        "neither; for example, add \"AlgorithmName\": \"xgboost\""
    };
    let message = format!(
        "Invalid AlgorithmSpecification: expected either TrainingImage or AlgorithmName, but found {found}"
    );
    when(has_image == algorithm.algorithm_name.is_some(), &path, &message)
}

pub(super) fn channel_names(request: &Request) -> Vec<Violation> {
    let mut seen = BTreeSet::new();
    let channels = request.fields().job.channels.iter().enumerate();
    let check = |(index, channel): (usize, &Channel)| {
        let name = channel.name.as_deref()?;
        let path = format!("{CHANNELS}[{index}].ChannelName");
        let shown = shortened(name);
        let message = format!(
            "Invalid ChannelName '{shown}': expected a name that no other channel has, for example '{shown}-2'"
        );
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
        (given != 1).then(|| {
            let message = format!(
                "Invalid DataSource: expected exactly one of {}, but found {given}; for example, \"DataSource\": \
                 {{\"S3DataSource\": {{\"S3DataType\": \"S3Prefix\", \"S3Uri\": \"s3://BUCKET/PREFIX\"}}}}",
                KINDS.join(", ")
            );
            violation(&path, &message)
        })
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
                 MaxRuntimeInSeconds: {wait} is less than {runtime}; for example, set it to {runtime}"
            );
            vec![violation(&path, &message)]
        }
        None => {
            let message = format!(
                "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to \
                 MaxRuntimeInSeconds ({runtime}) when EnableManagedSpotTraining is set to true; for example, set it to \
                 {runtime}"
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
        "Invalid S3Uri of {length} characters: expected at most {CHECKPOINT_MAX}, to leave room for the prefix of each \
         trial; for example, s3://BUCKET/checkpoints/"
    );
    when(length > CHECKPOINT_MAX, &format!("{JOB}.CheckpointConfig.S3Uri"), &message)
}

pub(super) fn environment(request: &Request) -> Vec<Violation> {
    lift::violations(request, Source::Variable)
}

pub(super) fn resource_config(request: &Request) -> Vec<Violation> {
    let both = request.at(FLAT).is_some();
    let found = if both {
        "both; remove one of them"
    } else {
        "neither; for example, add \"ResourceConfig\": {\"InstanceType\": \"ml.m5.large\", \"InstanceCount\": 1, \
         \"VolumeSizeInGB\": 30}"
    };
    let message = format!(
        "Invalid TrainingJobDefinition: expected either ResourceConfig or HyperParameterTuningResourceConfig, but \
         found {found}"
    );
    when(both == request.at(TUNING).is_some() && request.at(JOB).is_some(), FLAT, &message)
}

pub(super) fn instance_fields(request: &Request) -> Vec<Violation> {
    let missing = |form: &str| {
        let check = |(field, example): &(&str, &str)| {
            let path = format!("{form}.{field}");
            let message = format!("Missing {field}: it is required, for example \"{field}\": {example}");
            request.at(&path).is_none().then(|| violation(&path, &message))
        };
        INSTANCE_FIELDS.iter().filter_map(check).collect::<Vec<_>>()
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
    let flat = INSTANCE_FIELDS.iter().any(|(field, _)| request.at(&format!("{TUNING}.{field}")).is_some());
    let message = "Invalid InstanceConfigs: expected either InstanceConfigs or InstanceType, InstanceCount and \
                   VolumeSizeInGB, but found both; for example, remove InstanceConfigs";
    when(flat && request.at(&path).is_some(), &path, message)
}

pub(super) fn spot_fallback(request: &Request) -> Vec<Violation> {
    let path = "Controller.SpotFallback";
    let on_demand = request.fields().controller.spot_fallback == Some(SpotFallback::OnDemand);
    let broken = on_demand && !request.is_spot();
    when(
        broken,
        path,
        "Invalid SpotFallback 'OnDemand': expected 'None' unless EnableManagedSpotTraining is true, because the \
         training jobs already run on demand; for example, remove SpotFallback",
    )
}

pub(super) fn keep_alive(request: &Request) -> Vec<Violation> {
    let path = format!("{FLAT}.KeepAlivePeriodInSeconds");
    let given = request.fields().job.warm_pool.keep_alive_seconds;
    let Some(seconds) = given.filter(|seconds| *seconds > 0) else { return Vec::new() };
    let message = format!(
        "Invalid KeepAlivePeriodInSeconds {seconds}: expected 0 or no value with EnableManagedSpotTraining, because \
         spot instances have no warm pools; for example, remove KeepAlivePeriodInSeconds"
    );
    when(request.is_spot(), &path, &message)
}

pub(super) fn max_instances(request: &Request) -> Vec<Violation> {
    let needed = request.own_choices().iter().map(|choice| choice.count).max().unwrap_or(1);
    let path = "Controller.MaxInstances";
    let Some(given) = request.max_instances() else { return Vec::new() };
    let message = format!(
        "Invalid MaxInstances {given}: expected at least InstanceCount, so that one training job fits; for example, \
         {needed}"
    );
    when(given < needed, path, &message)
}

pub(super) fn metric_host(request: &Request) -> Vec<Violation> {
    // The host must exist whichever choice of instances a job runs on.
    let count = request.own_choices().iter().map(|choice| choice.count).min().unwrap_or(1);
    let number = request.metric_host().strip_prefix("algo-").and_then(|number| number.parse::<u32>().ok());
    let message = format!(
        "Invalid MetricHost '{}': expected a host of the training job, algo-1 to algo-{count}; for example, 'algo-1'",
        request.metric_host()
    );
    when(number.is_none_or(|number| number > count), "Controller.MetricHost", &message)
}

pub(super) fn tag_count(request: &Request) -> Vec<Violation> {
    let count = request.job_tags().count();
    let most = TAGS_MAX.saturating_sub(OWN_TAGS);
    let message = format!(
        "Invalid Tags: expected at most {most} elements, but found {count}, because the controller adds {OWN_TAGS} to \
         each training job, which has at most {TAGS_MAX}; remove {}",
        count.saturating_sub(most)
    );
    when(count > most, "Tags", &message)
}

pub(super) fn tag_keys(request: &Request) -> Vec<Violation> {
    let mut seen = BTreeSet::new();
    let check = |(index, tag): (usize, &Tag)| {
        let key = tag.key.as_deref()?;
        let lower = key.to_lowercase();
        let wrong = if lower.starts_with("aws:") {
            "AWS reserves keys that begin with 'aws:'; choose another key, for example 'team'"
        } else if lower.starts_with(TAG_PREFIX) && !key.starts_with(TAG_PREFIX) {
            "expected 'hyperband:' and a field of Controller, both in their exact case, for example \
             'hyperband:MaxCostUsd'"
        } else if seen.insert(key.to_owned()) {
            return None;
        } else {
            "expected a key that no other tag has; remove one of the two tags"
        };
        Some(violation(
            &format!("Tags[{index}].Key"),
            &format!("Invalid tag key '{}': {wrong}", shortened(key)),
        ))
    };
    let mut found: Vec<Violation> = request.fields().tags.iter().enumerate().filter_map(check).collect();
    found.append(&mut lift::violations(request, Source::Tag));
    found
}
