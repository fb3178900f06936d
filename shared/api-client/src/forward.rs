//! Forwards requests of other clients to the API, signed with the credentials of this client.
//!
//! A request is sent once, because its client retries by itself. Only a read whose connection failed is repeated.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wire::events::http::{HttpRequest, HttpResponse};

use crate::Client;
use crate::endpoint::Address;
use crate::error::{ClientError, Unreached};
use crate::query::escape;
use crate::send::{API, Answer, Unsigned, understood};

const FORWARDED: [&str; 2] = ["content-type", "x-amz-target"];

impl Client {
    /// Sends `request` and returns the response, with any status. Fails if no response arrived, or if the endpoint
    /// refused the signature.
    pub async fn forward(&self, request: &HttpRequest) -> Result<HttpResponse, ClientError> {
        let mut done = 1;
        loop {
            let error = match self.forward_once(request).await {
                Err(error) if is_read(request) && is_broken(&error) => error,
                answered => return answered,
            };
            if done >= self.caller.retry.tries {
                return Err(error.after(done));
            }
            self.caller.pause(done).await;
            done = done.saturating_add(1);
        }
    }

    /// Returns the tags of a tuning job or a training job, with SageMaker's `ListTags`: no path of the API has them,
    /// so a function cannot return them.
    pub async fn tags(&self, arn: &str) -> Result<BTreeMap<String, String>, ClientError> {
        let headers =
            [("content-type", "application/x-amz-json-1.1"), ("x-amz-target", "SageMaker.ListTags")];
        let request = HttpRequest {
            method: "POST".to_owned(),
            path: "/".to_owned(),
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            body: json!({"ResourceArn": arn}).to_string().into_bytes(),
            ..HttpRequest::default()
        };
        let response = self.forward(&request).await?;
        let body = understood(response.status, None, &response.body, None)?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let tags = body["Tags"].as_array().into_iter().flatten();
        Ok(tags.filter_map(|tag| Some((text(&tag["Key"])?, text(&tag["Value"])?))).collect())
    }

    async fn forward_once(&self, request: &HttpRequest) -> Result<HttpResponse, ClientError> {
        if let Address::Function(function) = &self.address {
            let (response, _) = self.invoke_once(function, request).await?;
            let is_page = response.body.starts_with(b"<!doctype html>");
            let content = if is_page { "text/html; charset=utf-8" } else { "application/json" };
            return Ok(response.header("content-type", content));
        }
        let forwarded =
            FORWARDED.into_iter().filter_map(|name| Some((name, request.header(name)?.to_owned())));
        let headers: Vec<_> =
            std::iter::once(("host", self.endpoint.authority().to_owned())).chain(forwarded).collect();
        let url = self.endpoint.url(&path(request));
        let unsigned =
            Unsigned { method: &request.method, url: &url, headers: &headers, body: &request.body };
        let answer = self.caller.transport.exchange(unsigned, API, None).await?;
        if matches!(answer.status, 401 | 403)
            && let Err(denied @ ClientError::Denied { .. }) =
                understood(answer.status, answer.code.as_deref(), &answer.body, answer.identity.clone())
        {
            return Err(denied);
        }
        Ok(response(answer))
    }
}

fn path(request: &HttpRequest) -> String {
    let mut path = request.path.clone();
    for (index, (name, value)) in request.query.iter().enumerate() {
        path.push(if index == 0 { '?' } else { '&' });
        escape(&mut path, name);
        path.push('=');
        escape(&mut path, value);
    }
    path
}

fn response(answer: Answer) -> HttpResponse {
    let Answer { status, code, content_type, request_id, body, is_function_error: _, identity: _ } = answer;
    let headers =
        [("content-type", content_type), ("x-amzn-errortype", code), ("x-amzn-requestid", request_id)];
    headers.into_iter().fold(HttpResponse::new(status, body), |response, (name, value)| match value {
        Some(value) => response.header(name, &value),
        None => response,
    })
}

/// Returns whether a request changes nothing.
fn is_read(request: &HttpRequest) -> bool {
    let operation = request.header("x-amz-target").and_then(|target| target.strip_prefix("SageMaker."));
    let reads = ["Describe", "List", "Search"];
    request.method == "GET" || operation.is_some_and(|name| reads.iter().any(|read| name.starts_with(read)))
}

/// Returns whether the connection failed, and another attempt may succeed soon.
fn is_broken(error: &ClientError) -> bool {
    matches!(error, ClientError::Unreachable { how: Unreached::Connection, .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_escaped_again() {
        let query = [("NameContains", "a b&c"), ("NextToken", "x=")];
        let request = HttpRequest {
            path: "/tuning-jobs".to_owned(),
            query: query.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            ..HttpRequest::default()
        };
        assert_eq!(path(&request), "/tuning-jobs?NameContains=a%20b%26c&NextToken=x%3D");
    }
}
