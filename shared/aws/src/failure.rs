//! Classifies a failed call, by rules that all AWS services with JSON protocols share.
//!
//! `Refused` and `Throttled` promise that the service did nothing. A call without a readable response must never be
//! classified as one of them.

use std::error::Error;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::display::DisplayErrorContext;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// No response, an unreadable one, or a server error: the call may or may not have taken effect. Also expired
    /// credentials: the call had no effect, and the next call gets new ones.
    Unavailable(String),
    /// The service throttled the call, which had no effect.
    Throttled,
    /// The service rejected the call, which had no effect.
    Refused {
        /// The service's error code.
        code: String,
        message: String,
    },
}

impl Failure {
    /// Classifies an error of an SDK.
    pub fn of<E>(error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        match error {
            SdkError::ServiceError(answer) => {
                let (status, message) = (answer.raw().status().as_u16(), answer.err().message());
                match answer.err().code() {
                    Some(code) if status >= 400 => {
                        Self::by_code(code, message.unwrap_or("no message"), status)
                    }
                    // The SDK reports an unreadable success as a service error, too. A response without a code may come
                    // from a proxy and not from the service.
                    _ if status == 429 => Self::Throttled,
                    _ => Self::Unavailable(format!("status {status}: {}", DisplayErrorContext(error))),
                }
            }
            // Time-outs, failed connections, and requests that could not be built because the Region or the credentials
            // are missing.
            _ => Self::Unavailable(DisplayErrorContext(error).to_string()),
        }
    }

    /// Classifies an error response by its code, then by its status.
    pub fn by_code(code: &str, message: &str, status: u16) -> Self {
        let unavailable = || Self::Unavailable(format!("{code}: {message}"));
        match code {
            "Throttling"
            | "ThrottlingException"
            | "ThrottledException"
            | "TooManyRequestsException"
            | "RequestLimitExceeded" => Self::Throttled,
            "InternalException"
            | "InternalFailure"
            | "InternalServerError"
            | "RequestTimeout"
            | "ServiceUnavailable"
            | "ServiceUnavailableException"
            // These concern the credentials, not the request.
            | "ExpiredToken"
            | "ExpiredTokenException"
            | "RequestExpired" => unavailable(),
            _ if status == 429 => Self::Throttled,
            _ if status >= 500 => unavailable(),
            _ if message.contains("Rate exceeded") => Self::Throttled,
            _ => Self::Refused { code: code.to_owned(), message: message.to_owned() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_has_priority_over_the_status_and_the_status_over_the_message() {
        let unavailable = |text: &str| Failure::Unavailable(text.to_owned());
        let refused = |code: &str, message: &str| Failure::Refused {
            code: code.to_owned(),
            message: message.to_owned(),
        };
        for (code, message, status, expected) in [
            ("ThrottlingException", "Rate exceeded", 400, Failure::Throttled),
            ("ThrottlingException", "busy", 503, Failure::Throttled),
            ("TooManyRequestsException", "busy", 429, Failure::Throttled),
            ("Odd", "busy", 429, Failure::Throttled),
            ("ClientError", "Rate exceeded", 400, Failure::Throttled),
            ("ServiceUnavailable", "busy", 503, unavailable("ServiceUnavailable: busy")),
            ("InternalFailure", "oh", 500, unavailable("InternalFailure: oh")),
            ("Odd", "no", 502, unavailable("Odd: no")),
            // The call may have taken effect.
            ("Odd", "Rate exceeded", 500, unavailable("Odd: Rate exceeded")),
            ("ExpiredTokenException", "expired", 400, unavailable("ExpiredTokenException: expired")),
            ("ValidationException", "no", 400, refused("ValidationException", "no")),
            ("AccessDeniedException", "no", 403, refused("AccessDeniedException", "no")),
            ("Odd", "no", 418, refused("Odd", "no")),
        ] {
            assert_eq!(Failure::by_code(code, message, status), expected, "{code} {message} {status}");
        }
    }
}
