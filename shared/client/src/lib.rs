//! A client of the HTTP API: of a deployed stack (signed), or of a server of the same API on this machine; and of the
//! services of the stack's account that can be asked directly.
//!
//! Every call ends: each try has its time, and there are few. What is sent again is safe to be sent twice; how a
//! submission is, says [`create`](Client::create). Must never print, and never tell a secret.
#![warn(missing_docs)]

mod create;
mod endpoint;
mod error;
mod identity;
mod proxy;
mod retry;
mod send;
mod service;
mod sign;

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use serde_json::Value;
use wire::change::LimitsChange;

pub use create::Created;
pub use endpoint::{Endpoint, EndpointError};
pub use error::{ClientError, Denial, Refusal, Unreached};
pub use retry::Retry;
pub use service::{Service, ServiceError, Target};

use identity::Signatory;
use send::Ask;

const TUNINGS: &str = "/tuning-jobs";
/// Entries of a list asked for at once: the most that there are.
const PAGE: usize = 100;
const SUMMARIES: &str = "HyperParameterTuningJobSummaries";
const NEWEST_FIRST: &str = "SortBy=CreationTime&SortOrder=Descending";

/// A client of one endpoint.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    signatory: Option<Signatory>,
    connector: Connector,
    retry: Retry,
}

/// A page of the decisions of a tuning job.
#[derive(Debug, Clone, PartialEq)]
pub struct Decisions {
    /// The steps, as they are stored.
    pub steps: Vec<Value>,
    /// Whether there are more after these.
    pub more: bool,
}

impl Client {
    /// A client that signs with the credentials of the environment, and goes by its proxy.
    pub async fn connect(endpoint: Endpoint) -> Result<Self, ClientError> {
        let proxy = proxy::of_environment()?;
        let signatory = Some(Signatory::find(&endpoint, proxy::credentials_client(proxy.clone())).await?);
        Ok(Self { endpoint, signatory, connector: send::connector(proxy), retry: Retry::default() })
    }

    /// A client that signs with these credentials, or not at all, and goes by no proxy.
    pub fn new(endpoint: Endpoint, signed: Option<(Credentials, &str)>, retry: Retry) -> Self {
        let signatory = signed.map(|(credentials, region)| Signatory::given(credentials, region));
        Self { endpoint, signatory, connector: send::connector(ProxyConfig::disabled()), retry }
    }

    /// Where it asks.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether there are credentials to sign with; on this machine there may be none.
    pub async fn is_signed(&self) -> Result<bool, ClientError> {
        match &self.signatory {
            Some(signatory) => Ok(signatory.credentials(SystemTime::now()).await?.is_some()),
            None => Ok(false),
        }
    }

    /// The answer of Describe.
    pub async fn describe(&self, name: &str) -> Result<Value, ClientError> {
        self.get(&of(name, "")).await
    }

    /// All tuning jobs, newest first.
    pub async fn list(&self) -> Result<Vec<Value>, ClientError> {
        self.pages(&format!("{TUNINGS}?{NEWEST_FIRST}&MaxResults={PAGE}"), SUMMARIES).await
    }

    /// The newest tuning jobs: one page of [`list`](Self::list), and whether there are more.
    pub async fn newest(&self) -> Result<(Vec<Value>, bool), ClientError> {
        let answer = self.get(&format!("{TUNINGS}?{NEWEST_FIRST}&MaxResults={PAGE}")).await?;
        let more = answer.get("NextToken").is_some();
        Ok((entries(answer, SUMMARIES)?, more))
    }

    /// Those that have not ended, and what kept others from being listed: an error there must not hide these.
    pub async fn active(&self) -> (Vec<Value>, Vec<ClientError>) {
        let (mut all, mut errors) = (Vec::new(), Vec::new());
        for status in ["InProgress", "Stopping"] {
            let path = format!("{TUNINGS}?StatusEquals={status}&MaxResults={PAGE}");
            errors.extend(self.pages_into(&mut all, &path, SUMMARIES).await.err());
        }
        // The same trouble is told once.
        errors.dedup();
        (all, errors)
    }

    /// The training jobs of a tuning job, by trial and attempt.
    pub async fn training_jobs(&self, name: &str) -> Result<Vec<Value>, ClientError> {
        let path = of(name, &format!("/training-jobs?MaxResults={PAGE}"));
        self.pages(&path, "TrainingJobSummaries").await
    }

    /// The next page of decisions after step `after`. The token of such a page is the number of its last step.
    pub async fn decisions(&self, name: &str, after: u64) -> Result<Decisions, ClientError> {
        let answer = self.get(&of(name, &format!("/decisions?NextToken={after}"))).await?;
        Ok(Decisions { more: answer.get("NextToken").is_some(), steps: entries(answer, "Decisions")? })
    }

    /// Orders a tuning job to stop. To order it twice changes nothing.
    pub async fn stop(&self, name: &str) -> Result<(), ClientError> {
        self.ask(Ask { method: "POST", path: &of(name, "/stop"), body: b"" }).await.map(drop)
    }

    /// Changes limits of a tuning job that runs. To order the same change twice changes nothing more.
    pub async fn change(&self, name: &str, change: &LimitsChange) -> Result<(), ClientError> {
        let body = change.body().to_string();
        self.ask(Ask { method: "PATCH", path: &of(name, ""), body: body.as_bytes() }).await.map(drop)
    }

    async fn get(&self, path: &str) -> Result<Value, ClientError> {
        self.ask(Ask { method: "GET", path, body: b"" }).await
    }

    /// All entries of a list, page by page.
    async fn pages(&self, path: &str, member: &str) -> Result<Vec<Value>, ClientError> {
        let mut all = Vec::new();
        self.pages_into(&mut all, path, member).await?;
        Ok(all)
    }

    /// The same, into `all`, which keeps what was read before an error.
    async fn pages_into(&self, all: &mut Vec<Value>, path: &str, member: &str) -> Result<(), ClientError> {
        let mut next = None::<String>;
        loop {
            let token = next.as_ref().map_or_else(String::new, |token| format!("&NextToken={token}"));
            let answer = self.get(&format!("{path}{token}")).await?;
            let following = answer.get("NextToken").and_then(Value::as_str).map(str::to_owned);
            all.extend(entries(answer, member)?);
            match following {
                // A page that leads to itself has no end.
                Some(_) if following == next => return Err(no_list("NextToken")),
                // A token is put into a path as it is.
                Some(token) if token.bytes().all(is_plain) => next = Some(token),
                Some(_) => return Err(no_list("NextToken")),
                None => return Ok(()),
            }
        }
    }
}

/// The path of a tuning job. What cannot be a name is asked for by no path, and so found by none.
fn of(name: &str, rest: &str) -> String {
    let plain: String =
        name.bytes().map(|byte| if is_plain(byte) { char::from(byte) } else { '_' }).collect();
    format!("{TUNINGS}/{plain}{rest}")
}

/// A letter of names and tokens, which mean themselves in a URL.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn entries(mut answer: Value, member: &str) -> Result<Vec<Value>, ClientError> {
    match answer.get_mut(member).map(Value::take) {
        Some(Value::Array(entries)) => Ok(entries),
        Some(_) | None => Err(no_list(member)),
    }
}

fn no_list(member: &str) -> ClientError {
    ClientError::Foreign(format!("its answer has no {member} that can be used"))
}

pub(crate) fn tls() -> Provider {
    Provider::Rustls(CryptoMode::Ring)
}
