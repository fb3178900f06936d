//! Requests and responses of API Gateway's HTTP API, payload format 2.0.
//!
//! Header names are case-insensitive and are stored in lower case. API Gateway sends a body of
//! `application/x-amz-json-1.1` as base64; only the flag shows it. This module does not authenticate: API Gateway does,
//! and reports the caller in [`HttpRequest::caller`].

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{EventError, Unreadable, decode_base64, field};

/// Maximum size of a body, in bytes.
pub const MAX_BODY_BYTES: usize = 6 * 1024 * 1024;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpRequest {
    /// Method, such as `POST`.
    pub method: String,
    /// Path without the stage, such as `/`.
    pub path: String,
    /// Query parameters. Commas join several values of one parameter.
    pub query: BTreeMap<String, String>,
    /// Headers, with names in lower case. Commas join several values of one header.
    pub headers: BTreeMap<String, String>,
    /// Decoded body.
    pub body: Vec<u8>,
    /// ARN of the caller; `None` unless the API uses IAM authentication.
    pub caller: Option<String>,
    /// Request ID, for logs and for the response header; empty if absent.
    pub request_id: String,
}

impl HttpRequest {
    /// Reads the payload of an invocation.
    pub fn parse(event: &Value) -> Result<Self, EventError> {
        if field::text(event, "version")? != "2.0" {
            return Err(Unreadable::Field { path: "version", expected: "2.0" }.into());
        }
        let context = field::object(event, "requestContext")?;
        let http = field::object(context, "requestContext.http")?;
        let stage = field::optional_text(context, "requestContext.stage")?;
        let caller = context.pointer("/authorizer/iam/userArn").and_then(Value::as_str);
        let request_id = field::optional_text(context, "requestContext.requestId")?;
        Ok(Self {
            method: field::text(http, "requestContext.http.method")?.to_owned(),
            path: without_stage(field::text(event, "rawPath")?, stage).to_owned(),
            query: texts(event, "queryStringParameters", str::to_owned),
            headers: texts(event, "headers", str::to_ascii_lowercase),
            body: body(event)?,
            caller: caller.map(str::to_owned),
            request_id: request_id.unwrap_or_default().to_owned(),
        })
    }

    /// Returns the header `name`, which must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Returns the payload as API Gateway sends it, for hosts that emulate API Gateway.
    pub fn encode(&self) -> Value {
        let mut context = json!({
            "http": {"method": self.method, "path": self.path, "protocol": "HTTP/1.1"},
            "requestId": self.request_id,
            "stage": DEFAULT_STAGE,
        });
        if let Some(caller) = &self.caller {
            context["authorizer"] = json!({"iam": {"userArn": caller}});
        }
        json!({
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": self.path,
            "rawQueryString": "",
            "queryStringParameters": self.query,
            "headers": self.headers,
            "requestContext": context,
            "body": STANDARD.encode(&self.body),
            "isBase64Encoded": true,
        })
    }
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// HTTP status code.
    pub status: u16,
    /// Headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Body.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// Returns a response without headers.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: BTreeMap::new(), body: body.into() }
    }

    /// Returns a response in AWS's JSON 1.1 protocol, which AMT's clients expect.
    pub fn amz_json(status: u16, body: &Value) -> Self {
        Self::new(status, body.to_string()).header("content-type", "application/x-amz-json-1.1")
    }

    /// Returns the response with header `name` added or replaced.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_ascii_lowercase(), value.to_owned());
        self
    }

    /// Returns the payload that Lambda passes to API Gateway. A body that is not UTF-8 is sent as base64.
    pub fn encode(&self) -> Value {
        let (body, is_base64) = match std::str::from_utf8(&self.body) {
            Ok(text) => (text.to_owned(), false),
            Err(_) => (STANDARD.encode(&self.body), true),
        };
        json!({
            "statusCode": self.status,
            "headers": self.headers,
            "body": body,
            "isBase64Encoded": is_base64,
        })
    }

    /// Reads the result of [`Self::encode`], for hosts that emulate API Gateway.
    pub fn parse(response: &Value) -> Result<Self, EventError> {
        let status = field::optional_number(response, "statusCode")?
            .and_then(|status| u16::try_from(status).ok())
            .ok_or(Unreadable::Field { path: "statusCode", expected: "an HTTP status code" })?;
        Ok(Self {
            status,
            headers: texts(response, "headers", str::to_ascii_lowercase),
            body: body(response)?,
        })
    }
}

/// Name of the default stage, which is never part of a path.
const DEFAULT_STAGE: &str = "$default";

/// Returns the path without a named stage. API Gateway includes the stage in `rawPath`.
fn without_stage<'a>(path: &'a str, stage: Option<&str>) -> &'a str {
    let stage = stage.filter(|stage| !stage.is_empty() && *stage != DEFAULT_STAGE);
    let Some(rest) = stage.and_then(|stage| path.strip_prefix('/')?.strip_prefix(stage)) else { return path };
    match rest {
        "" => "/",
        rest if rest.starts_with('/') => rest,
        _ => path,
    }
}

/// Returns the string members of an object, and skips members of other types.
fn texts(object: &Value, name: &str, key: impl Fn(&str) -> String) -> BTreeMap<String, String> {
    let empty = Map::new();
    let map = field::present(object, name).and_then(Value::as_object).unwrap_or(&empty);
    map.iter().filter_map(|(name, value)| Some((key(name), value.as_str()?.to_owned()))).collect()
}

fn body(object: &Value) -> Result<Vec<u8>, EventError> {
    let text = field::optional_text(object, "body")?.unwrap_or_default();
    let is_base64 = match field::present(object, "isBase64Encoded") {
        None => false,
        Some(flag) => {
            flag.as_bool().ok_or(Unreadable::Field { path: "isBase64Encoded", expected: "true or false" })?
        }
    };
    // Four characters of base64 encode three bytes.
    let length_bytes = if is_base64 { text.len() / 4 * 3 } else { text.len() };
    if length_bytes > MAX_BODY_BYTES {
        return Err(EventError::TooLarge { what: "the body", limit_bytes: MAX_BODY_BYTES });
    }
    if is_base64 { Ok(decode_base64(text, "body")?) } else { Ok(text.as_bytes().to_vec()) }
}
