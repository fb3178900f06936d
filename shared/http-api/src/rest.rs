//! Reads operations in JSON over HTTP, from the method and the path.

use wire::events::http::HttpRequest;

use crate::error::{ApiError, shortened};
use crate::list::{JobsQuery, MAX_RESULTS_MAX, Members, TuningsQuery};
use crate::operation::{JobName, Operation};

/// The routes in API Gateway's format, as in the stack's template. The last is for AWS JSON.
pub const ROUTES: [&str; 10] = [
    "POST /tuning-jobs",
    "GET /tuning-jobs",
    "GET /tuning-jobs/{name}",
    "PATCH /tuning-jobs/{name}",
    "DELETE /tuning-jobs/{name}",
    "POST /tuning-jobs/{name}/stop",
    "POST /tuning-jobs/{name}/training-jobs/{job}/stop",
    "GET /tuning-jobs/{name}/{proxy+}",
    "GET /openapi.json",
    "POST /",
];

/// The paths of the REST routes, with their methods. Only these are read, and the document has exactly these.
pub const PATHS: [(&str, &str); 11] = [
    ("/tuning-jobs", "GET, POST"),
    ("/tuning-jobs/{name}", "DELETE, GET, PATCH"),
    ("/tuning-jobs/{name}/stop", "POST"),
    ("/tuning-jobs/{name}/training-jobs", "GET"),
    ("/tuning-jobs/{name}/training-jobs/{job}", "GET"),
    ("/tuning-jobs/{name}/training-jobs/{job}/stop", "POST"),
    ("/tuning-jobs/{name}/decisions", "GET"),
    ("/tuning-jobs/{name}/rows", "GET"),
    ("/tuning-jobs/{name}/cost", "GET"),
    ("/tuning-jobs/{name}/report", "GET"),
    ("/openapi.json", "GET"),
];

/// The list of costs, in its tokens.
pub(crate) const COST: &str = "cost";
/// The list of rows, in its tokens.
pub(crate) const ROWS: &str = "rows";
/// Maximum number of rows in a page. Most have less than a kilobyte.
pub(crate) const ROWS_MAX: u64 = 200;
/// Maximum number of steps in a page of decisions. A step can have tens of kilobytes.
pub(crate) const STEPS_MAX: u64 = 50;

pub(crate) fn parse(request: &HttpRequest) -> Result<Operation, ApiError> {
    let segments: Vec<&str> = request.path.split('/').skip(1).collect();
    let method = request.method.as_str();
    let body = || request.body.clone();
    let query = Members::Texts(&request.query);
    let unknown = || {
        let path = shortened(&request.path);
        ApiError::unknown_operation(format!("unknown path {path}: tuning jobs are at /tuning-jobs"))
    };
    let allowed = methods(&segments).ok_or_else(unknown)?;
    if !allowed.split(", ").any(|one| one == method) {
        return Err(ApiError::method(shortened(method), allowed));
    }
    match (method, segments.as_slice()) {
        ("POST", ["tuning-jobs"]) => Ok(Operation::Create { body: body(), is_idempotent: true }),
        ("GET", ["tuning-jobs"]) => Ok(Operation::List(TuningsQuery::parse(&query)?)),
        ("GET", ["openapi.json"]) => Ok(Operation::Document),
        ("GET", ["tuning-jobs", name]) => Ok(Operation::Describe(named(name)?)),
        ("PATCH", ["tuning-jobs", name]) => Ok(Operation::Change(named(name)?, body())),
        ("DELETE", ["tuning-jobs", name]) => Ok(Operation::Delete(named(name)?)),
        ("POST", ["tuning-jobs", name, "stop"]) => Ok(Operation::Stop(named(name)?)),
        ("GET", ["tuning-jobs", name, "training-jobs"]) => {
            Ok(Operation::ListJobs(named(name)?, JobsQuery::parse(&query)?))
        }
        ("GET", ["tuning-jobs", name, "training-jobs", job]) => Ok(Operation::Job(job_of(name, job)?)),
        ("POST", ["tuning-jobs", name, "training-jobs", job, "stop"]) => {
            Ok(Operation::StopJob(job_of(name, job)?))
        }
        ("GET", ["tuning-jobs", name, "decisions"]) => {
            let limit = page_limit(&query, STEPS_MAX)?;
            let after = query.next_token()?.unwrap_or("0").parse().map_err(|_| {
                ApiError::validation(
                    "invalid NextToken: expected the NextToken of the previous page of decisions (at 'NextToken')",
                )
            })?;
            Ok(Operation::Decisions { tuning: named(name)?, after, limit })
        }
        ("GET", ["tuning-jobs", name, "rows"]) => {
            let limit = page_limit(&query, ROWS_MAX)?;
            Ok(Operation::Rows { tuning: named(name)?, after: query.after(ROWS)?, limit })
        }
        ("GET", ["tuning-jobs", name, "report"]) => Ok(Operation::Report(named(name)?)),
        ("GET", ["tuning-jobs", name, "cost"]) => {
            let limit = page_limit(&query, MAX_RESULTS_MAX)?;
            Ok(Operation::Cost { tuning: named(name)?, after: query.after(COST)?, limit })
        }
        _ => Err(unknown()),
    }
}

/// Returns the number of entries of a page that has no filter, `most` without `MaxResults`.
fn page_limit(query: &Members<'_>, most: u64) -> Result<usize, ApiError> {
    query.only(&["NextToken", "MaxResults"])?;
    let limit = query.number("MaxResults", most)?.unwrap_or(most);
    Ok(usize::try_from(limit).unwrap_or(1))
}

fn methods(path: &[&str]) -> Option<&'static str> {
    let fits = |known: &str| {
        let mut parts = known.split('/').skip(1);
        let begins =
            path.iter().all(|given| parts.next().is_some_and(|one| one.starts_with('{') || one == *given));
        begins && parts.next().is_none()
    };
    PATHS.into_iter().find(|(known, _)| fits(known)).map(|(_, methods)| methods)
}

/// Validates a name of the caller. No tuning job has an invalid name, so it is reported as missing.
pub(crate) fn named(name: &str) -> Result<String, ApiError> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if (1..=32).contains(&name.len()) && name.bytes().all(is_name) {
        return Ok(name.to_owned());
    }
    Err(ApiError::not_found(format!("no hyperparameter tuning job is named {}", shortened(name))))
}

fn job_of(tuning: &str, job: &str) -> Result<JobName, ApiError> {
    let tuning = named(tuning)?;
    let found = JobName::parse(job).filter(|job| job.tuning.eq_ignore_ascii_case(&tuning));
    let unknown =
        || ApiError::not_found(format!("tuning job {tuning} has no training job {}", shortened(job)));
    found.ok_or_else(unknown)
}
