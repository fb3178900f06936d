//! Invokes a stack's function in place of the HTTP API.
//!
//! Assumes the documented answers of Lambda's Invoke: a status above 299 means that the function did not run, and a
//! header reports that it failed. Every other answer is a result of [`direct`].

use serde_json::Value;
use wire::events::direct;
use wire::events::http::{HttpRequest, HttpResponse};
use wire::request::ErrorBody;

use crate::Target;
use crate::error::{ClientError, Denial, code_and_message, shown};
use crate::function::Function;
use crate::send::{Answer, Unsigned, understood};
use crate::stack::Stack;

impl Stack {
    /// Invokes `function` with a request once. Returns its response with any status.
    pub(crate) async fn invoke(
        &self,
        function: &Function,
        request: &HttpRequest,
    ) -> Result<HttpResponse, ClientError> {
        let payload = direct::encode(request).to_string();
        let headers = [
            ("host", self.endpoint.authority().to_owned()),
            ("content-type", "application/json".to_owned()),
            ("x-amz-invocation-type", "RequestResponse".to_owned()),
        ];
        let url = self.endpoint.url(&function.path());
        let unsigned = Unsigned { method: "POST", url: &url, headers: &headers, body: payload.as_bytes() };
        let transport = &self.caller.transport;
        let response = answered(transport.exchange(unsigned, Target::Lambda.name(), None).await?)?;
        let is_page = response.body.starts_with(b"<!doctype html>");
        let content = if is_page { "text/html; charset=utf-8" } else { "application/json" };
        Ok(response.header("content-type", content))
    }
}

/// Converts an answer of Invoke to the response of the function, or an error.
fn answered(answer: Answer) -> Result<HttpResponse, ClientError> {
    if !(200..300).contains(&answer.status) {
        return Err(not_invoked(answer));
    }
    let payload: Value = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
    if answer.is_function_error {
        let text = |name: &str| payload[name].as_str().map(shown);
        let cause = [text("errorType"), text("errorMessage")].into_iter().flatten().collect::<Vec<_>>();
        let message = format!("the function failed: {}", cause.join(": "));
        // It may have failed after its work.
        return Err(ClientError::Busy { message, tries: 1, lost: true });
    }
    direct::parse_result(&payload).map_err(|_| {
        let text = shown(&String::from_utf8_lossy(&answer.body));
        ClientError::Foreign(format!("the function returned {text}: expected a status and a body"))
    })
}

/// Returns the error for an answer of Lambda itself. The function did not run, except perhaps after a status above 499.
fn not_invoked(answer: Answer) -> ClientError {
    let body: ErrorBody = serde_json::from_slice(&answer.body).unwrap_or_default();
    let (code, message) = code_and_message(&body, answer.code.as_deref());
    let text = shown(&message.unwrap_or_else(|| format!("status {}", answer.status)));
    match (answer.status, code.as_str()) {
        (404, "ResourceNotFoundException") => ClientError::NoFunction(text),
        // The function is being created or updated.
        (409, _) => ClientError::Busy { message: text, tries: 1, lost: false },
        (403, _) => match Denial::of(&code, &text, answer.identity.is_some()) {
            Denial::Permission => {
                ClientError::Denied { message: text, identity: answer.identity, why: Denial::Invocation }
            }
            why => ClientError::Denied { message: text, identity: answer.identity, why },
        },
        (status, _) => match understood(status, answer.code.as_deref(), &answer.body, answer.identity) {
            Err(error) => error,
            Ok(_) => ClientError::Foreign(format!("status {status}: {text}")),
        },
    }
}
