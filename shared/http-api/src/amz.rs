//! AWS JSON 1.1: which operation an `X-Amz-Target` and a body ask for.

use serde_json::Value;
use wire::events::http::HttpRequest;

use crate::error::ApiError;
use crate::list::{JobsQuery, Members, TuningsQuery};
use crate::operation::{CREATE, Operation};
use crate::rest::{named, shown};

/// What SageMaker's operations begin with in the header.
const SERVICE: &str = "SageMaker.";
/// The member that names a tuning job.
const NAME: &str = "HyperParameterTuningJobName";
/// Longest body of an operation that only names and filters.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Reads the operation.
pub(crate) fn read(request: &HttpRequest) -> Result<Operation, ApiError> {
    let target = request.header("x-amz-target").unwrap_or_default();
    let name = target.strip_prefix(SERVICE).ok_or_else(|| {
        let message =
            format!("the header X-Amz-Target must name an operation of SageMaker, not '{}'", shown(target));
        ApiError::unknown_operation(message)
    })?;
    if name == CREATE {
        return Ok(Operation::Create(request.body.clone()));
    }
    let body = || -> Result<Value, ApiError> {
        if request.body.len() > BODY_BYTES_MAX {
            return Err(ApiError::serialization(format!("the body has more than {BODY_BYTES_MAX} bytes")));
        }
        match serde_json::from_slice(&request.body) {
            Ok(value @ Value::Object(_)) => Ok(value),
            Ok(_) => Err(ApiError::serialization("the body must be a JSON object")),
            Err(error) => Err(ApiError::serialization(format!("the body is not JSON: {error}"))),
        }
    };
    match name {
        "DescribeHyperParameterTuningJob" => Ok(Operation::Describe(only_name(&body()?)?)),
        "StopHyperParameterTuningJob" => Ok(Operation::Stop(only_name(&body()?)?)),
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
            "{} is not an operation of this endpoint, which has those of hyperparameter tuning jobs only: for training \
             jobs and all else use SageMaker's own endpoint",
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
    named(name.ok_or_else(|| ApiError::validation(format!("{NAME} is required (at '{NAME}')")))?)
}
