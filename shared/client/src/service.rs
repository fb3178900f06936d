//! Other services of the stack's account, asked by the same person: SageMaker's and CloudWatch Logs' JSON protocol.
//!
//! Answers and refusals are handed on as they are, code and words, since they are what is looked at. What changes something
//! is sent once. Must never send a signature elsewhere than to AWS or to where the caller says.

use serde_json::Value;
use thiserror::Error;

use crate::error::{ClientError, shown, told};
use crate::sign::Unsigned;
use crate::{Client, Endpoint};

/// AWS JSON 1.1.
const CONTENT: &str = "application/x-amz-json-1.1";
/// What asks for less calls, in each way to say it.
const THROTTLED: [&str; 3] = ["ThrottlingException", "Throttling", "TooManyRequestsException"];

/// A service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// SageMaker.
    SageMaker,
    /// CloudWatch Logs.
    Logs,
}

impl Target {
    /// The name in the signature.
    fn signed(self) -> &'static str {
        match self {
            Self::SageMaker => "sagemaker",
            Self::Logs => "logs",
        }
    }

    /// What stands before an operation's name.
    fn prefix(self) -> &'static str {
        match self {
            Self::SageMaker => "SageMaker",
            Self::Logs => "Logs_20140328",
        }
    }

    /// Where AWS has it.
    fn address(self, region: &str) -> String {
        let host = match self {
            Self::SageMaker => "api.sagemaker",
            Self::Logs => "logs",
        };
        let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
        format!("https://{host}.{region}.amazonaws.com{suffix}")
    }
}

/// Why a service did not answer with what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ServiceError {
    /// It said no: its own code and words.
    #[error("{code}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// As AWS names it.
        code: String,
        /// Its words.
        message: String,
    },
    /// It was not reached, or could not be understood.
    #[error(transparent)]
    Failed(#[from] ClientError),
}

impl ServiceError {
    /// Whether the caller may not ask this.
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
    /// `target` in the Region that this client signs for, or at `endpoint`.
    pub fn service(&self, target: Target, endpoint: Option<Endpoint>) -> Result<Service<'_>, ClientError> {
        let endpoint = match (endpoint, &self.signatory) {
            (Some(endpoint), _) => endpoint,
            (None, Some(signatory)) => target.address(&signatory.region).parse()?,
            (None, None) => return Err(ClientError::NoRegion),
        };
        Ok(Service { client: self, target, endpoint })
    }
}

impl Service<'_> {
    /// Where it is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Asks for what changes nothing, again where that helps.
    pub async fn read(&self, operation: &str, members: &Value) -> Result<Value, ServiceError> {
        let mut done = 1;
        loop {
            match self.once(operation, members).await {
                Err(error) if done < self.client.retry.tries && is_passing(&error) => {}
                answered => return answered,
            }
            self.client.pause(done).await;
            done = done.saturating_add(1);
        }
    }

    /// Asks once. A refusal is a refusal; of any other error nobody knows what was done.
    pub async fn once(&self, operation: &str, members: &Value) -> Result<Value, ServiceError> {
        let body = members.to_string();
        let headers = [
            ("host", self.endpoint.authority().to_owned()),
            ("content-type", CONTENT.to_owned()),
            ("x-amz-target", format!("{}.{operation}", self.target.prefix())),
        ];
        let url = self.endpoint.url("/");
        let unsigned = Unsigned { method: "POST", url: &url, headers: &headers, body: body.as_bytes() };
        let answer = self.client.exchange(unsigned, self.target.signed()).await?;
        understood(answer.status, answer.code.as_deref(), &answer.body)
    }
}

/// What an answer means; some operations answer nothing.
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
    let (code, message) = told(&body, header);
    if code.is_empty() {
        return Err(foreign());
    }
    Err(ServiceError::Refused { status, code, message: shown(&message.unwrap_or_default()) })
}

/// Whether the same question may get another answer a moment later.
fn is_passing(error: &ServiceError) -> bool {
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
    fn each_service_is_where_aws_has_it() {
        for (target, region, expected) in [
            (Target::SageMaker, "eu-west-1", "https://api.sagemaker.eu-west-1.amazonaws.com"),
            (Target::Logs, "us-gov-west-1", "https://logs.us-gov-west-1.amazonaws.com"),
            (Target::SageMaker, "cn-north-1", "https://api.sagemaker.cn-north-1.amazonaws.com.cn"),
        ] {
            assert_eq!(target.address(region), expected);
        }
    }

    #[test]
    fn answers_and_refusals_are_handed_on() {
        assert_eq!(understood(200, None, b""), Ok(Value::Null));
        assert_eq!(understood(200, None, b"{\"a\":1}"), Ok(json!({"a": 1})));
        let said = br#"{"__type":"com.amazon#ResourceInUse","Message":"taken"}"#;
        assert_eq!(understood(400, None, said), Err(refused(400, "ResourceInUse", "taken")));
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
    fn only_what_passes_is_asked_again() {
        assert!(is_passing(&refused(400, "ThrottlingException", "Rate exceeded")));
        assert!(is_passing(&refused(503, "ServiceUnavailable", "")));
        assert!(!is_passing(&refused(400, "ValidationException", "")));
        let denied = refused(400, "AccessDeniedException", "not authorized");
        assert!(denied.is_denied() && !is_passing(&denied));
        assert!(!refused(400, "ResourceInUse", "").is_denied());
    }
}
