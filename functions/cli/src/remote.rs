//! The tunings of an endpoint: a deployed stack, or another server of its API. How its errors are told.

use client::{Client, ClientError, Endpoint};
use serde_json::Value;
use wire::request::RequestError;

use crate::closest::closest;
use crate::failure::{Exit, Failure};
use crate::page::Page;
use crate::run::ask;

/// What the API says of a name that nothing has.
const NOT_FOUND: &str = "ResourceNotFound";

/// A stack.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) client: Client,
}

impl Remote {
    /// The stack at `endpoint`, asked with the credentials of the environment.
    pub(crate) async fn connect(endpoint: Endpoint) -> Result<Self, Failure> {
        let client = Client::connect(endpoint).await.map_err(failed)?;
        Ok(Self { client })
    }

    /// What Describe shows of the tuning `name`, or an error with the names that it may have been.
    pub(crate) async fn describe(&self, name: &str) -> Result<Value, Failure> {
        match self.client.describe(name).await {
            Ok(described) => Ok(described),
            Err(error) => Err(self.told(error, name).await),
        }
    }

    /// The tuning `name` with its jobs.
    pub(crate) async fn page(&self, name: &str) -> Result<Page, Failure> {
        let described = self.describe(name).await?;
        let jobs = self.client.training_jobs(name).await.map_err(failed)?;
        Ok(Page { described, jobs })
    }

    /// The error of a call about the tuning `name`.
    pub(crate) async fn told(&self, error: ClientError, name: &str) -> Failure {
        if !error.is(NOT_FOUND) {
            return failed(error);
        }
        // Only a guess, so one page will do; without any names there is less to say, and still something.
        let newest = self.client.newest().await;
        let (newest, none) = newest.map_or_else(
            |_| (Vec::new(), false),
            |(all, more)| {
                let none = all.is_empty() && !more;
                (all, none)
            },
        );
        let names = newest.iter().filter_map(|shown| shown["HyperParameterTuningJobName"].as_str());
        let near = closest(name, names);
        let hint = match near.as_slice() {
            [] if none => "there is none at all: start one with `hyperband submit`".to_owned(),
            [] => "`hyperband list` shows all".to_owned(),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        let place = self.client.endpoint();
        Failure::usage(format!("no tuning at {place} is named '{name}'")).hint(hint)
    }
}

/// An error of the client, for the person at the terminal.
pub(crate) fn failed(error: ClientError) -> Failure {
    let (usage, hint) = (error.is_usage(), error.hint());
    let failure = match error {
        ClientError::Refused(refusal) if !refusal.violations.is_empty() => ask::refused(&RequestError {
            code: wire::request::ErrorCode::ValidationException,
            message: refusal.message,
            violations: refusal.violations,
        }),
        ClientError::Refused(refusal) if refusal.code == "ResourceInUse" => {
            Failure::usage(refusal.message).hint("give another --name")
        }
        error => Failure::endpoint(error),
    };
    let failure = failure.exit(if usage { Exit::Usage } else { Exit::Endpoint });
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
