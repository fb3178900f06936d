//! Responses in the format of each protocol.

use serde_json::{Value, json};
use wire::events::http::HttpResponse;
use wire::request::ErrorBody;

use crate::error::ApiError;
use crate::operation::CREATE;

/// Returns a success over AWS JSON.
pub(crate) fn amz(body: &Value) -> HttpResponse {
    HttpResponse::amz_json(200, body)
}

/// Returns an error over AWS JSON.
pub(crate) fn amz_error(error: &ApiError) -> HttpResponse {
    HttpResponse::amz_json(error.status, &error_body(error))
}

/// Returns a success over REST: status 201 if a tuning job was created, otherwise 200.
pub(crate) fn rest(operation: &str, body: &Value) -> HttpResponse {
    json_body(if operation == CREATE && body["Existed"] != true { 201 } else { 200 }, body)
}

/// Returns an error over REST.
pub(crate) fn rest_error(error: &ApiError) -> HttpResponse {
    let response = json_body(error.rest_status, &error_body(error)).header("x-amzn-errortype", error.code);
    match error.allow {
        Some(methods) => response.header("allow", methods),
        None => response,
    }
}

pub(crate) fn page(page: String) -> HttpResponse {
    HttpResponse::new(200, page)
        .header("content-type", "text/html; charset=utf-8")
        .header("cache-control", "no-store")
}

fn json_body(status: u16, body: &Value) -> HttpResponse {
    // Proxies must not cache a status that changes every second.
    HttpResponse::new(status, body.to_string())
        .header("content-type", "application/json")
        .header("cache-control", "no-store")
}

fn error_body(error: &ApiError) -> Value {
    json!(ErrorBody {
        code: Some(error.code.to_owned()),
        message: Some(error.message.clone()),
        capital_message: Some(error.message.clone()),
        violations: error.violations.clone(),
    })
}
