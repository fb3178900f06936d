//! Errors of the client, with hints on how to fix them.
//!
//! A message or a hint must never contain a secret or a session token.

use thiserror::Error;
use wire::request::{ErrorBody, Violation};

use crate::endpoint::EndpointError;

/// Maximum number of characters of a foreign response in a message.
const SHOWN_CHARACTERS: usize = 300;

/// An error of the client.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ClientError {
    /// The address of the endpoint is invalid.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The environment variable has an invalid address.
    #[error("{name}: {error}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// The error of its value.
        error: EndpointError,
    },
    /// The function for direct calls does not exist.
    #[error("the function does not exist: {0}")]
    NoFunction(String),
    /// The Region of the endpoint is unknown.
    #[error("unknown AWS Region: not in the endpoint's host name, AWS_REGION or the profile")]
    NoRegion,
    /// The credentials are missing, or their provider failed.
    #[error("no AWS credentials to sign with: {0}")]
    Credentials(String),
    /// The API refused the request.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// API Gateway denied access.
    #[error("the endpoint refused the signature{}: {message}", identity.as_ref().map(|key| format!(" of the access key that ends in {key}")).unwrap_or_default())]
    Denied {
        /// Message of API Gateway.
        message: String,
        /// The end of the access key's ID; `None` = unsigned.
        identity: Option<String>,
        /// The likely reason.
        why: Denial,
    },
    /// The endpoint failed or throttled the request.
    #[error("the endpoint could not complete the request: {message}{}", tried(*.tries))]
    Busy {
        /// Message of the endpoint.
        message: String,
        /// Number of attempts.
        tries: u32,
        /// Whether the request may have taken effect.
        lost: bool,
    },
    /// The endpoint is unreachable.
    #[error("cannot reach the endpoint: {cause}{}", tried(*.tries))]
    Unreachable {
        /// Message of the connector.
        cause: String,
        /// The step that failed.
        how: Unreached,
        /// Number of attempts.
        tries: u32,
        /// Whether the request may have taken effect, because a connection existed.
        lost: bool,
    },
    /// The result of a submission is unknown: a response was lost, and the lookup of the tuning job failed.
    #[error("the tuning job {name} may have been submitted: a response was lost, then: {cause}")]
    Uncertain {
        /// Name of the tuning job.
        name: String,
        /// Error of the last attempt.
        cause: Box<ClientError>,
    },
    /// The environment variable has an invalid proxy address. The message omits the value, which may contain a
    /// password.
    #[error("invalid proxy address in {0}: expected a URL, for example http://proxy.example.com:3128")]
    Proxy(&'static str),
    /// The program was built without the feature `aws`.
    #[error("this build of hyperband cannot reach an endpoint: it has no network client")]
    NoTransport,
    /// The response is not one of this API.
    #[error("unexpected response of the endpoint: {0}")]
    Foreign(String),
    /// An API in this process failed, for example because its table is unreadable.
    #[error("{0}")]
    Host(String),
}

/// A refusal of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// Error code of AWS, such as `ValidationException`.
    pub code: String,
    /// Error message.
    pub message: String,
    /// Violations by field, if the request is invalid.
    pub violations: Vec<Violation>,
}

/// Why access is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// The identity lacks the permission.
    Permission,
    /// The identity may not invoke the function.
    Invocation,
    /// The session token has expired.
    Expired,
    /// The clock of this machine is wrong.
    Clock,
    /// The key or the token is wrong.
    Signature,
    /// The request was not signed.
    Unsigned,
}

/// The step at which a connection fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreached {
    /// The lookup of the host name.
    Name,
    /// TLS: the certificate or the handshake.
    Tls,
    /// The response timed out.
    Time,
    /// The connection failed or was lost.
    Connection,
}

impl ClientError {
    /// Returns how to fix the error.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Endpoint(_) | Self::Variable { .. } | Self::Refused(_) | Self::Proxy(_) | Self::Host(_) => {
                return None;
            }
            Self::NoFunction(_) => {
                "use the stack's output InvokeFunctionName, and set AWS_REGION to the stack's Region; from another account \
                 use the function's ARN"
            }
            Self::NoTransport => "build it with its default features: cargo build --release -p cli",
            Self::NoRegion => "set AWS_REGION to the stack's Region",
            Self::Credentials(_) => {
                "set AWS_PROFILE, sign in (`aws sso login`), or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; \
                 `aws sts get-caller-identity` shows whether there are credentials"
            }
            Self::Denied { why, .. } => why.hint(),
            Self::Busy { .. } => "retry in a minute",
            Self::Unreachable { how, .. } => how.hint(),
            Self::Uncertain { name, cause } => {
                let first = cause.hint().map_or_else(String::new, |hint| format!("{hint}; then "));
                return Some(format!(
                    "{first}check with `hyperband describe {name}`: if it does not exist, submit it again with the same \
                     name, which cannot start a second tuning job"
                ));
            }
            Self::Foreign(_) => {
                "use the stack's output ApiUrl as the endpoint, with the stage as its path if it has one, or lambda: and \
                 the output InvokeFunctionName"
            }
        };
        Some(hint.to_owned())
    }

    /// Returns whether the user must change the request or the address, as opposed to a failure of the endpoint.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Endpoint(_)
            | Self::Variable { .. }
            | Self::NoFunction(_)
            | Self::NoRegion
            | Self::Proxy(_)
            | Self::NoTransport => true,
            Self::Refused(refusal) => (400..500).contains(&refusal.status),
            Self::Credentials(_)
            | Self::Denied { .. }
            | Self::Busy { .. }
            | Self::Unreachable { .. }
            | Self::Uncertain { .. }
            | Self::Foreign(_)
            | Self::Host(_) => false,
        }
    }

    /// Returns whether the request may have taken effect although its response is missing.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Busy { lost, .. } | Self::Unreachable { lost, .. } => *lost,
            Self::Uncertain { .. } => true,
            Self::Endpoint(_)
            | Self::Variable { .. }
            | Self::NoFunction(_)
            | Self::NoRegion
            | Self::Proxy(_)
            | Self::Credentials(_)
            | Self::Refused(_)
            | Self::Denied { .. }
            | Self::NoTransport
            | Self::Foreign(_)
            | Self::Host(_) => false,
        }
    }

    /// Returns whether the API refused the request with `code`.
    pub fn is(&self, code: &str) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.code == code)
    }

    /// Sets the number of attempts.
    pub(crate) fn after(mut self, count: u32) -> Self {
        if let Self::Busy { tries, .. } | Self::Unreachable { tries, .. } = &mut self {
            *tries = count;
        }
        self
    }
}

impl Denial {
    /// Classifies API Gateway's response.
    pub(crate) fn of(code: &str, message: &str, signed: bool) -> Self {
        let says = |words: &[&str]| words.iter().any(|word| code.contains(word) || message.contains(word));
        if !signed {
            Self::Unsigned
        } else if says(&["Signature expired", "Signature not yet current", "RequestTimeTooSkewed"]) {
            Self::Clock
        } else if says(&["ExpiredToken", "token included in the request is expired"]) {
            Self::Expired
        } else if says(&[
            "UnrecognizedClient",
            "InvalidSignature",
            "IncompleteSignature",
            "is invalid",
            "does not match",
        ]) {
            Self::Signature
        } else {
            Self::Permission
        }
    }

    fn hint(self) -> &'static str {
        match self {
            Self::Permission => {
                "this identity needs execute-api:Invoke on the API: attach the managed policy in the stack's output \
                 TuningUsersPolicyArn, or use another AWS_PROFILE; `aws sts get-caller-identity` shows your identity. \
                 A wrong endpoint or a wrong Region gives the same error"
            }
            Self::Invocation => {
                "this identity needs lambda:InvokeFunction on the function; from another account, the function's own \
                 policy must allow it too (`aws lambda add-permission`); `aws sts get-caller-identity` shows your \
                 identity. A wrong name or a wrong Region gives the same error"
            }
            Self::Expired => "sign in again (`aws sso login`), or renew the session's credentials",
            Self::Clock => "set the clock of this machine: a signature is valid for five minutes",
            Self::Signature => {
                "the access key, its secret or its session token is wrong: renew the credentials"
            }
            Self::Unsigned => {
                "the endpoint requires a signature, but no AWS credentials were found: set AWS_PROFILE or sign in"
            }
        }
    }
}

impl Unreached {
    fn hint(self) -> &'static str {
        match self {
            Self::Name => "check --endpoint (the stack's output ApiUrl) and the DNS settings of this machine",
            Self::Tls => {
                "this machine does not trust the certificate, or a proxy intercepts the connection: check --endpoint, \
                 the clock, and the trusted certificates (SSL_CERT_FILE)"
            }
            Self::Time | Self::Connection => {
                "check --endpoint, and whether this machine can reach it (firewall, VPN); a private API is reachable \
                 only in its VPC"
            }
        }
    }
}

fn tried(tries: u32) -> String {
    if tries > 1 { format!(" (tried {tries} times)") } else { String::new() }
}

/// Shortens a foreign text for a message and removes control characters.
pub(crate) fn shown(text: &str) -> String {
    let clean = text.trim().chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    clean.take(SHOWN_CHARACTERS).collect()
}

pub(crate) fn code_and_message(body: &ErrorBody, header: Option<&str>) -> (String, Option<String>) {
    let code = body.code.as_deref().or(header).map(shown).unwrap_or_default();
    // AWS also writes a code as `namespace#Code` or `Code:http://…`.
    let code = code.rsplit('#').next().and_then(|code| code.split(':').next()).unwrap_or_default().to_owned();
    let message = body.message.as_ref().or(body.capital_message.as_ref());
    (code, message.map(|text| text.chars().take(100_000).collect()))
}
