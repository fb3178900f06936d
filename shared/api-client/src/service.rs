//! Other services of the stack's account, called by the same user: the JSON protocol of SageMaker and CloudWatch Logs.
//!
//! Returns responses and refusals unchanged, because callers inspect their codes and messages. Sends a request that
//! changes something only once. Must never send a signature except to AWS or to the caller's endpoint.

use serde_json::Value;
use thiserror::Error;

use crate::error::{ClientError, code_and_message, shown};
use crate::send::Unsigned;
use crate::{Client, Endpoint};

/// AWS JSON 1.1.
const CONTENT: &str = "application/x-amz-json-1.1";
/// Error codes of throttling.
const THROTTLED: [&str; 3] = ["ThrottlingException", "Throttling", "TooManyRequestsException"];

/// An AWS service that the client can call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// SageMaker.
    SageMaker,
    /// CloudWatch Logs.
    Logs,
}

impl Target {
    /// Returns the service name in the signature.
    fn signed(self) -> &'static str {
        match self {
            Self::SageMaker => "sagemaker",
            Self::Logs => "logs",
        }
    }

    /// Returns the prefix of operation names in `X-Amz-Target`.
    fn prefix(self) -> &'static str {
        match self {
            Self::SageMaker => "SageMaker",
            Self::Logs => "Logs_20140328",
        }
    }

    /// Returns the URL of the service.
    fn address(self, region: &str) -> String {
        let host = match self {
            Self::SageMaker => "api.sagemaker",
            Self::Logs => "logs",
        };
        let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
        format!("https://{host}.{region}.amazonaws.com{suffix}")
    }
}

/// An error of a service call.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ServiceError {
    /// The service refused the call.
    #[error("{code}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Error code of AWS.
        code: String,
        /// Error message.
        message: String,
    },
    /// The service is unreachable, or its response is unreadable.
    #[error(transparent)]
    Failed(#[from] ClientError),
}

impl ServiceError {
    /// Returns whether the caller lacks the permission.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code.starts_with("AccessDenied") || code == "UnauthorizedOperation")
    }
}

/// A service of the endpoint's account and Region.
#[derive(Debug)]
pub struct Service<'a> {
    client: &'a Client,
    target: Target,
    endpoint: Endpoint,
}

impl Client {
    /// Returns `target` at `endpoint`, or in the Region of this client.
    pub fn service(&self, target: Target, endpoint: Option<Endpoint>) -> Result<Service<'_>, ClientError> {
        let endpoint = match (endpoint, self.transport.region()) {
            (Some(endpoint), _) => endpoint,
            (None, Some(region)) => target.address(region).parse()?,
            (None, None) => return Err(ClientError::NoRegion),
        };
        Ok(Service { client: self, target, endpoint })
    }
}

impl Service<'_> {
    /// Returns the endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Calls an operation that changes nothing, and retries transient errors.
    pub async fn read(&self, operation: &str, members: &Value) -> Result<Value, ServiceError> {
        let mut done = 1;
        loop {
            match self.once(operation, members).await {
                Err(error) if done < self.client.retry.tries && is_retryable(&error) => {}
                answered => return answered,
            }
            self.client.pause(done).await;
            done = done.saturating_add(1);
        }
    }

    /// Calls an operation once. After any error except [`ServiceError::Refused`], the call may have taken effect.
    pub async fn once(&self, operation: &str, members: &Value) -> Result<Value, ServiceError> {
        let body = members.to_string();
        let headers = [
            ("host", self.endpoint.authority().to_owned()),
            ("content-type", CONTENT.to_owned()),
            ("x-amz-target", format!("{}.{operation}", self.target.prefix())),
        ];
        let url = self.endpoint.url("/");
        let unsigned = Unsigned { method: "POST", url: &url, headers: &headers, body: body.as_bytes() };
        let answer = self.client.transport.exchange(unsigned, self.target.signed()).await?;
        understood(answer.status, answer.code.as_deref(), &answer.body)
    }
}

/// Converts a response to its body or an error. Some operations return an empty body.
fn understood(status: u16, header: Option<&str>, bytes: &[u8]) -> Result<Value, ServiceError> {
    let body: Option<Value> =
        if bytes.is_empty() { Some(Value::Null) } else { serde_json::from_slice(bytes).ok() };
    let foreign = || {
        let text = shown(&String::from_utf8_lossy(bytes));
        ServiceError::Failed(ClientError::Foreign(format!("status {status}: {text}")))
    };
    let body = body.ok_or_else(foreign)?;
    if (200..300).contains(&status) {
        return Ok(body);
    }
    let (code, message) = code_and_message(&serde_json::from_value(body).unwrap_or_default(), header);
    if code.is_empty() {
        return Err(foreign());
    }
    Err(ServiceError::Refused { status, code, message: shown(&message.unwrap_or_default()) })
}

/// Returns whether a retry of the same call may succeed.
fn is_retryable(error: &ServiceError) -> bool {
    match error {
        ServiceError::Refused { status, code, .. } => *status >= 500 || THROTTLED.contains(&code.as_str()),
        ServiceError::Failed(error) => crate::send::is_transient(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(status: u16, code: &str, message: &str) -> ServiceError {
        ServiceError::Refused { status, code: code.to_owned(), message: message.to_owned() }
    }

    #[test]
    fn each_service_has_its_aws_endpoint() {
        for (target, region, expected) in [
            (Target::SageMaker, "eu-west-1", "https://api.sagemaker.eu-west-1.amazonaws.com"),
            (Target::Logs, "us-gov-west-1", "https://logs.us-gov-west-1.amazonaws.com"),
            (Target::SageMaker, "cn-north-1", "https://api.sagemaker.cn-north-1.amazonaws.com.cn"),
        ] {
            assert_eq!(target.address(region), expected);
        }
    }

    #[test]
    fn responses_and_refusals_are_returned_unchanged() {
        assert_eq!(understood(200, None, b""), Ok(Value::Null));
        assert_eq!(understood(200, None, b"{\"a\":1}"), Ok(json!({"a": 1})));
        let namespaced = br#"{"__type":"com.amazon#ResourceInUse","Message":"taken"}"#;
        assert_eq!(understood(400, None, namespaced), Err(refused(400, "ResourceInUse", "taken")));
        let bare = br#"{"message":"no"}"#;
        assert_eq!(
            understood(400, Some("ValidationException:http://x"), bare),
            Err(refused(400, "ValidationException", "no"))
        );
        for (status, body) in [(200, &b"<html>"[..]), (400, b"<html>"), (404, b"{\"message\":\"Not Found\"}")]
        {
            let error = understood(status, None, body).unwrap_err();
            assert!(matches!(error, ServiceError::Failed(ClientError::Foreign(_))), "{error}");
        }
    }

    #[test]
    fn only_transient_errors_are_retryable() {
        assert!(is_retryable(&refused(400, "ThrottlingException", "Rate exceeded")));
        assert!(is_retryable(&refused(503, "ServiceUnavailable", "")));
        assert!(!is_retryable(&refused(400, "ValidationException", "")));
        let denied = refused(400, "AccessDeniedException", "not authorized");
        assert!(denied.is_denied() && !is_retryable(&denied));
        assert!(!refused(400, "ResourceInUse", "").is_denied());
    }
}
