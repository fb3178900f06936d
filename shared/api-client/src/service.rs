//! Other AWS services, called by the same user: the JSON protocol, the Query protocol, and reads of Lambda.
//!
//! Returns responses and refusals unchanged, because callers inspect their codes and messages; XML becomes JSON. Sends
//! a request that changes something only once. Must never send a signature except to AWS or to the caller's endpoint.

use serde_json::Value;
use thiserror::Error;
use wire::price_list;
use wire::request::ErrorBody;

use crate::Endpoint;
use crate::caller::Caller;
use crate::error::{ClientError, code_and_message, shown};
use crate::query;
use crate::send::{Answer, Unsigned};
use crate::transport::xml_value;

/// AWS JSON 1.1.
const JSON: &str = "application/x-amz-json-1.1";
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";
/// Error codes of throttling.
const THROTTLED: [&str; 4] =
    ["ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded"];

/// An AWS service that the client can call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// SageMaker.
    SageMaker,
    /// CloudWatch Logs.
    Logs,
    /// The price list, which has endpoints in a few Regions only.
    Pricing,
    /// Service Quotas.
    ServiceQuotas,
    /// Lambda. It supports only [`Service::get`].
    Lambda,
    /// IAM, which has one endpoint a partition.
    Iam,
    /// STS.
    Sts,
    /// EC2.
    Ec2,
    /// Cost Explorer, which has one endpoint a partition.
    CostExplorer,
}

/// How a service reads an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    /// The prefix of operation names in `X-Amz-Target`.
    Json(&'static str),
    /// The version of the API, and the text between the name of a list and the number of its element.
    Query(&'static str, &'static str),
    /// Method and path.
    Rest,
}

impl Target {
    /// Returns the service name in the signature and in IAM actions.
    pub fn name(self) -> &'static str {
        match self {
            Self::SageMaker => "sagemaker",
            Self::Logs => "logs",
            Self::Pricing => "pricing",
            Self::ServiceQuotas => "servicequotas",
            Self::Lambda => "lambda",
            Self::Iam => "iam",
            Self::Sts => "sts",
            Self::Ec2 => "ec2",
            Self::CostExplorer => "ce",
        }
    }

    fn protocol(self) -> Protocol {
        match self {
            Self::SageMaker => Protocol::Json("SageMaker"),
            Self::Logs => Protocol::Json("Logs_20140328"),
            Self::Pricing => Protocol::Json("AWSPriceListService"),
            Self::ServiceQuotas => Protocol::Json("ServiceQuotasV20190624"),
            Self::CostExplorer => Protocol::Json("AWSInsightsIndexService"),
            Self::Iam => Protocol::Query("2010-05-08", "member."),
            Self::Sts => Protocol::Query("2011-06-15", "member."),
            Self::Ec2 => Protocol::Query("2016-11-15", ""),
            Self::Lambda => Protocol::Rest,
        }
    }

    /// Returns the Region of the service's endpoint for a caller in `region`.
    fn region(self, region: &str) -> &str {
        match self {
            Self::Pricing => price_list::endpoint(region),
            Self::Iam if region.starts_with("cn-") => "cn-north-1",
            Self::Iam if region.starts_with("us-gov-") => "us-gov-west-1",
            Self::CostExplorer if region.starts_with("cn-") => "cn-northwest-1",
            Self::Iam | Self::CostExplorer => "us-east-1",
            Self::SageMaker | Self::Logs | Self::ServiceQuotas | Self::Lambda | Self::Sts | Self::Ec2 => {
                region
            }
        }
    }

    /// Returns the URL of the service for a caller in `region`.
    fn address(self, region: &str) -> String {
        let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
        let region = self.region(region);
        let host = match self {
            Self::Iam if region == "us-east-1" => "iam".to_owned(),
            Self::Iam if region == "us-gov-west-1" => "iam.us-gov".to_owned(),
            Self::SageMaker | Self::Pricing => format!("api.{}.{region}", self.name()),
            Self::Logs
            | Self::ServiceQuotas
            | Self::Lambda
            | Self::Iam
            | Self::Sts
            | Self::Ec2
            | Self::CostExplorer => {
                format!("{}.{region}", self.name())
            }
        };
        format!("https://{host}.amazonaws.com{suffix}")
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

    /// Returns whether the service refused the call with `code`.
    pub fn is(&self, code: &str) -> bool {
        matches!(self, Self::Refused { code: own, .. } if own == code)
    }
}

/// A service in the account and Region of a caller.
#[derive(Debug)]
pub struct Service<'a> {
    caller: &'a Caller,
    target: Target,
    endpoint: Endpoint,
}

impl Caller {
    /// Returns `target` at `endpoint`, or in the Region of the caller.
    pub fn service(&self, target: Target, endpoint: Option<Endpoint>) -> Result<Service<'_>, ClientError> {
        let endpoint = match (endpoint, self.region()) {
            (Some(endpoint), _) => endpoint,
            (None, Some(region)) => target.address(region).parse()?,
            (None, None) => return Err(ClientError::NoRegion),
        };
        Ok(Service { caller: self, target, endpoint })
    }
}

impl Service<'_> {
    /// Returns the endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the IAM action of an operation.
    pub fn action(&self, operation: &str) -> String {
        format!("{}:{operation}", self.target.name())
    }

    /// Calls an operation that changes nothing, and retries transient errors.
    pub async fn read(&self, operation: &str, members: &Value) -> Result<Value, ServiceError> {
        self.retried(|| self.once(operation, members)).await
    }

    /// Reads a path of a REST service, and retries transient errors.
    pub async fn get(&self, path: &str) -> Result<Value, ServiceError> {
        self.retried(|| self.send("GET", path, &[], "")).await
    }

    /// Calls an operation once. After any error except [`ServiceError::Refused`], the call may have taken effect.
    pub async fn once(&self, operation: &str, members: &Value) -> Result<Value, ServiceError> {
        match self.target.protocol() {
            Protocol::Query(version, infix) => {
                let body = query::form(operation, version, infix, members);
                self.send("POST", "/", &[("content-type", FORM.to_owned())], &body).await
            }
            Protocol::Json(prefix) => {
                let target = ("x-amz-target", format!("{prefix}.{operation}"));
                let headers = [("content-type", JSON.to_owned()), target];
                self.send("POST", "/", &headers, &members.to_string()).await
            }
            Protocol::Rest => Err(ClientError::Foreign(format!("{operation} needs a path")).into()),
        }
    }

    async fn retried<F: Future<Output = Result<Value, ServiceError>>>(
        &self,
        call: impl Fn() -> F,
    ) -> Result<Value, ServiceError> {
        let mut done = 1;
        loop {
            let answered = call().await;
            let is_transient = answered.as_ref().is_err_and(is_retryable);
            if !is_transient || !self.caller.retry.again(&mut done).await {
                return answered;
            }
        }
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        more: &[(&str, String)],
        body: &str,
    ) -> Result<Value, ServiceError> {
        let mut headers = vec![("host", self.endpoint.authority().to_owned())];
        headers.extend_from_slice(more);
        let url = self.endpoint.url(path);
        let unsigned = Unsigned { method, url: &url, headers: &headers, body: body.as_bytes() };
        let region = self.caller.region().map(|region| self.target.region(region));
        let answer = self.caller.transport.exchange(unsigned, self.target.name(), region).await?;
        understood(self.target.protocol(), &answer)
    }
}

/// Converts a response to its body or an error. Some operations return an empty body.
fn understood(protocol: Protocol, answer: &Answer) -> Result<Value, ServiceError> {
    let (status, bytes) = (answer.status, answer.body.as_slice());
    let is_xml = matches!(protocol, Protocol::Query(..));
    let body: Option<Value> = match bytes {
        [] => Some(Value::Null),
        bytes if is_xml => xml_value(bytes),
        bytes => serde_json::from_slice(bytes).ok(),
    };
    let foreign = || {
        let text = shown(&String::from_utf8_lossy(bytes));
        ServiceError::Failed(ClientError::Foreign(format!("status {status}: {text}")))
    };
    let body = body.ok_or_else(foreign)?;
    if (200..300).contains(&status) {
        return Ok(body);
    }
    let error: ErrorBody =
        if is_xml { query::error(&body) } else { serde_json::from_value(body).unwrap_or_default() };
    let (code, message) = code_and_message(&error, answer.code.as_deref());
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
            (Target::Sts, "eu-west-1", "https://sts.eu-west-1.amazonaws.com"),
            (Target::Iam, "eu-west-1", "https://iam.amazonaws.com"),
            (Target::Iam, "us-gov-east-1", "https://iam.us-gov.amazonaws.com"),
            (Target::Iam, "cn-northwest-1", "https://iam.cn-north-1.amazonaws.com.cn"),
            (Target::Pricing, "eu-west-1", "https://api.pricing.eu-central-1.amazonaws.com"),
            (Target::Pricing, "cn-north-1", "https://api.pricing.cn-northwest-1.amazonaws.com.cn"),
            (Target::ServiceQuotas, "us-east-1", "https://servicequotas.us-east-1.amazonaws.com"),
            (Target::Lambda, "us-east-1", "https://lambda.us-east-1.amazonaws.com"),
            (Target::Ec2, "us-east-1", "https://ec2.us-east-1.amazonaws.com"),
            (Target::CostExplorer, "eu-west-1", "https://ce.us-east-1.amazonaws.com"),
            (Target::CostExplorer, "cn-north-1", "https://ce.cn-northwest-1.amazonaws.com.cn"),
        ] {
            assert_eq!(target.address(region), expected);
        }
    }

    fn read(protocol: Protocol, status: u16, code: Option<&str>, body: &[u8]) -> Result<Value, ServiceError> {
        let code = code.map(str::to_owned);
        understood(
            protocol,
            &Answer {
                status,
                code,
                content_type: None,
                request_id: None,
                is_function_error: false,
                body: body.to_vec(),
                identity: None,
            },
        )
    }

    #[test]
    fn responses_and_refusals_are_returned_unchanged() {
        let json = Target::SageMaker.protocol();
        assert_eq!(read(json, 200, None, b""), Ok(Value::Null));
        assert_eq!(read(json, 200, None, b"{\"a\":1}"), Ok(json!({"a": 1})));
        let namespaced = br#"{"__type":"com.amazon#ResourceInUse","Message":"taken"}"#;
        assert_eq!(read(json, 400, None, namespaced), Err(refused(400, "ResourceInUse", "taken")));
        let bare = br#"{"message":"no"}"#;
        assert_eq!(
            read(json, 400, Some("ValidationException:http://x"), bare),
            Err(refused(400, "ValidationException", "no"))
        );
        for (status, body) in [(200, &b"<html>"[..]), (400, b"<html>"), (404, b"{\"message\":\"Not Found\"}")]
        {
            let error = read(json, status, None, body).unwrap_err();
            assert!(matches!(error, ServiceError::Failed(ClientError::Foreign(_))), "{error}");
        }
    }

    #[cfg(feature = "aws")]
    #[test]
    fn responses_in_xml_are_read_like_json() {
        let iam = Target::Iam.protocol();
        let role =
            b"<GetRoleResponse><GetRoleResult><Role><Arn>a</Arn></Role></GetRoleResult></GetRoleResponse>";
        assert_eq!(read(iam, 200, None, role), Ok(json!({"GetRoleResult": {"Role": {"Arn": "a"}}})));
        let denied = b"<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>";
        let error = read(iam, 403, None, denied).unwrap_err();
        assert_eq!(error, refused(403, "AccessDenied", "no"));
        assert!(error.is_denied() && error.is("AccessDenied"));
        let denied = b"<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error></Errors></Response>";
        assert!(read(Target::Ec2.protocol(), 403, None, denied).unwrap_err().is_denied());
        for (status, body) in [(200, "<html>"), (502, "<html><body>Bad Gateway</body></html>"), (200, "{}")] {
            let error = read(iam, status, None, body.as_bytes()).unwrap_err();
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
