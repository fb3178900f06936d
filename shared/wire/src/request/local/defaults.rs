//! Defaults of the fields that only AWS needs, for tunings on one machine.
//!
//! A training program on this machine needs no role, bucket, image or instance type. A request for a stack never gets
//! these defaults: there, such a field costs money or grants permissions. The defaults become part of the stored
//! request, like the built-in patterns.

use serde_json::{Map, Value, json};

use crate::request::definitions::paths_of_each;

/// The instance type of this machine. Prices of a request may name another one.
pub const LOCAL_INSTANCE_TYPE: &str = "ml.local.machine";

const JOB: &str = "TrainingJobDefinition";
const ROLE: &str = "arn:aws:iam::000000000000:role/local";
const OUTPUT: &str = "s3://local/output";
const CHECKPOINTS: &str = "s3://local/checkpoints";
const IMAGE: &str = "local";
/// The time limit of a training job: a day, as in SageMaker's API. A shorter default would end long trainings without
/// a reason that the user knows. A cap reserves the whole day for each job, so the errors about a cap name the field.
const MAX_RUNTIME_SECONDS: u64 = 86_400;

/// Returns the paths of the fields that a stack requires and `body` leaves to this machine.
pub fn required_by_stack(body: &Value) -> Vec<String> {
    paths_of_each(body, |one| missing(one).into_iter().map(|(path, _)| format!("{JOB}.{path}")).collect())
}

/// Adds the missing fields. Leaves members of the wrong type for validation to reject.
pub(super) fn add(body: &mut Value) {
    let missing = missing(body);
    let Value::Object(members) = body else { return };
    for (path, value) in missing {
        set(members, &format!("{JOB}.{path}"), value);
    }
    let channels = members.get_mut(JOB).and_then(|job| job.get_mut("InputDataConfig"));
    for channel in channels.and_then(Value::as_array_mut).into_iter().flatten() {
        let source = channel.pointer_mut("/DataSource/S3DataSource").and_then(Value::as_object_mut);
        if let Some(source) = source {
            set(source, "S3DataType", json!("S3Prefix"));
        }
    }
}

/// Returns the missing fields of `TrainingJobDefinition`, with their defaults.
fn missing(body: &Value) -> Vec<(&'static str, Value)> {
    let given = |path: &str| {
        let found = path.split('.').try_fold(body.get(JOB)?, |value, member| value.get(member));
        found.filter(|value| !value.is_null())
    };
    let mut all = vec![
        ("RoleArn", json!(ROLE)),
        ("OutputDataConfig.S3OutputPath", json!(OUTPUT)),
        ("AlgorithmSpecification.TrainingInputMode", json!("File")),
    ];
    if given("AlgorithmSpecification.AlgorithmName").is_none() {
        all.push(("AlgorithmSpecification.TrainingImage", json!(IMAGE)));
    }
    if given("HyperParameterTuningResourceConfig").is_none() {
        all.push(("ResourceConfig.InstanceType", json!(instance_type(body))));
        all.push(("ResourceConfig.InstanceCount", json!(1)));
        all.push(("ResourceConfig.VolumeSizeInGB", json!(1)));
    }
    // A request with an empty StoppingCondition has SageMaker's default, which is the same.
    if given("StoppingCondition").is_none() {
        all.push(("StoppingCondition.MaxRuntimeInSeconds", json!(MAX_RUNTIME_SECONDS)));
    }
    // An empty CheckpointConfig means that the program keeps checkpoints.
    if given("CheckpointConfig").is_some() {
        all.push(("CheckpointConfig.S3Uri", json!(CHECKPOINTS)));
    }
    all.retain(|(path, _)| given(path).is_none());
    all
}

/// Returns the only instance type with a price, else [`LOCAL_INSTANCE_TYPE`].
fn instance_type(body: &Value) -> &str {
    let prices = body.pointer("/Controller/InstancePricesUsdPerHour").and_then(Value::as_object);
    match prices.map(|prices| prices.keys().collect::<Vec<_>>()).as_deref() {
        Some([only]) => only,
        Some(_) | None => LOCAL_INSTANCE_TYPE,
    }
}

fn set(members: &mut Map<String, Value>, path: &str, value: Value) {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let member = members.entry(name).or_insert(Value::Null);
    match rest {
        None if member.is_null() => *member = value,
        None => {}
        Some(rest) => {
            if member.is_null() {
                *member = Value::Object(Map::new());
            }
            if let Value::Object(members) = member {
                set(members, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{PriceAnswer, Request};
    use crate::sample;
    use tuning::unit::time::Time;

    /// Returns the sample request without the fields that only AWS needs.
    fn bare() -> Value {
        let changes = json!({
            "TrainingJobDefinition": {"AlgorithmSpecification": null, "RoleArn": null, "OutputDataConfig": null,
                "ResourceConfig": null, "StoppingCondition": null},
            "Controller": {"MaxCostUsd": null},
        });
        sample::with(sample::request("t"), changes)
    }

    fn job(body: Value) -> Value {
        Request::check_local(body).unwrap().body()["TrainingJobDefinition"].clone()
    }

    #[test]
    fn a_request_for_this_machine_needs_no_fields_of_aws() {
        let mut body = bare();
        assert!(Request::check(body.clone()).is_err(), "a stack requires them");
        let made = job(body.clone());
        assert_eq!(made["RoleArn"], ROLE);
        assert_eq!(
            made["ResourceConfig"],
            json!({"InstanceType": "ml.local.machine", "InstanceCount": 1, "VolumeSizeInGB": 1})
        );
        assert_eq!(made["StoppingCondition"], json!({"MaxRuntimeInSeconds": 86_400}));
        let fields = [
            "RoleArn",
            "OutputDataConfig.S3OutputPath",
            "AlgorithmSpecification.TrainingInputMode",
            "AlgorithmSpecification.TrainingImage",
            "ResourceConfig.InstanceType",
            "ResourceConfig.InstanceCount",
            "ResourceConfig.VolumeSizeInGB",
            "StoppingCondition.MaxRuntimeInSeconds",
        ];
        assert_eq!(required_by_stack(&body), fields.map(|field| format!("TrainingJobDefinition.{field}")));
        body.as_object_mut().unwrap().remove("TrainingJobDefinition");
        assert_eq!(job(body), made);
    }

    #[test]
    fn given_fields_stay_and_a_whole_request_is_unchanged() {
        let whole = sample::request("t");
        assert_eq!(required_by_stack(&whole), Vec::<String>::new());
        assert_eq!(Request::check_local(whole.clone()).unwrap().body(), &whole);
        let empty = sample::with(whole.clone(), json!({"TrainingJobDefinition": {"StoppingCondition": 1}}));
        let empty = sample::with(empty, json!({"TrainingJobDefinition": {"StoppingCondition": {}}}));
        assert_eq!(job(empty)["StoppingCondition"], json!({}), "an earlier release stored it so");
        let partial = json!({"ResourceConfig": {"InstanceCount": 3}, "AlgorithmSpecification": {"AlgorithmName": "xgboost"}});
        let changes = json!({
            "TrainingJobDefinition": partial,
            "HyperParameterTuningJobConfig": {"HyperParameterTuningJobObjective": {"MetricName": "validation:auc"}},
        });
        let made = job(sample::with(bare(), changes));
        assert_eq!(made["ResourceConfig"]["InstanceCount"], 3);
        assert_eq!(
            made["AlgorithmSpecification"],
            json!({"AlgorithmName": "xgboost", "TrainingInputMode": "File"})
        );
        let choices = json!([{"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1}]);
        let other = json!({"HyperParameterTuningResourceConfig": {"InstanceConfigs": choices}});
        let made = job(sample::with(bare(), json!({"TrainingJobDefinition": other})));
        assert_eq!(made.get("ResourceConfig"), None);
    }

    #[test]
    fn the_only_price_chooses_the_instance_type() {
        let priced = |prices: Value| {
            let changes = json!({"Controller": {"MaxCostUsd": 5, "InstancePricesUsdPerHour": prices}});
            Request::check_local(sample::with(bare(), changes)).unwrap()
        };
        let one = priced(json!({"ml.g5.xlarge": 1}));
        assert_eq!(one.instance_type(), "ml.g5.xlarge");
        let error = one.definition(Time(0), "000000", &PriceAnswer::default()).unwrap_err().message;
        assert!(
            error.contains("set StoppingCondition.MaxRuntimeInSeconds to the seconds that a job"),
            "{error}"
        );
        assert_eq!(priced(json!({"ml.g5.xlarge": 1, "ml.m5.large": 1})).instance_type(), LOCAL_INSTANCE_TYPE);
    }

    #[test]
    fn checkpoints_and_channels_need_no_address() {
        let source = |uri: &str| json!({"S3DataSource": {"S3Uri": uri}});
        let changes = json!({"TrainingJobDefinition": {
            "CheckpointConfig": {},
            "InputDataConfig": [{"ChannelName": "train", "DataSource": source("file:///data")}],
        }});
        let made = job(sample::with(bare(), changes));
        assert_eq!(made["CheckpointConfig"], json!({"S3Uri": CHECKPOINTS}));
        assert_eq!(made["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3DataType"], "S3Prefix");
    }

    #[test]
    fn members_of_the_wrong_type_are_rejected() {
        for wrong in [json!([]), json!("x"), json!({"ResourceConfig": 1}), json!({"InputDataConfig": [1]})] {
            let mut body = bare();
            body["TrainingJobDefinition"] = wrong;
            assert!(Request::check_local(body).is_err());
        }
        assert!(Request::check_local(json!([])).is_err());
    }
}
