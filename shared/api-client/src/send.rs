//! Sends a request, reads its response, and retries transient errors.
//!
//! Distinguishes three kinds of failure: refused (no effect), throttled (no effect, retry), and lost (effect
//! unknown). The caller decides which requests are safe to retry.

use serde_json::Value;
use wire::events::http::HttpRequest;
use wire::request::ErrorBody;

use crate::Client;
use crate::error::{ClientError, Denial, Refusal, Unreached, code_and_message, shown};

/// The service name in the signatures for the API.
pub(crate) const API: &str = "execute-api";

#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "only the transport reads it"))]
pub(crate) struct Unsigned<'a> {
    pub(crate) method: &'a str,
    pub(crate) url: &'a str,
    pub(crate) headers: &'a [(&'a str, String)],
    pub(crate) body: &'a [u8],
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The error code in the headers.
    pub(crate) code: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) request_id: Option<String>,
    /// Whether Lambda reports that the invoked function failed.
    pub(crate) is_function_error: bool,
    pub(crate) body: Vec<u8>,
    /// The end of the access key's ID that signed the request.
    pub(crate) identity: Option<String>,
}

impl Client {
    /// Sends an idempotent request, and retries transient errors.
    pub(crate) async fn ask(&self, request: &HttpRequest) -> Result<Value, ClientError> {
        let mut done = 1;
        loop {
            match self.once(request).await {
                Err(error) if is_transient(&error) => {
                    if !self.retry.again(&mut done).await {
                        return Err(error.after(done));
                    }
                }
                answered => return answered,
            }
        }
    }

    /// Sends a request once.
    pub(crate) async fn once(&self, request: &HttpRequest) -> Result<Value, ClientError> {
        let response = self.exchange.send(request).await?;
        let code = response.headers.get("x-amzn-errortype").map(String::as_str);
        understood(response.status, code, &response.body, None)
    }
}

/// Returns whether a retry of the same request may succeed.
pub(crate) fn is_transient(error: &ClientError) -> bool {
    match error {
        ClientError::Busy { .. } => true,
        // A retry gets the same certificate.
        ClientError::Unreachable { how, .. } => *how != Unreached::Tls,
        ClientError::Endpoint(_)
        | ClientError::Variable { .. }
        | ClientError::NoFunction(_)
        | ClientError::NoRegion
        | ClientError::Proxy(_)
        | ClientError::Credentials(_)
        | ClientError::Refused(_)
        | ClientError::Denied { .. }
        | ClientError::Uncertain { .. }
        | ClientError::NoTransport
        | ClientError::Foreign(_)
        | ClientError::Host(_) => false,
    }
}

/// Converts a response to its body or an error.
pub(crate) fn understood(
    status: u16,
    code: Option<&str>,
    bytes: &[u8],
    identity: Option<String>,
) -> Result<Value, ClientError> {
    if (200..300).contains(&status) {
        let text = || shown(&String::from_utf8_lossy(bytes));
        return serde_json::from_slice(bytes)
            .map_err(|_| ClientError::Foreign(format!("status {status}, not JSON: {}", text())));
    }
    let body: ErrorBody = serde_json::from_slice(bytes).unwrap_or_default();
    let (code, message) = code_and_message(&body, code);
    let text = message.clone().unwrap_or_else(|| format!("status {status}"));
    // API Gateway's refusals of a signature have no code in their body, those of the API do.
    let is_of_api = body.code.is_some();
    match status {
        401 | 403 if !is_of_api => {
            let why = Denial::of(&code, &text, identity.is_some());
            Err(ClientError::Denied { message: shown(&text), identity, why })
        }
        429 => Err(ClientError::Busy { message: shown(&text), tries: 1, lost: false }),
        500.. => Err(ClientError::Busy {
            message: format!("{} (status {status})", shown(&text)),
            tries: 1,
            lost: true,
        }),
        // Every refusal of the API has a code; API Gateway's own "Not Found" has none.
        _ if code.is_empty() || message.is_none() => {
            Err(ClientError::Foreign(format!("status {status}: {}", shown(&text))))
        }
        _ => Err(ClientError::Refused(Refusal { status, code, message: text, violations: body.violations })),
    }
}
