//! Reads operations in AWS JSON 1.1, from the header `X-Amz-Target` and the body.

use std::collections::BTreeMap;

use serde_json::Value;
use use_cases::describe::Place;
use wire::events::http::HttpRequest;

use crate::error::{ApiError, shortened};
use crate::list::{JobsQuery, Members, TuningsQuery};
use crate::operation::{CREATE, JobName, Operation, Resource};
use crate::rest::named;

/// Prefix of SageMaker's operations in the header.
const SERVICE: &str = "SageMaker.";
const NAME: &str = "HyperParameterTuningJobName";
const JOB: &str = "TrainingJobName";
/// Maximum body of an operation other than Create, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;

pub(crate) fn parse(request: &HttpRequest, place: &Place) -> Result<Operation, ApiError> {
    let target = request.header("x-amz-target").unwrap_or_default();
    let name = target.strip_prefix(SERVICE).ok_or_else(|| {
        let message = format!(
            "invalid X-Amz-Target '{}': expected an operation of SageMaker, for example \
             SageMaker.ListHyperParameterTuningJobs",
            shortened(target)
        );
        ApiError::unknown_operation(message)
    })?;
    if name == CREATE {
        return Ok(Operation::Create { body: request.body.clone(), is_idempotent: false });
    }
    let body = || -> Result<Value, ApiError> {
        if request.body.len() > BODY_BYTES_MAX {
            return Err(ApiError::serialization(format!(
                "the body is too large: expected at most {BODY_BYTES_MAX} bytes"
            )));
        }
        match serde_json::from_slice(&request.body) {
            Ok(value @ Value::Object(_)) => Ok(value),
            Ok(_) => Err(ApiError::serialization("invalid body: expected a JSON object")),
            Err(error) => Err(ApiError::serialization(format!("invalid JSON in the body: {error}"))),
        }
    };
    match name {
        "DescribeHyperParameterTuningJob" => Ok(Operation::Describe(only_name(&body()?)?)),
        "StopHyperParameterTuningJob" => Ok(Operation::Stop(only_name(&body()?)?)),
        "DeleteHyperParameterTuningJob" => Ok(Operation::Delete(only_name(&body()?)?)),
        "ListHyperParameterTuningJobs" => Ok(Operation::List(TuningsQuery::parse(&Members::Json(&body()?))?)),
        "ListTrainingJobsForHyperParameterTuningJob" => {
            let mut body = body()?;
            let tuning = tuning(&Members::Json(&body))?;
            if let Some(members) = body.as_object_mut() {
                members.remove(NAME);
            }
            Ok(Operation::ListJobs(tuning, JobsQuery::parse(&Members::Json(&body))?))
        }
        "DescribeTrainingJob" => Ok(Operation::DescribeJob(only_job(&body()?)?)),
        "StopTrainingJob" => Ok(Operation::StopJob(only_job(&body()?)?)),
        "ListTags" => {
            let body = body()?;
            let members = Members::Json(&body);
            members.only(&["ResourceArn", "NextToken", "MaxResults"])?;
            members.number("MaxResults", u64::MAX)?;
            // The only page has all tags.
            if members.text("NextToken")?.is_some_and(|token| !token.is_empty()) {
                return Err(ApiError::validation("invalid NextToken: no page has one (at 'NextToken')"));
            }
            Ok(Operation::ListTags(resource(&members, place)?))
        }
        "AddTags" => {
            let body = body()?;
            let members = Members::Json(&body);
            members.only(&["ResourceArn", "Tags"])?;
            Ok(Operation::AddTags(resource(&members, place)?, tags(&body["Tags"])?))
        }
        "Search" => Err(ApiError::validation(
            "unsupported operation Search: experiments and their trial components are in SageMaker, so search there; \
             ListHyperParameterTuningJobs and ListTrainingJobsForHyperParameterTuningJob list the jobs of this endpoint",
        )),
        _ => Err(ApiError::unknown_operation(format!(
            "unsupported operation {}: this endpoint has only operations of hyperparameter tuning jobs, so use \
             SageMaker's own endpoint",
            shortened(name)
        ))),
    }
}

fn only_name(body: &Value) -> Result<String, ApiError> {
    let members = Members::Json(body);
    members.only(&[NAME])?;
    tuning(&members)
}

/// Returns the training job in `TrainingJobName`. A name of another form belongs to no job of this endpoint.
fn only_job(body: &Value) -> Result<JobName, ApiError> {
    let members = Members::Json(body);
    members.only(&[JOB])?;
    let name = members.text(JOB)?.filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| ApiError::validation(format!("missing {JOB} (at '{JOB}')")))?;
    JobName::parse(name).ok_or_else(|| unknown_job(name))
}

/// Returns the error for a training job that no tuning job of this endpoint has.
pub(crate) fn unknown_job(name: &str) -> ApiError {
    ApiError::not_found(format!(
        "no tuning job of this endpoint has a training job {}: ask SageMaker's own endpoint about other training jobs",
        shortened(name)
    ))
}

/// Returns the resource in `ResourceArn`. A resource of another account or Region is no resource of this endpoint.
fn resource(members: &Members<'_>, place: &Place) -> Result<Resource, ApiError> {
    let arn = members.text("ResourceArn")?.unwrap_or_default();
    let (kind, name) = arn.rsplit(':').next().and_then(|last| last.split_once('/')).unwrap_or_default();
    let is_known = matches!(kind, "hyper-parameter-tuning-job" | "training-job");
    if is_known && !place.has(arn) {
        return Err(ApiError::not_found(format!(
            "no resource of this endpoint has the ARN {}",
            shortened(arn)
        )));
    }
    match kind {
        "hyper-parameter-tuning-job" => Ok(Resource::Tuning(named(name)?)),
        "training-job" => JobName::parse(name).map(Resource::Job).ok_or_else(|| unknown_job(name)),
        _ => Err(ApiError::validation(
            "invalid ResourceArn: expected the ARN of a tuning job of this endpoint, or of one of its training jobs \
             (at 'ResourceArn')",
        )),
    }
}

fn tags(value: &Value) -> Result<BTreeMap<String, String>, ApiError> {
    let wrong =
        || ApiError::validation("invalid Tags: expected a list of tags with a Key and a Value (at 'Tags')");
    let list = value.as_array().ok_or_else(wrong)?;
    let pair = |tag: &Value| Some((tag["Key"].as_str()?.to_owned(), tag["Value"].as_str()?.to_owned()));
    let tags: BTreeMap<_, _> =
        list.iter().map(|tag| pair(tag).ok_or_else(wrong)).collect::<Result<_, _>>()?;
    if tags.len() == list.len() {
        Ok(tags)
    } else {
        Err(ApiError::validation("invalid Tags: a key is twice in the list (at 'Tags')"))
    }
}

fn tuning(members: &Members<'_>) -> Result<String, ApiError> {
    let name = members.text(NAME)?.filter(|name| !name.is_empty());
    named(name.ok_or_else(|| ApiError::validation(format!("missing {NAME} (at '{NAME}')")))?)
}
