//! Converts requests and responses between axum and the API.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Router};
use http_api::{Answered, ApiError};
use wire::events::http::{HttpRequest, HttpResponse, MAX_BODY_BYTES};

use crate::serve::{Limits, Unread, WholeBody};

/// The maximum number of requests at once. Their bodies use up to 192 MB.
const REQUESTS_MAX: usize = 32;

/// Returns the limits of a server of the API: the body's is that of API Gateway.
pub fn api_limits() -> Limits {
    Limits { body_bytes: MAX_BODY_BYTES, requests: REQUESTS_MAX, ..Limits::default() }
}

/// Returns a router whose requests `handle` answers. A merged router may add methods to a path, such as `GET /`.
pub fn routes<F, A>(handle: F) -> Router
where
    F: Fn(HttpRequest) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = HttpResponse> + Send + 'static,
{
    let answer = move |Extension(body): Extension<WholeBody>, request: Request| {
        let handle = handle.clone();
        async move {
            let (head, _) = request.into_parts();
            let request = read(&head);
            let response = match body {
                Ok(body) => handle(HttpRequest { body: body.to_vec(), ..request }).await,
                Err(unread) => Answered::refused(&request, error(unread)).response,
            };
            write(response)
        }
    };
    Router::new()
        .route("/", post(answer.clone()))
        .method_not_allowed_fallback(answer.clone())
        .fallback(answer)
}

/// Converts the head of a request. The names of headers are in lower case already.
pub(crate) fn read(head: &Parts) -> HttpRequest {
    let query = form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes());
    HttpRequest {
        method: head.method.as_str().to_owned(),
        path: head.uri.path().to_owned(),
        query: joined(query.map(|(name, value)| (name.into_owned(), value.into_owned()))),
        headers: joined(headers(&head.headers)),
        body: Vec::new(),
        caller: None,
        request_id: request_id(),
    }
}

fn headers(map: &HeaderMap) -> impl Iterator<Item = (String, String)> + '_ {
    map.iter().filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
}

/// Joins several values of one name by commas, as API Gateway does.
fn joined(pairs: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let mut map: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in pairs {
        map.entry(name)
            .and_modify(|joined| {
                joined.push(',');
                joined.push_str(&value);
            })
            .or_insert(value);
    }
    map
}

pub(crate) fn write(response: HttpResponse) -> Response {
    let mut builder = Response::builder().status(response.status);
    for (name, value) in &response.headers {
        builder = builder.header(name, value);
    }
    builder
        .body(Body::from(response.body))
        .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

fn error(unread: Unread) -> ApiError {
    match unread {
        Unread::TooLarge => ApiError::of_host(
            "RequestEntityTooLargeException",
            413,
            format!("the request body is too large: expected at most {MAX_BODY_BYTES} bytes"),
        ),
        Unread::TooSlow => {
            ApiError::of_host("RequestTimeoutException", 408, "the request body did not arrive in time")
        }
        Unread::Broken => {
            ApiError::of_host("SerializationException", 400, "the request body did not arrive in full")
        }
    }
}

/// Returns a random ID in the form of a UUID.
pub fn request_id() -> String {
    // Each `RandomState` has its own random keys.
    let random = || RandomState::new().hash_one("request");
    let (high, low) = (random(), random());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        0x8000 | ((low >> 48) & 0x3fff),
        low & 0xffff_ffff_ffff
    )
}
