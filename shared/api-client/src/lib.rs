//! A client of the HTTP API: of a deployed stack (signed), of a server on this machine, or of an API in this process.
//! It can also call AWS services in the stack's account, or, without a stack, in the account of the credentials.
//!
//! Every call ends: the number of attempts is limited, and each attempt has a time-out. Retried requests are
//! idempotent; [`create`](Client::create) explains how for a submission. Must never print anything or reveal a secret.
//!
//! Without the feature `aws`, the crate has no transport: [`Stack::connect`] fails, and none of the credential
//! providers, TLS and HTTP crates is compiled.
#![warn(missing_docs)]

mod address;
mod caller;
mod create;
mod endpoint;
mod error;
mod exchange;
mod forward;
mod function;
mod invoke;
mod query;
mod retry;
mod send;
mod service;
mod stack;
#[cfg_attr(not(feature = "aws"), path = "no_transport.rs")]
mod transport;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;
use wire::change::LimitsChange;
use wire::cost::{CostPage, JobCost};
use wire::describe::{
    DecisionPage, RowPage, TrainingJobDetail, TrainingJobPage, TrainingJobSummary, TuningJob, TuningPage,
    TuningSummary,
};

pub use address::Address;
pub use caller::Caller;
pub use create::Created;
pub use endpoint::{Endpoint, EndpointError};
pub use error::{ClientError, Denial, Refusal, Unreached};
pub use exchange::{Exchange, Sending};
pub use function::Function;
pub use retry::Retry;
pub use service::{Service, ServiceError, Target};
pub use stack::Stack;

use wire::events::http::HttpRequest;

const TUNINGS: &str = "/tuning-jobs";
/// Entries per page, the API's maximum.
const PAGE: usize = 100;
const NEWEST_FIRST: &str = "SortBy=CreationTime&SortOrder=Descending";

/// A client of the API at the other end of an [`Exchange`].
#[derive(Debug, Clone)]
pub struct Client {
    exchange: Arc<dyn Exchange>,
    retry: Retry,
}

impl Client {
    /// Creates a client that retries a request with a transient error.
    pub fn new(exchange: Arc<dyn Exchange>, retry: Retry) -> Self {
        Self { exchange, retry }
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
        self.ask(&request("POST", &tuning_path(name, "/stop"), Vec::new())).await.map(drop)
    }

    /// Deletes an ended tuning job. After a lost answer, a repetition reports the tuning job as missing.
    pub async fn delete(&self, name: &str) -> Result<(), ClientError> {
        self.ask(&request("DELETE", &tuning_path(name, ""), Vec::new())).await.map(drop)
    }

    /// Changes limits of a running tuning job. Idempotent.
    pub async fn change(&self, name: &str, change: &LimitsChange) -> Result<(), ClientError> {
        let body = change.body().to_string().into_bytes();
        self.ask(&request("PATCH", &tuning_path(name, ""), body)).await.map(drop)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        read(self.ask(&request("GET", path, Vec::new())).await?)
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

/// Returns a request for a path with a query whose values need no escape.
fn request(method: &str, path: &str, body: Vec<u8>) -> HttpRequest {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut request = HttpRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        query: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        body,
        ..HttpRequest::default()
    };
    if !request.body.is_empty() {
        request.headers.insert("content-type".to_owned(), "application/json".to_owned());
    }
    request
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
