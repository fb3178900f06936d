//! A client of the HTTP API, on a deployed stack (signed) or on this machine. It can also call AWS services in the
//! stack's account, or, without a stack, in the account of the credentials.
//!
//! Every call ends: the number of attempts is limited, and each attempt has a time-out. Retried requests are
//! idempotent; [`create`](Client::create) explains how for a submission. Must never print, or reveal a secret.
//!
//! Without the feature `aws` the crate has no transport: [`Client::connect`] fails, and none of the credential
//! providers, TLS and HTTP crates is compiled.
#![warn(missing_docs)]

mod caller;
mod create;
mod endpoint;
mod error;
mod forward;
mod function;
mod invoke;
mod query;
mod retry;
mod send;
mod service;
#[cfg_attr(not(feature = "aws"), path = "no_transport.rs")]
mod transport;

#[cfg(feature = "aws")]
use aws_credential_types::Credentials;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wire::change::LimitsChange;
use wire::cost::{CostPage, JobCost};
use wire::describe::{
    DecisionPage, RowPage, TrainingJobDetail, TrainingJobPage, TrainingJobSummary, TuningJob, TuningPage,
    TuningSummary,
};

pub use caller::Caller;
pub use create::Created;
pub use endpoint::{Address, Endpoint, EndpointError};
pub use error::{ClientError, Denial, Refusal, Unreached};
pub use function::Function;
pub use retry::Retry;
pub use service::{Service, ServiceError, Target};

use send::Ask;

const TUNINGS: &str = "/tuning-jobs";
/// Entries per page, the API's maximum.
const PAGE: usize = 100;
const NEWEST_FIRST: &str = "SortBy=CreationTime&SortOrder=Descending";

/// A client of one stack.
#[derive(Debug)]
pub struct Client {
    address: Address,
    /// The URL of the HTTP API, or of Lambda.
    endpoint: Endpoint,
    caller: Caller,
}

impl Client {
    /// Creates a client with the credentials and the proxy of the environment.
    pub async fn connect(address: Address) -> Result<Self, ClientError> {
        let (endpoint, region) = match &address {
            Address::Http(endpoint) => (Some(endpoint.clone()), endpoint.region()),
            Address::Function(function) => (invoke::endpoint_in_environment()?, function.region()),
        };
        let is_local = endpoint.as_ref().is_some_and(Endpoint::is_loopback);
        let caller = Caller::connect(region, is_local).await?;
        // Only a function may have no endpoint yet: that of Lambda in its Region.
        let endpoint = caller.service(Target::Lambda, endpoint)?.endpoint().clone();
        Ok(Self { address, endpoint, caller })
    }

    /// Creates a client that signs with the credentials and Region in `signed` (`None` = unsigned), and uses no proxy.
    #[cfg(feature = "aws")]
    pub fn new(endpoint: Endpoint, signed: Option<(Credentials, &str)>, retry: Retry) -> Self {
        let address = Address::Http(endpoint.clone());
        Self { address, endpoint, caller: Caller::new(signed, retry) }
    }

    /// Like [`Self::new`], but invokes `function` at `endpoint`, the URL of Lambda.
    #[cfg(feature = "aws")]
    pub fn invoking(
        function: Function,
        endpoint: Endpoint,
        signed: Option<(Credentials, &str)>,
        retry: Retry,
    ) -> Self {
        let address = Address::Function(function);
        Self { address, endpoint, caller: Caller::new(signed, retry) }
    }

    /// Returns the address of the stack.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the URL that requests go to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns whether the client has credentials. An endpoint on this machine needs none.
    pub async fn is_signed(&self) -> Result<bool, ClientError> {
        self.caller.is_signed().await
    }

    /// Returns the description of a tuning job.
    pub async fn describe(&self, name: &str) -> Result<TuningJob, ClientError> {
        self.get(&tuning_path(name, "")).await
    }

    /// Returns all tuning jobs, newest first.
    pub async fn list(&self) -> Result<Vec<TuningSummary>, ClientError> {
        let mut all = Vec::new();
        let path = format!("{TUNINGS}?{NEWEST_FIRST}&MaxResults={PAGE}");
        self.pages(&path, |page: TuningPage| (page.tunings, page.next_token), &mut all).await?;
        Ok(all)
    }

    /// Returns the first page of [`list`](Self::list).
    pub async fn newest(&self) -> Result<TuningPage, ClientError> {
        self.get(&format!("{TUNINGS}?{NEWEST_FIRST}&MaxResults={PAGE}")).await
    }

    /// Returns the tuning jobs that have not ended, and the errors of the listing. An error hides no job already read.
    pub async fn active(&self) -> (Vec<TuningSummary>, Vec<ClientError>) {
        let (mut all, mut errors) = (Vec::new(), Vec::new());
        for status in ["InProgress", "Stopping"] {
            let path = format!("{TUNINGS}?StatusEquals={status}&MaxResults={PAGE}");
            let pages = self.pages(&path, |page: TuningPage| (page.tunings, page.next_token), &mut all).await;
            errors.extend(pages.err());
        }
        // Both statuses may fail for the same reason.
        errors.dedup();
        (all, errors)
    }

    /// Returns the training jobs of a tuning job, in order of trial and attempt.
    pub async fn training_jobs(&self, name: &str) -> Result<Vec<TrainingJobSummary>, ClientError> {
        let mut all = Vec::new();
        let path = tuning_path(name, &format!("/training-jobs?MaxResults={PAGE}"));
        self.pages(&path, |page: TrainingJobPage| (page.jobs, page.next_token), &mut all).await?;
        Ok(all)
    }

    /// Returns one training job of a tuning job.
    pub async fn training_job(&self, name: &str, job: &str) -> Result<TrainingJobDetail, ClientError> {
        self.get(&tuning_path(name, &format!("/training-jobs/{}", plain(job)))).await
    }

    /// Returns the booked costs of a tuning job's training jobs, in order of trial and attempt.
    pub async fn costs(&self, name: &str) -> Result<Vec<JobCost>, ClientError> {
        let mut all = Vec::new();
        let path = tuning_path(name, &format!("/cost?MaxResults={PAGE}"));
        self.pages(&path, |page: CostPage| (page.training_jobs, page.next_token), &mut all).await?;
        Ok(all)
    }

    /// Returns all stored rows of a tuning job, in DynamoDB's JSON.
    pub async fn rows(&self, name: &str) -> Result<Vec<Value>, ClientError> {
        let mut all = Vec::new();
        let path = tuning_path(name, "/rows?MaxResults=200");
        self.pages(&path, |page: RowPage| (page.rows, page.next_token), &mut all).await?;
        Ok(all)
    }

    /// Returns the next page of decisions after step `after`. The token of a page is the number of its last step. `S` may
    /// be JSON or a part of a step, because a newer server may have steps that this release cannot read.
    pub async fn decisions<S: DeserializeOwned>(
        &self,
        name: &str,
        after: u64,
    ) -> Result<DecisionPage<S>, ClientError> {
        self.get(&tuning_path(name, &format!("/decisions?NextToken={after}"))).await
    }

    /// Stops a tuning job. Idempotent.
    pub async fn stop(&self, name: &str) -> Result<(), ClientError> {
        self.ask(Ask { method: "POST", path: &tuning_path(name, "/stop"), body: b"" }).await.map(drop)
    }

    /// Deletes an ended tuning job. After a lost answer, a repetition reports the tuning job as missing.
    pub async fn delete(&self, name: &str) -> Result<(), ClientError> {
        self.ask(Ask { method: "DELETE", path: &tuning_path(name, ""), body: b"" }).await.map(drop)
    }

    /// Changes limits of a running tuning job. Idempotent.
    pub async fn change(&self, name: &str, change: &LimitsChange) -> Result<(), ClientError> {
        let body = change.body().to_string();
        self.ask(Ask { method: "PATCH", path: &tuning_path(name, ""), body: body.as_bytes() }).await.map(drop)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        read(self.ask(Ask { method: "GET", path, body: b"" }).await?)
    }

    /// Appends all entries of a list to `all`, page by page. After an error, `all` has the entries read before it.
    async fn pages<P: DeserializeOwned, E>(
        &self,
        path: &str,
        split: fn(P) -> (Vec<E>, Option<String>),
        all: &mut Vec<E>,
    ) -> Result<(), ClientError> {
        let mut next = None::<String>;
        loop {
            let token = next.as_ref().map_or_else(String::new, |token| format!("&NextToken={token}"));
            let (entries, following) = split(self.get(&format!("{path}{token}")).await?);
            all.extend(entries);
            match following {
                None => return Ok(()),
                // A repeated token would never end. The path contains the token without escapes.
                Some(token) if next.as_ref() != Some(&token) && token.bytes().all(is_plain) => {
                    next = Some(token);
                }
                Some(_) => {
                    return Err(ClientError::Foreign("the response has an invalid NextToken".to_owned()));
                }
            }
        }
    }
}

/// Returns the path of a tuning job. Characters that no name has become `_`, so an invalid name matches no tuning job.
fn tuning_path(name: &str, rest: &str) -> String {
    format!("{TUNINGS}/{}{rest}", plain(name))
}

/// Replaces the bytes that no name contains.
fn plain(name: &str) -> String {
    name.bytes().map(|byte| if is_plain(byte) { char::from(byte) } else { '_' }).collect()
}

/// Returns whether names and tokens may contain this byte, which needs no escape in a URL.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

pub(crate) fn read<T: DeserializeOwned>(body: Value) -> Result<T, ClientError> {
    serde_json::from_value(body).map_err(|error| ClientError::Foreign(error::shown(&error.to_string())))
}
