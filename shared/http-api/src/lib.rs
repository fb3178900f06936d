//! The HTTP API: tuning jobs over two protocols, with one set of operations.
//!
//! `/tuning-jobs…` is JSON over HTTP; `POST /` is AWS JSON 1.1, the protocol of SageMaker's clients. Both become an
//! [`Operation`], which the use cases perform. The same code runs behind API Gateway and on one machine; its host
//! authenticates the caller. Must never start or stop a training job, or decide about trials.
#![warn(missing_docs)]

mod access;
mod amz;
mod answer;
mod error;
mod jobs;
mod list;
mod names;
mod openapi;
mod operation;
mod perform;
mod rest;

use operation::REPORT;
use serde_json::Value;
use use_cases::describe::Place;
use use_cases::ports::table::Table;
use use_cases::ports::{Clock, Prices};
use use_cases::submit::Submit;
use wire::events::http::{HttpRequest, HttpResponse};

pub use access::{Access, Principals};
pub use error::{ApiError, Cause};
pub use operation::{JobName, Operation, Resource};
pub use rest::{PATHS, ROUTES};

/// The API.
#[derive(Debug)]
pub struct Api<T, P, C> {
    /// Accepts requests. The other operations use its store and its clock.
    pub submit: Submit<T, P, C>,
    /// Who may use it.
    pub access: Access,
    /// Name of the stack, for the tags of its training jobs.
    pub stack: String,
}

/// A response, with details for the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The response for the caller.
    pub response: HttpResponse,
    /// The operation by AWS's name; empty if it is unknown.
    pub operation: &'static str,
    /// Name of the tuning job, as the caller wrote it.
    pub tuning: Option<String>,
    /// ID of the tuning job if it exists, also if it was just submitted.
    pub id: Option<String>,
    /// The error, if the request was refused or failed.
    pub error: Option<ApiError>,
}

impl Answered {
    /// Returns the response to a request that its host refuses or cannot perform, in the protocol of the request.
    pub fn refused(request: &HttpRequest, error: ApiError) -> Self {
        let response = if is_amz(request) { answer::amz_error(&error) } else { answer::rest_error(&error) };
        Self { response: response.header("x-amzn-requestid", &request.request_id), ..Self::error(error) }
    }

    /// Returns the response to an unreadable or unfinished request.
    pub fn error(error: ApiError) -> Self {
        Self {
            response: answer::rest_error(&error),
            operation: "",
            tuning: None,
            id: None,
            error: Some(error),
        }
    }
}

/// Returns whether a request uses AWS JSON, which has one path.
fn is_amz(request: &HttpRequest) -> bool {
    request.path == "/" && request.method == "POST"
}

impl<T: Table, P: Prices, C: Clock> Api<T, P, C> {
    /// Handles a request; `place` has the account and Region for ARNs.
    pub async fn handle(&self, request: &HttpRequest, place: &Place) -> Answered {
        let is_amz = is_amz(request);
        let operation = if is_amz { amz::parse(request, place) } else { rest::parse(request) };
        let mut id = None;
        let (name, tuning, outcome) = match operation {
            Err(error) => ("", None, Err(error)),
            Ok(operation) => {
                let (name, tuning) = (operation.name(), operation.tuning().map(str::to_owned));
                // Boxed, because the future of all operations is too deep for the compiler.
                let caller = self.access.caller(request.caller.as_deref());
                let outcome = match caller.and_then(|caller| caller.check(&operation).map(|()| caller)) {
                    Ok(caller) => Box::pin(self.perform(&operation, &caller, place, &mut id)).await,
                    Err(error) => Err(error),
                };
                (name, tuning, outcome)
            }
        };
        let (response, error) = match outcome {
            Ok(body) if is_amz => (answer::amz(&body), None),
            Ok(Value::String(page)) if name == REPORT => (answer::page(page), None),
            Ok(body) => (answer::rest(name, &body), None),
            Err(error) => {
                (if is_amz { answer::amz_error(&error) } else { answer::rest_error(&error) }, Some(error))
            }
        };
        let response = response.header("x-amzn-requestid", &request.request_id);
        Answered { response, operation: name, tuning, id, error }
    }
}
