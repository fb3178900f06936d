//! Reads operations in AWS JSON 1.1, from the header `X-Amz-Target` and the body.

use serde_json::Value;
use wire::events::http::HttpRequest;

use crate::error::ApiError;
use crate::list::{JobsQuery, Members, TuningsQuery};
use crate::operation::{CREATE, Operation};
use crate::rest::{named, shown};

/// Prefix of SageMaker's operations in the header.
const SERVICE: &str = "SageMaker.";
/// The member that names a tuning job.
const NAME: &str = "HyperParameterTuningJobName";
/// Maximum body of an operation other than Create, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Reads the operation.
pub(crate) fn read(request: &HttpRequest) -> Result<Operation, ApiError> {
    let target = request.header("x-amz-target").unwrap_or_default();
    let name = target.strip_prefix(SERVICE).ok_or_else(|| {
        let message = format!(
            "invalid X-Amz-Target '{}': expected an operation of SageMaker, for example \
             SageMaker.ListHyperParameterTuningJobs",
            shown(target)
        );
        ApiError::unknown_operation(message)
    })?;
    if name == CREATE {
        return Ok(Operation::Create(request.body.clone()));
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
        "ListHyperParameterTuningJobs" => Ok(Operation::List(TuningsQuery::read(&Members::Json(&body()?))?)),
        "ListTrainingJobsForHyperParameterTuningJob" => {
            let mut body = body()?;
            let tuning = tuning(&Members::Json(&body))?;
            if let Some(members) = body.as_object_mut() {
                members.remove(NAME);
            }
            Ok(Operation::ListJobs(tuning, JobsQuery::read(&Members::Json(&body))?))
        }
        _ => Err(ApiError::unknown_operation(format!(
            "unsupported operation {}: this endpoint has only operations of hyperparameter tuning jobs, so use \
             SageMaker's own endpoint",
            shown(name)
        ))),
    }
}

fn only_name(body: &Value) -> Result<String, ApiError> {
    let members = Members::Json(body);
    members.only(&[NAME])?;
    tuning(&members)
}

fn tuning(members: &Members<'_>) -> Result<String, ApiError> {
    let name = members.text(NAME)?.filter(|name| !name.is_empty());
    named(name.ok_or_else(|| ApiError::validation(format!("missing {NAME} (at '{NAME}')")))?)
}
