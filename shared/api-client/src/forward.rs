//! Forwards requests of other clients to the API, signed with the credentials of this client.
//!
//! Sends each request once, because its client retries by itself. Repeats only a read whose connection failed.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wire::events::http::{HttpRequest, HttpResponse};

use crate::error::{ClientError, Unreached};
use crate::exchange::Exchange;
use crate::send::understood;
use crate::stack::Stack;

impl Stack {
    /// Sends `request` and returns the response, with any status. Fails if no response arrived, or if the endpoint
    /// refused the signature.
    pub async fn forward(&self, request: &HttpRequest) -> Result<HttpResponse, ClientError> {
        let mut done = 1;
        loop {
            match self.send(request).await {
                Err(error) if is_read(request) && is_broken(&error) => {
                    if !self.caller.retry.again(&mut done).await {
                        return Err(error.after(done));
                    }
                }
                answered => return answered,
            }
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
