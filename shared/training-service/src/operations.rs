//! The operations, performed on the local training service.
//!
//! Checks the members of each request. Answers have only members that SageMaker's answers have.

mod listing;

use std::collections::BTreeMap;

use local::training::{Region, TrainingService};
use serde_json::{Value, json};
use use_cases::ports::training::TrainingJobs;

use crate::protocol::{Answer, ApiError, required, whole};

/// Performs the operation `name` for a client in `region`.
pub(crate) async fn perform(
    training: &TrainingService,
    region: Option<Region>,
    name: &str,
    members: &Value,
) -> Result<Answer, ApiError> {
    match name {
        "CreateTrainingJob" => {
            training.create_in(region, members).await?;
            Ok(Some(job_arn(training, members).await?))
        }
        "DescribeTrainingJob" => {
            Ok(Some(training.describe_json(required(members, "TrainingJobName")?).await?))
        }
        "StopTrainingJob" => {
            training.stop(required(members, "TrainingJobName")?).await?;
            Ok(None)
        }
        "UpdateTrainingJob" => update(training, members).await,
        "ListTrainingJobs" => listing::list(training, members).await,
        "AddTags" => {
            let tags = training.add_tags(job_name(training, members).await?, members).await?;
            Ok(Some(tag_list(&tags)))
        }
        "ListTags" => {
            let tags = training.tags(job_name(training, members).await?).await?;
            Ok(Some(tag_list(&tags)))
        }
        // This service runs no tuning jobs. A stack that uses it asks for parents of a tuning.
        "DescribeHyperParameterTuningJob" | "ListTrainingJobsForHyperParameterTuningJob" => {
            Err(ApiError::no_tuning_job(required(members, "HyperParameterTuningJobName")?))
        }
        other => Err(ApiError::unknown_operation(other)),
    }
}

/// Releases the warm pool of a job, the only supported update.
async fn update(training: &TrainingService, members: &Value) -> Result<Answer, ApiError> {
    let name = required(members, "TrainingJobName")?;
    let resources = members.get("ResourceConfig").cloned().unwrap_or_default();
    let keep_alive = whole(&resources, "KeepAlivePeriodInSeconds")?;
    let others = members.as_object().into_iter().flatten();
    let other = others
        .map(|(member, _)| member)
        .find(|member| !matches!(member.as_str(), "TrainingJobName" | "ResourceConfig"));
    if let Some(other) = other {
        return Err(ApiError::validation(format!(
            "This training service does not support updates of {other}"
        )));
    }
    if keep_alive != Some(0) {
        let message = "Invalid ResourceConfig.KeepAlivePeriodInSeconds: this training service supports only updates to 0";
        return Err(ApiError::validation(message));
    }
    // A missing job gets another error than a job without a warm pool.
    training.describe(name).await?;
    training.release(name).await?;
    Ok(Some(job_arn(training, members).await?))
}

async fn job_arn(training: &TrainingService, members: &Value) -> Result<Value, ApiError> {
    Ok(json!({ "TrainingJobArn": training.arn(required(members, "TrainingJobName")?).await }))
}

/// Returns the name of the job that `ResourceArn` identifies.
async fn job_name<'a>(training: &TrainingService, members: &'a Value) -> Result<&'a str, ApiError> {
    let arn = required(members, "ResourceArn")?;
    if let Some(name) = training.name_of(arn).await {
        return Ok(name);
    }
    let example = training.arn("my-job").await;
    let rule = format!("be the ARN of a training job of this service, for example {example}");
    Err(ApiError::constraint(arn, "resourceArn", &rule))
}

/// Returns all tags on one page: a job has at most 50 tags, and a page of `ListTags` holds at least 50.
fn tag_list(tags: &BTreeMap<String, String>) -> Value {
    let tags: Vec<Value> = tags.iter().map(|(key, value)| json!({ "Key": key, "Value": value })).collect();
    json!({ "Tags": tags })
}
