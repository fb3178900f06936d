//! `--parent`: ended tunings and files from whose results a tuning starts.

use serde_json::{Value, json};

use super::results;
use crate::failure::Failure;

/// Appends the parents, names of tunings or files, to the request. A name has no dot and no slash.
pub(super) fn append_all(body: &mut Value, parents: &[String]) -> Result<(), Failure> {
    let (files, names): (Vec<String>, Vec<String>) =
        parents.iter().cloned().partition(|parent| parent.contains(['.', '/', '\\']));
    append(body, &names);
    results::append(body, &files)
}

/// Appends the parents to `WarmStartConfig`. A request without one gets a warm start on the same data and algorithm.
/// Leaves members of the wrong type for validation to reject.
pub(super) fn append(body: &mut Value, parents: &[String]) {
    let Value::Object(members) = body else { return };
    if parents.is_empty() {
        return;
    }
    let config = members.entry("WarmStartConfig").or_insert(Value::Null);
    if config.is_null() {
        *config = json!({"WarmStartType": "IdenticalDataAndAlgorithm", "ParentHyperParameterTuningJobs": []});
    }
    if let Some(Value::Array(all)) = config.get_mut("ParentHyperParameterTuningJobs") {
        all.extend(parents.iter().map(|name| json!({"HyperParameterTuningJobName": name})));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_follow_those_of_the_request() {
        let parent = |name: &str| json!({"HyperParameterTuningJobName": name});
        let config = |kind: &str, parents: Value| json!({"WarmStartConfig": {"WarmStartType": kind, "ParentHyperParameterTuningJobs": parents}});
        for (given, expected) in [
            (json!({}), config("IdenticalDataAndAlgorithm", json!([parent("b")]))),
            (
                config("TransferLearning", json!([parent("a")])),
                config("TransferLearning", json!([parent("a"), parent("b")])),
            ),
            (json!({"WarmStartConfig": 1}), json!({"WarmStartConfig": 1})),
        ] {
            let mut body = given.clone();
            append(&mut body, &["b".to_owned()]);
            assert_eq!(body, expected);
            append(&mut body, &[]);
            assert_eq!(body, expected);
        }
    }
}
