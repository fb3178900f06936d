//! The paths of the service: `POST /` for every operation, `GET /ping` for scripts that wait for it.
//!
//! Requests are not authenticated, signed or not. Must never do what a web page of elsewhere asks in a person's browser.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN};
use http::{Method, Response, StatusCode};
use http_server::{Limits, Request, Unread};
use local::training::TrainingService;
use tokio::net::TcpListener;

use crate::operations;
use crate::protocol::{self, Answer, ApiError};

/// Above the largest request that SageMaker takes: a hundred hyperparameters of 2,500 characters, escaped.
const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
const REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");

/// Answers until `until`.
pub(crate) async fn serve(listener: TcpListener, training: TrainingService, until: impl Future<Output = ()>) {
    let limits = Limits { body_bytes: BODY_BYTES_MAX, ..Limits::default() };
    let handler = move |request| answer(training.clone(), request);
    http_server::serve(listener, limits, handler, until).await;
}

async fn answer(training: TrainingService, request: Request) -> http_server::Response {
    let mut response = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/ping") => Response::new(Bytes::from_static(b"ok\n")),
        (&Method::POST, "/") => protocol::response(operation(&training, &request).await),
        _ => {
            let mut response = Response::new(Bytes::from_static(b"POST / and GET /ping are all there is\n"));
            *response.status_mut() = StatusCode::NOT_FOUND;
            response
        }
    };
    if !response.headers().contains_key(CONTENT_TYPE) {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    }
    if let Ok(id) = HeaderValue::from_str(&request_id()) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

async fn operation(training: &TrainingService, request: &Request) -> Result<Answer, ApiError> {
    let headers = request.headers();
    if headers.contains_key(ORIGIN) {
        return Err(ApiError::denied("requests of web pages are not answered"));
    }
    let name = protocol::operation(headers)?;
    let body = request.body().as_ref().map_err(|unread| match unread {
        Unread::TooLarge => ApiError::too_large(BODY_BYTES_MAX),
        Unread::TooSlow | Unread::Broken => ApiError::serialization("the request's body did not arrive"),
    })?;
    operations::perform(training, name, &protocol::read(body)?).await
}

/// An id in the form of a UUID, different for every request.
fn request_id() -> String {
    // Each state has keys of its own.
    let drawn = || RandomState::new().hash_one("request");
    let (high, low) = (drawn(), drawn());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        0x8000 | ((low >> 48) & 0x3fff),
        low & 0xffff_ffff_ffff
    )
}
