//! The HTTP API: tuning jobs over two protocols, one set of operations.
//!
//! `/tuning-jobs…` is JSON over HTTP; `POST /` is AWS JSON 1.1, in which clients of SageMaker speak. Both become an
//! [`Operation`], which is performed by `service`'s use cases. The same code answers behind API Gateway and on one machine;
//! whoever runs it has authenticated the caller. Must never call a training service, and never decide.
#![warn(missing_docs)]

mod amz;
mod answer;
mod error;
mod jobs;
mod list;
mod names;
mod operation;
mod perform;
mod rest;

use serde_json::Value;
use service::describe::Place;
use service::ports::table::Table;
use service::ports::{Clock, Prices};
use service::submit::Submit;
use wire::events::http::{HttpRequest, HttpResponse};

pub use error::{ApiError, Cause};
pub use operation::Operation;
pub use rest::ROUTES;

/// The API with what it needs.
#[derive(Debug)]
pub struct Api<T, P, C> {
    /// Takes requests; its store and its clock are used for all else.
    pub submit: Submit<T, P, C>,
}

/// An answer, and what is worth telling of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// For the caller.
    pub response: HttpResponse,
    /// What was asked for, as AWS names it; empty if nothing that there is.
    pub operation: &'static str,
    /// Name of the tuning job that was named, as the caller wrote it.
    pub tuning: Option<String>,
    /// Its id, once it is known that there is such a tuning job: also that of one that was just submitted.
    pub id: Option<String>,
    /// Why it was refused or failed.
    pub error: Option<ApiError>,
}

impl Answered {
    /// The answer to a request of which nothing is known but why it is not answered.
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

impl<T: Table, P: Prices, C: Clock> Api<T, P, C> {
    /// Answers an invocation's payload, see [`Self::handle`].
    pub async fn answer(&self, payload: &Value, place: &Place) -> Answered {
        match HttpRequest::parse(payload) {
            Ok(request) => self.handle(&request, place).await,
            Err(error) => Answered::error(error.into()),
        }
    }

    /// Answers a request; `place` is where the tuning jobs are, as far as names go.
    pub async fn handle(&self, request: &HttpRequest, place: &Place) -> Answered {
        let is_amz = request.path == "/" && request.method == "POST";
        let operation = if is_amz { amz::read(request) } else { rest::read(request) };
        let mut id = None;
        let (name, tuning, outcome) = match operation {
            Err(error) => ("", None, Err(error)),
            Ok(operation) => {
                let (name, tuning) = (operation.name(), operation.tuning().map(str::to_owned));
                // Boxed: the future of all operations together is too deep for the compiler of a program.
                (name, tuning, Box::pin(self.perform(&operation, place, &mut id)).await)
            }
        };
        let (response, error) = match outcome {
            Ok(body) if is_amz => (answer::amz(&body), None),
            Ok(body) => (answer::rest(name, &body), None),
            Err(error) => {
                (if is_amz { answer::amz_error(&error) } else { answer::rest_error(&error) }, Some(error))
            }
        };
        let response = response.header("x-amzn-requestid", &request.request_id);
        Answered { response, operation: name, tuning, id, error }
    }
}
