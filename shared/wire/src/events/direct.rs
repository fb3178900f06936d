//! Requests and results of direct invocations of a function, without API Gateway.
//!
//! A request is `{"method": …, "path": …, "query": {…}, "body": …}`, a result `{"status": …, "body": …}`. Every caller
//! is [`CALLER`]: Lambda passes no identity of the caller, so all other members of a payload, such as `requestContext`,
//! are ignored.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::http::{HttpRequest, HttpResponse, MAX_BODY_BYTES};
use super::{EventError, Unreadable, field};

/// The caller of every direct invocation. It is not an ARN, so it is no principal of IAM.
pub const CALLER: &str = "lambda:invoke";

/// Reads the payload of a direct invocation.
pub fn parse(event: &Value) -> Result<HttpRequest, EventError> {
    if !event.is_object() {
        let expected = r#"an object such as {"method": "GET", "path": "/tuning-jobs"}"#;
        return Err(Unreadable::Field { path: "payload", expected }.into());
    }
    let path = field::text(event, "path")?;
    if !path.starts_with('/') || path.contains('?') {
        let expected = "a path such as /tuning-jobs, with its parameters in query";
        return Err(Unreadable::Field { path: "path", expected }.into());
    }
    Ok(HttpRequest {
        method: field::text(event, "method")?.to_owned(),
        path: path.to_owned(),
        query: query(event)?,
        body: body(event)?,
        caller: Some(CALLER.to_owned()),
        ..HttpRequest::default()
    })
}

/// Returns the payload of a request, for callers. A JSON object becomes a member, any other body a text.
pub fn encode(request: &HttpRequest) -> Value {
    let mut event = json!({"method": request.method, "path": request.path});
    if !request.query.is_empty() {
        event["query"] = json!(request.query);
    }
    if !request.body.is_empty() {
        event["body"] = match serde_json::from_slice(&request.body) {
            Ok(object @ Value::Object(_)) => object,
            _ => text(&request.body),
        };
    }
    event
}

/// Returns the result for a response. A JSON body becomes a member, so that a workflow can refer to its fields.
pub fn encode_result(response: &HttpResponse) -> Value {
    let body = serde_json::from_slice(&response.body).unwrap_or_else(|_| text(&response.body));
    json!({"status": response.status, "body": body})
}

/// Reads the result of [`encode_result`], for callers.
pub fn parse_result(result: &Value) -> Result<HttpResponse, EventError> {
    let status = field::optional_number(result, "status")?
        .and_then(|status| u16::try_from(status).ok())
        .filter(|status| (100..600).contains(status))
        .ok_or(Unreadable::Field { path: "status", expected: "an HTTP status code" })?;
    let body = result.get("body").ok_or(Unreadable::Field { path: "body", expected: "a JSON value" })?;
    // A text is a body that is not JSON, such as a page.
    let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    Ok(HttpResponse::new(status, body))
}

/// Returns the parameters as texts. A workflow may pass numbers.
fn query(event: &Value) -> Result<BTreeMap<String, String>, Unreadable> {
    let invalid = || Unreadable::Field { path: "query", expected: "an object of strings and numbers" };
    let empty = Map::new();
    let members = match field::present(event, "query") {
        None => &empty,
        Some(query) => query.as_object().ok_or_else(invalid)?,
    };
    let mut read = BTreeMap::new();
    for (name, value) in members {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            // A workflow cannot omit a parameter by a condition.
            Value::Null => continue,
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => return Err(invalid()),
        };
        read.insert(name.clone(), text);
    }
    Ok(read)
}

fn body(event: &Value) -> Result<Vec<u8>, Unreadable> {
    let body = match field::present(event, "body") {
        None => return Ok(Vec::new()),
        Some(Value::String(text)) => text.as_bytes().to_vec(),
        Some(body @ Value::Object(_)) => body.to_string().into_bytes(),
        Some(_) => return Err(Unreadable::Field { path: "body", expected: "an object or its JSON text" }),
    };
    // The payload is within Lambda's limit, but numbers can grow when they are written again.
    if body.len() > MAX_BODY_BYTES {
        return Err(Unreadable::Field { path: "body", expected: "at most 6 MB of JSON" });
    }
    Ok(body)
}

fn text(bytes: &[u8]) -> Value {
    String::from_utf8_lossy(bytes).into()
}
