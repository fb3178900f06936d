//! The two ways to call the function: through API Gateway, or directly with Lambda's Invoke.
//!
//! The stack has one function for each. A payload cannot choose between the two ways. Otherwise, a direct caller could
//! send the payload of API Gateway and claim to be any principal. The permission to invoke is not enough either: API
//! Gateway adds a secret to each request.

use http_api::ApiError;
use lambda::settings::{SettingsError, setting};
use serde_json::Value;
use wire::events::direct;
use wire::events::http::{HttpRequest, HttpResponse};

use crate::gateway::GatewaySecret;

const CALLS_FROM: &str = "CALLS_FROM";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Calls {
    /// API Gateway, which authenticates its callers, forwards their ARN, and adds the secret.
    ApiGateway(GatewaySecret),
    /// Callers of Lambda's Invoke. Lambda checks their permission and forwards no identity.
    Invoke,
}

impl Calls {
    /// Reads `CALLS_FROM`, which has no default: a function without it must not believe a payload. The secret has none
    /// either.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        match setting(&variable, CALLS_FROM)?.as_str() {
            "ApiGateway" => Ok(Self::ApiGateway(GatewaySecret::read(variable)?)),
            "Invoke" => Ok(Self::Invoke),
            _ => Err(SettingsError::Unreadable { name: CALLS_FROM, expected: "ApiGateway or Invoke" }),
        }
    }

    /// Reads the payload of a call. Refuses a payload that did not come through the stack's API.
    pub(crate) fn request(&self, event: &Value) -> Result<HttpRequest, ApiError> {
        match self {
            Self::ApiGateway(secret) => secret.check(HttpRequest::parse(event)?),
            Self::Invoke => Ok(direct::parse(event)?),
        }
    }

    pub(crate) fn result(&self, response: &HttpResponse) -> Value {
        match self {
            Self::ApiGateway(_) => response.encode(),
            Self::Invoke => direct::encode_result(response),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::API_SECRET;

    #[test]
    fn a_function_without_a_known_kind_of_calls_does_not_start() {
        let read =
            |text: Option<&str>| Calls::read(|name| text.filter(|_| name == CALLS_FROM).map(str::to_owned));
        assert_eq!(read(Some("Invoke")), Ok(Calls::Invoke));
        assert_eq!(read(None), Err(SettingsError::Missing(CALLS_FROM)));
        let error = read(Some("invoke")).unwrap_err().to_string();
        assert_eq!(error, "invalid environment variable CALLS_FROM: expected ApiGateway or Invoke");
        assert_eq!(read(Some("ApiGateway")), Err(SettingsError::Missing(API_SECRET)));
    }
}
