//! What goes wrong between here and the API, and what to do about it.
//!
//! A message tells what happened, a hint the way out. Neither ever holds a secret or a session token.

use std::error::Error;

use serde_json::Value;
use thiserror::Error;
use wire::request::Violation;

use crate::endpoint::EndpointError;

/// Characters of a foreign answer that a message holds.
const SHOWN_CHARACTERS: usize = 300;

/// An error of the client.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ClientError {
    /// The address is none: to be corrected.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// Nothing says in which Region the endpoint is: to be said.
    #[error(
        "the host name of the endpoint does not tell its Region, and neither do AWS_REGION or the profile"
    )]
    NoRegion,
    /// No credentials, or they cannot be had.
    #[error("no AWS credentials to sign with: {0}")]
    Credentials(String),
    /// The API refused the request: its own answer.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// API Gateway let nobody through.
    #[error("the endpoint refused the signature{}: {message}", identity.as_ref().map(|key| format!(" of the access key that ends in {key}")).unwrap_or_default())]
    Denied {
        /// What it says.
        message: String,
        /// The end of the access key's id; `None` = unsigned.
        identity: Option<String>,
        /// Why, as far as it can be told.
        why: Denial,
    },
    /// It did not answer, or with "not now", and that several times.
    #[error("the endpoint did not do it: {message}{}", tried(*.tries))]
    Busy {
        /// What it says.
        message: String,
        /// How often it was asked.
        tries: u32,
        /// Whether the request may have been taken all the same.
        lost: bool,
    },
    /// It cannot be reached.
    #[error("cannot reach the endpoint: {cause}{}", tried(*.tries))]
    Unreachable {
        /// What went wrong.
        cause: String,
        /// Where it went wrong.
        how: Unreached,
        /// How often it was tried.
        tries: u32,
        /// Whether the request may have arrived all the same: there was a connection.
        lost: bool,
    },
    /// Nobody knows whether a submission was taken: the answer to a try was lost, and it could not be looked up.
    #[error(
        "the tuning job {name} may have been submitted: an answer was lost on the way, and then: {cause}"
    )]
    Uncertain {
        /// Name of the tuning job.
        name: String,
        /// What the last try brought.
        cause: Box<ClientError>,
    },
    /// The environment names a proxy that is none: to be corrected. The value, which may hold a password, is not told.
    #[error("{0} is no address of a proxy; one such as http://proxy.example.com:3128 is wanted")]
    Proxy(&'static str),
    /// What answered is not this API.
    #[error("what answered at the endpoint is not this API: {0}")]
    Foreign(String),
}

/// The API's own refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// As AWS names it, such as `ValidationException`.
    pub code: String,
    /// What is wrong.
    pub message: String,
    /// The same field by field, if it is the request that is wrong.
    pub violations: Vec<Violation>,
}

/// Why a signature is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// The identity may not call this API.
    Permission,
    /// Its token has expired.
    Expired,
    /// The clock of this machine is wrong.
    Clock,
    /// Key or token are wrong.
    Signature,
    /// The request was not signed.
    Unsigned,
}

/// Where a connection fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreached {
    /// Nobody knows the host name.
    Name,
    /// TLS: the certificate or the handshake.
    Tls,
    /// No answer in time.
    Time,
    /// No connection, or it was lost.
    Connection,
}

impl ClientError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Endpoint(_) | Self::Refused(_) | Self::Proxy(_) => return None,
            Self::NoRegion => "set AWS_REGION to the stack's Region",
            Self::Credentials(_) => {
                "set AWS_PROFILE, sign in (`aws sso login`), or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; \
                 `aws sts get-caller-identity` shows whether there are credentials"
            }
            Self::Denied { why, .. } => why.hint(),
            Self::Busy { .. } => "try again in a minute",
            Self::Unreachable { how, .. } => how.hint(),
            Self::Uncertain { name, cause } => {
                let first = cause.hint().map_or_else(String::new, |hint| format!("{hint}; then "));
                return Some(format!(
                    "{first}look with `hyperband describe {name}`: if it is not there, submit it again under the same name, \
                     which is never taken twice"
                ));
            }
            Self::Foreign(_) => {
                "the endpoint is the stack's output ApiUrl; one with a stage has it as its path"
            }
        };
        Some(hint.to_owned())
    }

    /// Whether it is the request or the address that has to be changed, not the endpoint that failed.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Endpoint(_) | Self::NoRegion | Self::Proxy(_) => true,
            Self::Refused(refusal) => (400..500).contains(&refusal.status),
            Self::Credentials(_)
            | Self::Denied { .. }
            | Self::Busy { .. }
            | Self::Unreachable { .. }
            | Self::Uncertain { .. }
            | Self::Foreign(_) => false,
        }
    }

    /// Whether what was asked may have been done although no answer says so.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Busy { lost, .. } | Self::Unreachable { lost, .. } => *lost,
            Self::Uncertain { .. } => true,
            Self::Endpoint(_)
            | Self::NoRegion
            | Self::Proxy(_)
            | Self::Credentials(_)
            | Self::Refused(_)
            | Self::Denied { .. }
            | Self::Foreign(_) => false,
        }
    }

    /// Whether it is the API's refusal with `code`.
    pub fn is(&self, code: &str) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.code == code)
    }

    /// Told after so many tries.
    pub(crate) fn after(mut self, count: u32) -> Self {
        if let Self::Busy { tries, .. } | Self::Unreachable { tries, .. } = &mut self {
            *tries = count;
        }
        self
    }
}

impl Denial {
    /// Reads API Gateway's answer.
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
                "this identity needs execute-api:Invoke on the API: attach the managed policy that the stack's output \
                 TuningUsersPolicyArn names, or use another AWS_PROFILE; `aws sts get-caller-identity` shows who you are. \
                 An endpoint that does not exist, or a wrong Region, is answered in the same way"
            }
            Self::Expired => "sign in again (`aws sso login`), or renew the session's credentials",
            Self::Clock => "set the clock of this machine: a signature holds for five minutes",
            Self::Signature => {
                "the access key, its secret or its session token is wrong: renew the credentials"
            }
            Self::Unsigned => {
                "the endpoint wants a signature, and no AWS credentials were found: set AWS_PROFILE or sign in"
            }
        }
    }
}

impl Unreached {
    fn hint(self) -> &'static str {
        match self {
            Self::Name => "check --endpoint (the stack's output ApiUrl) and this machine's name service",
            Self::Tls => {
                "something between here and the endpoint does not have its certificate; check --endpoint, the clock, and \
                 the certificates this machine trusts (SSL_CERT_FILE)"
            }
            Self::Time | Self::Connection => {
                "check --endpoint, and whether this machine reaches it (firewall, VPN; a private API answers inside its VPC \
                 only)"
            }
        }
    }
}

fn tried(tries: u32) -> String {
    if tries > 1 { format!(" (tried {tries} times)") } else { String::new() }
}

/// An error with its causes, on one line.
pub(crate) fn because(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    shown(&text)
}

/// What somebody else wrote, short enough for a message.
pub(crate) fn shown(text: &str) -> String {
    let clean = text.trim().chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    clean.take(SHOWN_CHARACTERS).collect()
}

/// Reads the body of an error, whoever sent it: its code and its message.
pub(crate) fn told(body: &Value, header: Option<&str>) -> (String, Option<String>) {
    let text = |member: &str| body.get(member).and_then(Value::as_str).map(shown);
    let code = text("__type").or_else(|| header.map(shown)).unwrap_or_default();
    // `namespace#Code` and `Code:http://…` are ways of AWS to write a code.
    let code = code.rsplit('#').next().and_then(|code| code.split(':').next()).unwrap_or_default().to_owned();
    let message = body.get("message").or_else(|| body.get("Message")).and_then(Value::as_str);
    (code, message.map(|text| text.chars().take(100_000).collect()))
}
