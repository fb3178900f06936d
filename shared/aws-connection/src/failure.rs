//! What became of a call that failed, as far as it is the same for every service that speaks JSON.
//!
//! Must never make `Refused` or `Throttled`, which promise that nothing was done, of a call whose answer is not known.

use std::error::Error;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::display::DisplayErrorContext;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// No answer, one that cannot be read, or a server's fault: it may or may not have been done. So is a call with
    /// credentials that have expired: it was not done, and the next one has others.
    Unavailable(String),
    /// Too many calls.
    Throttled,
    /// The service refused it.
    Refused {
        /// The service's error code.
        code: String,
        /// Its message.
        message: String,
    },
}

impl Failure {
    /// What an SDK's error means.
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
                    // An answer of success that the SDK cannot read comes as an error of the service too; and what has
                    // no code need not come from the service at all.
                    _ if status == 429 => Self::Throttled,
                    _ => Self::Unavailable(format!("status {status}: {}", DisplayErrorContext(error))),
                }
            }
            // Time-outs, connections that failed, and requests that could not be made: for want of a region or of
            // credentials, not for what they say.
            _ => Self::Unavailable(DisplayErrorContext(error).to_string()),
        }
    }

    /// What an answer of failure with an error code means.
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
            // Of the credentials, not of the request.
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
    fn a_code_outranks_the_status_and_that_the_message() {
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
            // Nothing says that it was not done.
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
