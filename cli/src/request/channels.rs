//! Input channels of a tuning on this machine: paths become `file://` URIs, and data elsewhere is rejected.

use std::path::{Path, PathBuf, absolute};
use std::str::FromStr;

use serde_json::{Value, json};
use wire::request::{Request, RequestError, Violation, job_definitions_mut};

use crate::failure::Failure;

const URI: &str = "/DataSource/S3DataSource/S3Uri";

/// `--channel NAME=PATH`: the data of a channel on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Channel {
    name: String,
    path: PathBuf,
}

impl FromStr for Channel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pair = text.split_once('=').filter(|(name, path)| !name.is_empty() && !path.is_empty());
        let (name, path) = pair.ok_or("expected NAME=PATH, for example train=data/train")?;
        Ok(Self { name: name.to_owned(), path: PathBuf::from(path) })
    }
}

/// Puts the given data in place of that of the request's channels, for example of `s3://` URIs.
pub(crate) fn replace(body: &mut Value, given: &[Channel]) {
    for channel in channels(body) {
        let own = given.iter().rev().find(|own| channel["ChannelName"].as_str() == Some(&own.name));
        let Some(own) = own else { continue };
        let uri = Value::from(own.path.to_string_lossy());
        match channel.pointer_mut(URI) {
            Some(place) => *place = uri,
            None => channel["DataSource"] = json!({"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": uri}}),
        }
    }
}

/// Returns the channels of all training job definitions.
fn channels(body: &mut Value) -> impl Iterator<Item = &mut Value> {
    let all = job_definitions_mut(body).filter_map(|one| one.get_mut("InputDataConfig")?.as_array_mut());
    all.flatten()
}

/// Fails if the request has no channel of a given name.
pub(crate) fn check_names(body: &Value, given: &[Channel]) -> Result<(), Failure> {
    let mut body = body.clone();
    let names: Vec<&str> =
        channels(&mut body).filter_map(|channel| channel["ChannelName"].as_str()).collect();
    let Some(unknown) = given.iter().find(|own| !names.contains(&own.name.as_str())) else { return Ok(()) };
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let message = format!("--channel {}: the request has no such channel (it has {known})", unknown.name);
    Err(Failure::usage(message).hint("correct the name, or add the channel to InputDataConfig"))
}

/// Replaces each path by its `file://` URI. The training program and `check` may run in different folders.
pub(super) fn resolve(body: &mut Value) {
    for channel in channels(body) {
        let Some(uri) = channel.pointer_mut(URI) else { continue };
        let path = uri.as_str().filter(|uri| !uri.is_empty() && !uri.contains("://"));
        if let Some(path) =
            path.and_then(|path| absolute(path).ok()).as_deref().and_then(|path| path.to_str())
        {
            *uri = Value::from(format!("file://{path}"));
        }
    }
}

/// Rejects channels whose data is not on this machine.
pub(crate) fn check(request: &Request) -> Result<(), RequestError> {
    let wrong = request.definitions().enumerate().flat_map(|(number, one)| {
        let list = "TrainingJobDefinition.InputDataConfig";
        let channels = one.at(list).and_then(Value::as_array).into_iter().flatten().enumerate();
        channels.filter_map(move |(index, channel)| {
            wrong(channel, request.path_of(&format!("{list}[{index}].DataSource"), number))
        })
    });
    let wrong: Vec<Violation> = wrong.collect();
    if wrong.is_empty() { Ok(()) } else { Err(RequestError::validation(wrong)) }
}

fn wrong(channel: &Value, path: String) -> Option<Violation> {
    let uri = channel.pointer(URI).and_then(Value::as_str);
    let name = channel["ChannelName"].as_str().unwrap_or_default();
    if let Some(file) = uri.and_then(|uri| uri.strip_prefix("file://")) {
        let message = format!(
            "Invalid channel '{name}': no such file or folder: {file}; create it, or correct S3DataSource.S3Uri (at \
             '{path}')"
        );
        return (!Path::new(file).exists()).then_some(Violation { path, message });
    }
    let found = uri.map_or_else(|| "its data source".to_owned(), |uri| format!("'{uri}'"));
    let message = format!(
        "Invalid channel '{name}': a tuning on this machine cannot read {found}; download the data, and add \
         --channel {name}=PATH to `run` or `serve`, or set S3DataSource.S3Uri to its path, for example \
         \"data/{name}\" (at '{path}')"
    );
    Some(Violation { path, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_of_the_command_line_replaces_that_of_the_request() {
        let channel = |name: &str, source: Value| json!({"ChannelName": name, "DataSource": source});
        let s3 = json!({"S3DataSource": {"S3Uri": "s3://b/c", "S3DataDistributionType": "ShardedByS3Key"}});
        let channels = [
            channel("train", s3.clone()),
            channel("test", s3),
            channel("fs", json!({"FileSystemDataSource": {}})),
        ];
        let mut body = json!({"TrainingJobDefinition": {"InputDataConfig": channels}});
        replace(&mut body, &["train=data/a".parse().unwrap(), "fs=/b=c".parse().unwrap()]);
        let channels = &body["TrainingJobDefinition"]["InputDataConfig"];
        let uri = |index: usize| channels[index].pointer(URI).and_then(Value::as_str);
        assert_eq!([uri(0), uri(1), uri(2)], [Some("data/a"), Some("s3://b/c"), Some("/b=c")]);
        assert_eq!(channels[0]["DataSource"]["S3DataSource"]["S3DataDistributionType"], "ShardedByS3Key");
        for text in ["train", "=a", "train="] {
            assert!(text.parse::<Channel>().unwrap_err().starts_with("expected NAME=PATH"), "{text}");
        }
    }

    #[test]
    fn paths_become_absolute_uris_and_uris_stay() {
        let here = std::env::current_dir().unwrap();
        let channel = |uri: &str| json!({"ChannelName": "c", "DataSource": {"S3DataSource": {"S3Uri": uri}}});
        for (given, expected) in [
            ("data/train", format!("file://{}/data/train", here.display())),
            ("/data", "file:///data".to_owned()),
            ("file:///data", "file:///data".to_owned()),
            ("s3://b/c", "s3://b/c".to_owned()),
            ("", String::new()),
        ] {
            let mut body = json!({"TrainingJobDefinition": {"InputDataConfig": [channel(given), 1]}});
            resolve(&mut body);
            assert_eq!(body["TrainingJobDefinition"]["InputDataConfig"][0], channel(&expected));
        }
    }
}
