//! The routes of the service: `POST /` for every operation, `GET /ping` for scripts that wait for the service.
//!
//! Requests are not authenticated, whether signed or not. The service refuses requests of web pages, so that no page
//! can start a program through a user's browser.

use std::future::Future;

use axum::extract::State;
use axum::http::header::{HeaderName, HeaderValue, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router, middleware};
use local::training::TrainingService;
use server::{Limits, Unread, WholeBody, request_id};
use tokio::net::TcpListener;

use crate::operations;
use crate::protocol::{self, Answer, ApiError};

/// Above the largest request that SageMaker accepts: 100 hyperparameters of 2,500 characters, escaped.
const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
const REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");

/// Serves `training` on `listener` until `until` completes.
pub(crate) async fn serve(listener: TcpListener, training: TrainingService, until: impl Future<Output = ()>) {
    let limits = Limits { body_bytes: BODY_BYTES_MAX, ..Limits::default() };
    let router = Router::new()
        .route("/", post(operation))
        .route("/ping", get("ok\n"))
        .fallback(not_found)
        .method_not_allowed_fallback(not_found)
        .layer(middleware::map_response(add_request_id))
        .with_state(training);
    server::serve(listener, limits, router, until).await;
}

async fn not_found() -> (StatusCode, &'static str) {
    (StatusCode::NOT_FOUND, "not found: this service has POST / and GET /ping\n")
}

async fn operation(
    State(training): State<TrainingService>,
    headers: HeaderMap,
    Extension(body): Extension<WholeBody>,
) -> Response {
    protocol::response(perform(&training, &headers, body).await)
}

async fn perform(
    training: &TrainingService,
    headers: &HeaderMap,
    body: WholeBody,
) -> Result<Answer, ApiError> {
    if headers.contains_key(ORIGIN) {
        return Err(ApiError::denied("requests from web pages are not allowed"));
    }
    let name = protocol::operation(headers)?;
    let body = body.map_err(|unread| match unread {
        Unread::TooLarge => ApiError::too_large(BODY_BYTES_MAX),
        Unread::TooSlow | Unread::Broken => {
            ApiError::serialization("The request body did not arrive in full")
        }
    })?;
    operations::perform(training, protocol::region(headers), name, &protocol::read(&body)?).await
}

async fn add_request_id(mut response: Response) -> Response {
    if let Ok(id) = HeaderValue::from_str(&request_id()) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}
