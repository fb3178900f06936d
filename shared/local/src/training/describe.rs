//! The views of a job: state change events, `DescribeTrainingJob`, and the description of the port.
//!
//! Pure functions of the record. They show only fields that `SageMaker` has.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use use_cases::ports::training::Description;

use super::clock;
use super::config::DamagedRecord;
use super::pool::Pool;
use super::record::{Record, Secondary, Status};
use super::region::{Region, partition};
use super::request::JobRequest;
use super::seeded;
use tuning::unit::time::Time;

/// Fields copied from the request; absent fields become null.
const ECHOED: [&str; 12] = [
    "AlgorithmSpecification",
    "RoleArn",
    "InputDataConfig",
    "ResourceConfig",
    "VpcConfig",
    "DebugHookConfig",
    "ExperimentConfig",
    "DebugRuleConfigurations",
    "ProfilerConfig",
    "Environment",
    "RetryStrategy",
    "TensorBoardOutputConfig",
];
/// Fields that are null in this module's views. [`super::final_metrics`] adds the final metrics to the answer of
/// `DescribeTrainingJob`.
const ALWAYS_NULL: [&str; 6] = [
    "TuningJobArn",
    "LabelingJobArn",
    "AutoMLJobArn",
    "TrainingJobOutput",
    "FinalMetricDataList",
    "DebugRuleEvaluationStatuses",
];
const FLAGS: [&str; 3] =
    ["EnableNetworkIsolation", "EnableInterContainerTrafficEncryption", "EnableManagedSpotTraining"];

/// The account and the Region of a job.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) account: String,
    pub(crate) region: String,
}

impl Owner {
    pub(crate) fn arn(&self, job: &str) -> String {
        let Self { account, region } = self;
        format!("arn:{}:sagemaker:{region}:{account}:training-job/{job}", partition(region))
    }

    /// Returns this owner in another Region; in its own if `region` is `None`.
    pub(crate) fn in_region(&self, region: Option<&Region>) -> Self {
        let region = region.map_or(self.region.as_str(), Region::as_str).to_owned();
        Self { account: self.account.clone(), region }
    }
}

/// Returns the `EventBridge` event of the record's last change.
pub(crate) fn event(owner: &Owner, record: &Record, request: &JobRequest, model: &Path) -> Value {
    let arn = owner.arn(&request.name);
    let mut detail = fields(owner, record, request, model, |time| json!(time));
    detail.insert(
        "WarmPoolStatus".to_owned(),
        Pool::at_last_change(record).map_or(Value::Null, |pool| pool.json()),
    );
    // SageMaker's events lack this field.
    detail.remove("TensorBoardOutputConfig");
    detail.insert("Tags".to_owned(), json!(tags(record, request)));
    json!({
        "version": "0",
        "id": seeded::event_id(&arn, record.sequence),
        "detail-type": "SageMaker Training Job State Change",
        "source": "aws.sagemaker",
        "account": owner.account,
        "time": clock::iso8601(record.modified),
        "region": owner.region,
        "resources": [arn],
        "detail": detail,
    })
}

/// Returns the answer of `DescribeTrainingJob`.
pub(crate) fn describe_json(
    owner: &Owner,
    record: &Record,
    request: &JobRequest,
    model: &Path,
    now: Time,
) -> Value {
    let mut answer = fields(owner, record, request, model, |time| json!(clock::seconds(time)));
    answer.retain(|_, value| !value.is_null());
    if let Some(pool) = Pool::of(record, now) {
        answer.insert("WarmPoolStatus".to_owned(), pool.json());
    }
    if let Some(Value::Array(transitions)) = answer.get_mut("SecondaryStatusTransitions") {
        for transition in transitions.iter_mut().filter_map(Value::as_object_mut) {
            transition.retain(|_, value| !value.is_null());
        }
    }
    Value::Object(answer)
}

fn fields(
    owner: &Owner,
    record: &Record,
    request: &JobRequest,
    model: &Path,
    time: impl Fn(Time) -> Value,
) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    let optional = |value: Option<Time>| value.map_or(Value::Null, &time);
    for name in ALWAYS_NULL {
        put(name, Value::Null);
    }
    for name in ECHOED {
        put(name, record.request.get(name).cloned().unwrap_or(Value::Null));
    }
    for name in FLAGS {
        put(name, json!(record.request.get(name).and_then(Value::as_bool).unwrap_or(false)));
    }
    put("TrainingJobName", json!(request.name));
    put("TrainingJobArn", json!(owner.arn(&request.name)));
    put("TrainingJobStatus", json!(record.status.name()));
    put("SecondaryStatus", json!(record.secondary.name()));
    put("FailureReason", json!(record.failure_reason));
    put("HyperParameters", json!(request.hyperparameters));
    put("OutputDataConfig", with_default(record, "OutputDataConfig", "KmsKeyId", json!("")));
    put(
        "CheckpointConfig",
        with_default(record, "CheckpointConfig", "LocalPath", json!("/opt/ml/checkpoints")),
    );
    put("StoppingCondition", stopping_condition(record, request));
    put("CreationTime", time(record.created));
    put("TrainingStartTime", optional(record.started));
    put("TrainingEndTime", optional(record.ended));
    put("LastModifiedTime", time(record.modified));
    put("TrainingTimeInSeconds", json!(record.training_seconds()));
    put("BillableTimeInSeconds", json!(record.billable_seconds));
    let artifacts = json!({ "S3ModelArtifacts": format!("file://{}", model.display()) });
    put("ModelArtifacts", if record.status == Status::Completed { artifacts } else { Value::Null });
    let transitions = record.transitions.iter().map(|transition| {
        json!({
            "Status": transition.status.name(),
            "StartTime": time(transition.start),
            "EndTime": optional(transition.end),
            "StatusMessage": transition.message,
        })
    });
    put("SecondaryStatusTransitions", transitions.collect());
    fields
}

/// Returns an object of the request, with a default for one field; null when the object is absent.
fn with_default(record: &Record, name: &str, field: &str, default: Value) -> Value {
    let mut value = record.request.get(name).cloned().unwrap_or(Value::Null);
    if let Some(object) = value.as_object_mut() {
        object.entry(field).or_insert(default);
    }
    value
}

fn stopping_condition(record: &Record, request: &JobRequest) -> Value {
    match with_default(record, "StoppingCondition", "MaxRuntimeInSeconds", json!(request.max_runtime_seconds))
    {
        Value::Null => json!({ "MaxRuntimeInSeconds": request.max_runtime_seconds }),
        condition => condition,
    }
}

/// Returns the tags of a job: those of its request and those added later.
pub(crate) fn tags(record: &Record, request: &JobRequest) -> BTreeMap<String, String> {
    let mut tags = request.tags.clone();
    tags.extend(record.added_tags.clone());
    tags
}

pub(crate) fn description(record: &Record, name: &str, now: Time) -> Description {
    Description {
        name: name.to_owned(),
        status: record.status.name().to_owned(),
        secondary_status: record.secondary.name().to_owned(),
        created: record.created,
        started: record.started,
        ended: record.ended,
        modified: record.modified,
        billable_seconds: record.billable_seconds,
        failure_reason: record.failure_reason.clone(),
        interruptions: u32::try_from(record.interruptions()).unwrap_or(u32::MAX),
        final_metrics: Vec::new(),
        warm_pool: Pool::of(record, now).map(|pool| pool.port()),
    }
}

/// Like [`description`], but for a job with an unreadable record.
pub(crate) fn damaged(job: &DamagedRecord) -> Description {
    Description {
        name: job.name.clone(),
        status: Status::Failed.name().to_owned(),
        secondary_status: Secondary::Failed.name().to_owned(),
        created: job.modified,
        modified: job.modified,
        failure_reason: Some(format!("InternalServerError: {job}")),
        ..Description::default()
    }
}

/// Like [`describe_json`], but for a job with an unreadable record: only the required fields.
pub(crate) fn damaged_json(owner: &Owner, job: &DamagedRecord) -> Value {
    json!({
        "TrainingJobName": job.name,
        "TrainingJobArn": owner.arn(&job.name),
        "ModelArtifacts": { "S3ModelArtifacts": "" },
        "TrainingJobStatus": Status::Failed.name(),
        "SecondaryStatus": Secondary::Failed.name(),
        "FailureReason": format!("InternalServerError: {job}"),
        "StoppingCondition": {},
        "CreationTime": clock::seconds(job.modified),
        "LastModifiedTime": clock::seconds(job.modified),
    })
}
