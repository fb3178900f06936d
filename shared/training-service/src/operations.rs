//! The operations, each one on the local training service.
//!
//! Assumes members that are not checked yet. Must never answer with a member that SageMaker's answer does not have.

mod listing;

use std::collections::BTreeMap;

use local::training::TrainingService;
use serde_json::{Value, json};
use service::ports::training::TrainingJobs;

use crate::protocol::{Answer, ApiError, required, whole};

/// Performs the operation `name`.
pub(crate) async fn perform(
    training: &TrainingService,
    name: &str,
    members: &Value,
) -> Result<Answer, ApiError> {
    match name {
        "CreateTrainingJob" => {
            training.create(members).await?;
            Ok(Some(named(training, members)?))
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
            let tags = training.add_tags(job(training, members)?, members).await?;
            Ok(Some(tag_list(&tags)))
        }
        "ListTags" => {
            let tags = training.tags(job(training, members)?).await?;
            Ok(Some(tag_list(&tags)))
        }
        other => Err(ApiError::unknown_operation(other)),
    }
}

/// The only change of a job that can be made here is to keep its instances no longer.
async fn update(training: &TrainingService, members: &Value) -> Result<Answer, ApiError> {
    let name = required(members, "TrainingJobName")?;
    let resources = members.get("ResourceConfig").cloned().unwrap_or_default();
    let asked = whole(&resources, "KeepAlivePeriodInSeconds")?;
    let others = members.as_object().into_iter().flatten();
    let other = others
        .map(|(member, _)| member)
        .find(|member| !matches!(member.as_str(), "TrainingJobName" | "ResourceConfig"));
    if let Some(other) = other {
        return Err(ApiError::validation(format!("{other} of a training job cannot be updated here")));
    }
    if asked != Some(0) {
        let message = "ResourceConfig.KeepAlivePeriodInSeconds can only be updated to 0 here";
        return Err(ApiError::validation(message));
    }
    // So that a job that there is not is told from one whose instances are not kept.
    training.describe(name).await?;
    training.release(name).await?;
    Ok(Some(named(training, members)?))
}

fn named(training: &TrainingService, members: &Value) -> Result<Value, ApiError> {
    Ok(json!({ "TrainingJobArn": training.arn(required(members, "TrainingJobName")?) }))
}

/// The job that `ResourceArn` names.
fn job<'a>(training: &TrainingService, members: &'a Value) -> Result<&'a str, ApiError> {
    let arn = required(members, "ResourceArn")?;
    let rule = "name a training job of this account and Region, such as";
    training.named_by(arn).ok_or_else(|| {
        ApiError::constraint(arn, "resourceArn", &format!("{rule} {}", training.arn("my-job")))
    })
}

/// All of them: a job has 50 at most, which is the least that a page holds.
fn tag_list(tags: &BTreeMap<String, String>) -> Value {
    let tags: Vec<Value> = tags.iter().map(|(key, value)| json!({ "Key": key, "Value": value })).collect();
    json!({ "Tags": tags })
}
