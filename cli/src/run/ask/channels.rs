//! Input channels of a tuning on this machine: paths become `file://` URIs, and data elsewhere is rejected.

use std::path::{Path, absolute};

use serde_json::Value;
use wire::request::{Request, RequestError, Violation};

const CHANNELS: &str = "/TrainingJobDefinition/InputDataConfig";
const URI: &str = "/DataSource/S3DataSource/S3Uri";

/// Replaces each path by its `file://` URI. The training program and `check` may run in different folders.
pub(super) fn resolve(body: &mut Value) {
    let channels = body.pointer_mut(CHANNELS).and_then(Value::as_array_mut);
    for channel in channels.into_iter().flatten() {
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
    let channels = request.body().pointer(CHANNELS).and_then(Value::as_array);
    let wrong = channels.into_iter().flatten().enumerate().filter_map(|(index, channel)| {
        let uri = channel.pointer(URI).and_then(Value::as_str);
        let name = channel["ChannelName"].as_str().unwrap_or_default();
        let path = format!("{}[{index}].DataSource", CHANNELS.trim_start_matches('/').replace('/', "."));
        if let Some(file) = uri.and_then(|uri| uri.strip_prefix("file://")) {
            let message = format!(
                "Invalid channel '{name}': no such file or folder: {file}; create it, or correct S3DataSource.S3Uri \
                 (at '{path}')"
            );
            return (!Path::new(file).exists()).then_some(Violation { path, message });
        }
        let found = uri.map_or_else(|| "its data source".to_owned(), |uri| format!("'{uri}'"));
        let message = format!(
            "Invalid channel '{name}': a tuning on this machine cannot read {found}; download the data, and set \
             S3DataSource.S3Uri to its path, for example \"data/{name}\" or \"file:///data/{name}\" (at '{path}')"
        );
        Some(Violation { path, message })
    });
    let wrong: Vec<Violation> = wrong.collect();
    if wrong.is_empty() { Ok(()) } else { Err(RequestError::validation(wrong)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
