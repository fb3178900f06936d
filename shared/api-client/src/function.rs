//! A stack's function for direct calls, which the client invokes in place of the HTTP API.
//!
//! Assumes the documented answers of Lambda's Invoke: a status above 299 means that the function did not run, and a header
//! reports that it failed. Every other answer is a result of [`direct`].

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use wire::events::direct;
use wire::events::http::{HttpRequest, HttpResponse};
use wire::request::ErrorBody;

use crate::endpoint::{Endpoint, EndpointError};
use crate::error::{ClientError, Denial, code_and_message, shown};
use crate::send::{Answer, Ask, Unsigned, understood};
use crate::{Client, Target};

/// Prefix of an address that names a function.
pub(crate) const PREFIX: &str = "lambda:";
/// Limits of Lambda, in characters.
const NAME_MAX: usize = 64;
const QUALIFIER_MAX: usize = 128;
/// Variables that set the endpoint of Lambda, for emulators and private endpoints. The first one set counts.
const VARIABLES: [&str; 2] = ["AWS_ENDPOINT_URL_LAMBDA", "AWS_ENDPOINT_URL"];

/// The name or the ARN of a function, with an optional alias or version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The name, `NAME:ALIAS` or the ARN.
    text: String,
    region: Option<String>,
}

impl Function {
    /// Returns the Region in the ARN; `None` for a name.
    pub fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    fn path(&self) -> String {
        // The only characters of names and ARNs that a path segment must escape.
        let segment = self.text.replace(':', "%3A").replace('$', "%24");
        format!("/2015-03-31/functions/{segment}/invocations")
    }
}

impl fmt::Display for Function {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{PREFIX}{}", self.text)
    }
}

impl FromStr for Function {
    type Err = EndpointError;

    /// Reads `NAME`, `NAME:ALIAS` or an ARN, without the prefix `lambda:`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || EndpointError::NoFunction(text.chars().take(200).collect());
        let parts: Vec<&str> = text.split(':').collect();
        let (region, name, qualifier) = match parts.as_slice() {
            ["arn", partition, "lambda", region, account, "function", rest @ ..] => {
                let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
                if !partition.starts_with("aws") || !is_account || !is_word(region, NAME_MAX) {
                    return Err(invalid());
                }
                let [name, qualifier @ ..] = rest else { return Err(invalid()) };
                (Some((*region).to_owned()), *name, qualifier)
            }
            [name, qualifier @ ..] => (None, *name, qualifier),
            [] => return Err(invalid()),
        };
        let is_qualifier = match qualifier {
            [] | ["$LATEST"] => true,
            [alias] => is_word(alias, QUALIFIER_MAX),
            _ => false,
        };
        if !is_word(name, NAME_MAX) || !is_qualifier {
            return Err(invalid());
        }
        Ok(Self { text: text.to_owned(), region })
    }
}

fn is_word(text: &str, limit: usize) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=limit).contains(&text.len()) && text.bytes().all(is_plain)
}

pub(crate) fn endpoint_in_environment() -> Result<Option<Endpoint>, ClientError> {
    for name in VARIABLES {
        let address = std::env::var(name).unwrap_or_default();
        if !address.is_empty() {
            return address.parse().map(Some).map_err(|error| ClientError::Variable { name, error });
        }
    }
    Ok(None)
}

impl Client {
    /// Invokes `function` with a request once.
    pub(crate) async fn invoke(&self, function: &Function, ask: Ask<'_>) -> Result<Value, ClientError> {
        let (path, query) = ask.path.split_once('?').unwrap_or((ask.path, ""));
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let request = HttpRequest {
            method: ask.method.to_owned(),
            path: path.to_owned(),
            query: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            body: ask.body.to_vec(),
            ..HttpRequest::default()
        };
        let (response, identity) = self.invoke_once(function, &request).await?;
        understood(response.status, None, &response.body, identity)
    }

    /// Invokes `function` with a request once. Returns its response with any status, and the identity that signed.
    pub(crate) async fn invoke_once(
        &self,
        function: &Function,
        request: &HttpRequest,
    ) -> Result<(HttpResponse, Option<String>), ClientError> {
        let payload = direct::encode(request).to_string();
        let headers = [
            ("host", self.endpoint.authority().to_owned()),
            ("content-type", "application/json".to_owned()),
            ("x-amz-invocation-type", "RequestResponse".to_owned()),
        ];
        let url = self.endpoint.url(&function.path());
        let unsigned = Unsigned { method: "POST", url: &url, headers: &headers, body: payload.as_bytes() };
        let transport = &self.caller.transport;
        answered(transport.exchange(unsigned, Target::Lambda.name(), None).await?)
    }
}

/// Converts an answer of Invoke to the response of the function, or an error.
fn answered(answer: Answer) -> Result<(HttpResponse, Option<String>), ClientError> {
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
    let response = direct::parse_result(&payload).map_err(|_| {
        let text = shown(&String::from_utf8_lossy(&answer.body));
        ClientError::Foreign(format!("the function returned {text}: expected a status and a body"))
    })?;
    Ok((response, answer.identity))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn function(text: &str) -> Result<Function, EndpointError> {
        text.parse()
    }

    #[test]
    fn a_function_is_a_name_with_an_optional_alias_or_an_arn_with_its_region() {
        for (text, region) in [
            ("hyperband-prod-InvokeFunction-a1B2", None),
            ("tune:live", None),
            ("tune:$LATEST", None),
            ("arn:aws:lambda:eu-west-1:111122223333:function:tune", Some("eu-west-1")),
            ("arn:aws-cn:lambda:cn-north-1:111122223333:function:tune:7", Some("cn-north-1")),
        ] {
            let read = function(text).unwrap();
            assert_eq!((read.region(), read.to_string()), (region, format!("lambda:{text}")));
        }
    }

    #[test]
    fn an_invalid_function_is_rejected_with_an_example() {
        for text in [
            "",
            "a/b",
            "tune:",
            "tune:a:b",
            "tune:$X",
            "https://example.com",
            "arn:aws:lambda:eu-west-1:111122223333:function",
            "arn:aws:lambda:eu-west-1:1111:function:tune",
            "arn:aws:lambda:evil.example.com/:111122223333:function:tune",
            "arn:aws:sqs:eu-west-1:111122223333:function:tune",
            "arn:aws:lambda:eu-west-1:111122223333:layer:tune",
        ] {
            let error = function(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("invalid function '{text}': expected ")), "{error}");
        }
        assert!(function(&"x".repeat(NAME_MAX + 1)).is_err());
    }

    #[test]
    fn the_path_escapes_the_colons_of_an_arn() {
        let path = function("arn:aws:lambda:eu-west-1:111122223333:function:tune:$LATEST").unwrap().path();
        let expected = "/2015-03-31/functions/arn%3Aaws%3Alambda%3Aeu-west-1%3A111122223333%3Afunction%3Atune\
                        %3A%24LATEST/invocations";
        assert_eq!(path, expected);
    }
}
