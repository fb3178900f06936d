//! Where orders to tunings are given: in a data directory, whose `run` obeys them, or at an endpoint.

use client::ClientError;
use local::host::SystemClock;
use service::active::active;
use service::change::{ChangeError, change};
use service::lookup::{self, LookupError};
use service::ports::Clock;
use wire::change::LimitsChange;

use crate::arguments::Where;
use crate::data::Data;
use crate::failure::Failure;
use crate::remote::{Remote, failed};
use crate::run::ask;

/// Where the tunings are.
#[derive(Debug)]
pub(crate) enum Place {
    Folder(Box<Data>),
    Endpoint(Box<Remote>),
}

/// A tuning that is not over.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) name: String,
    /// Whether it was ordered to stop already.
    pub(crate) stopping: bool,
}

/// What became of an order.
#[derive(Debug)]
pub(crate) enum Told {
    Ordered,
    /// With the status in which it was too late.
    AlreadyEnded(String),
}

impl Place {
    pub(crate) async fn open(place: Where) -> Result<Self, Failure> {
        Ok(match place {
            Where::Folder(folder) => Self::Folder(Box::new(Data::existing(&folder).await?)),
            Where::Endpoint(endpoint) => Self::Endpoint(Box::new(Remote::connect(endpoint).await?)),
        })
    }

    /// The name as the tuning has it.
    pub(crate) async fn name(&self, name: &str) -> Result<String, Failure> {
        match self {
            Self::Folder(data) => Ok(data.find(name).await?.name),
            Self::Endpoint(remote) => {
                let described = remote.describe(name).await?;
                Ok(described["HyperParameterTuningJobName"].as_str().unwrap_or(name).to_owned())
            }
        }
    }

    /// All that are not over, and what kept others from being found.
    pub(crate) async fn active(&self) -> Result<(Vec<Active>, Vec<Failure>), Failure> {
        match self {
            Self::Folder(data) => {
                let all = active(&data.store).await?;
                let found = all.tunings.into_iter();
                let found = found.map(|one| Active { name: one.name, stopping: one.stopping }).collect();
                let unread = all.unread.into_iter().map(|one| {
                    Failure::from(one.error)
                        .context(format!("cannot stop {}, which cannot be read", one.name))
                });
                Ok((found, unread.collect()))
            }
            Self::Endpoint(remote) => {
                let (all, errors) = remote.client.active().await;
                let unread = errors
                    .into_iter()
                    .map(|error| failed(error).context("cannot list all tunings that are not over"));
                let shown = all.iter().filter_map(|summary| {
                    Some(Active {
                        name: summary["HyperParameterTuningJobName"].as_str()?.to_owned(),
                        stopping: summary["HyperParameterTuningJobStatus"] == "Stopping",
                    })
                });
                let mut shown: Vec<Active> = shown.collect();
                // One that began to stop between the two questions is in both answers.
                shown.sort_by(|one, other| one.name.cmp(&other.name));
                shown.dedup_by(|one, other| one.name == other.name);
                Ok((shown, unread.collect()))
            }
        }
    }

    /// Orders the tuning to stop.
    pub(crate) async fn stop(&self, name: &str) -> Result<Told, Failure> {
        match self {
            Self::Folder(data) => match lookup::stop(&data.store, name, SystemClock.now()).await {
                Ok(()) => Ok(Told::Ordered),
                Err(LookupError::AlreadyEnded(status)) => Ok(Told::AlreadyEnded(status)),
                Err(error) => Err(error.into()),
            },
            Self::Endpoint(remote) => told(remote, name, remote.client.stop(name).await).await,
        }
    }

    /// Orders limits of the tuning to be changed.
    pub(crate) async fn change(&self, name: &str, limits: &LimitsChange) -> Result<Told, Failure> {
        match self {
            Self::Folder(data) => {
                let body = limits.body().to_string();
                match change(&data.store, name, body.as_bytes(), SystemClock.now()).await {
                    Ok(()) => Ok(Told::Ordered),
                    Err(ChangeError::Lookup(LookupError::AlreadyEnded(status))) => {
                        Ok(Told::AlreadyEnded(status))
                    }
                    Err(ChangeError::Refused(error)) => Err(ask::refused(&error)),
                    Err(ChangeError::Lookup(error)) => Err(error.into()),
                }
            }
            Self::Endpoint(remote) => told(remote, name, remote.client.change(name, limits).await).await,
        }
    }

    /// Whether somebody is there to obey now.
    pub(crate) fn is_running(&self) -> bool {
        match self {
            Self::Folder(data) => data.is_running(),
            Self::Endpoint(_) => true,
        }
    }
}

/// What a stack's answer to an order means; one that came too late is a refusal, which the status explains.
async fn told(remote: &Remote, name: &str, answer: Result<(), ClientError>) -> Result<Told, Failure> {
    match answer {
        Ok(()) => Ok(Told::Ordered),
        Err(error) if error.is("ValidationException") => {
            let described = remote.describe(name).await?;
            let status = described["HyperParameterTuningJobStatus"].as_str().unwrap_or_default();
            match status {
                "InProgress" | "Stopping" => Err(failed(error)),
                ended => Ok(Told::AlreadyEnded(ended.to_owned())),
            }
        }
        Err(error) => Err(remote.told(error, name).await),
    }
}
