//! The two ways to call the function: through API Gateway, or directly with Lambda's Invoke.
//!
//! The stack has one function for each. A payload cannot choose: a direct caller could otherwise send the payload of API
//! Gateway and claim to be any principal.

use lambda::settings::SettingsError;
use serde_json::Value;
use wire::events::http::{HttpRequest, HttpResponse};
use wire::events::{EventError, direct};

/// The setting.
const CALLS_FROM: &str = "CALLS_FROM";

/// The callers of the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calls {
    /// API Gateway, which authenticates its callers and forwards their ARN.
    ApiGateway,
    /// Callers of Lambda's Invoke. Lambda checks their permission and forwards no identity.
    Invoke,
}

impl Calls {
    /// Reads `CALLS_FROM`, which has no default: a function without it must not believe a payload.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        match lambda::settings::setting(variable, CALLS_FROM)?.as_str() {
            "ApiGateway" => Ok(Self::ApiGateway),
            "Invoke" => Ok(Self::Invoke),
            _ => Err(SettingsError::Unreadable { name: CALLS_FROM, expected: "ApiGateway or Invoke" }),
        }
    }

    /// Reads the payload of a call.
    pub(crate) fn request(self, event: &Value) -> Result<HttpRequest, EventError> {
        match self {
            Self::ApiGateway => HttpRequest::parse(event),
            Self::Invoke => direct::parse(event),
        }
    }

    /// Returns the result of a call.
    pub(crate) fn result(self, response: &HttpResponse) -> Value {
        match self {
            Self::ApiGateway => response.encode(),
            Self::Invoke => direct::encode_result(response),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_without_a_known_kind_of_calls_does_not_start() {
        let read = |text: Option<&str>| Calls::read(|_| text.map(str::to_owned));
        assert_eq!(read(Some("ApiGateway")), Ok(Calls::ApiGateway));
        assert_eq!(read(Some("Invoke")), Ok(Calls::Invoke));
        assert_eq!(read(None), Err(SettingsError::Missing(CALLS_FROM)));
        let error = read(Some("invoke")).unwrap_err().to_string();
        assert_eq!(error, "invalid environment variable CALLS_FROM: expected ApiGateway or Invoke");
    }
}
