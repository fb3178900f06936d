//! Where tunings are stopped: in a data directory, or at an endpoint.

use local::host::SystemClock;
use service::active::active;
use service::lookup::{self, LookupError};
use service::ports::Clock;

use crate::arguments::Where;
use crate::data::Data;
use crate::failure::Failure;
use crate::remote::{Remote, failed};

/// Where the tunings are.
#[derive(Debug)]
pub(super) enum Place {
    Folder(Box<Data>),
    Endpoint(Box<Remote>),
}

/// A tuning that is not over.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) name: String,
    /// Whether it was ordered to stop already.
    pub(super) stopping: bool,
}

/// What became of an order.
#[derive(Debug)]
pub(super) enum Told {
    Ordered,
    /// With the status in which it was too late.
    AlreadyEnded(String),
}

impl Place {
    pub(super) async fn open(place: Where) -> Result<Self, Failure> {
        Ok(match place {
            Where::Folder(folder) => Self::Folder(Box::new(Data::existing(&folder).await?)),
            Where::Endpoint(endpoint) => Self::Endpoint(Box::new(Remote::connect(endpoint).await?)),
        })
    }

    /// The name as the tuning has it.
    pub(super) async fn name(&self, name: &str) -> Result<String, Failure> {
        match self {
            Self::Folder(data) => Ok(data.find(name).await?.name),
            Self::Endpoint(remote) => {
                let described = remote.describe(name).await?;
                Ok(described["HyperParameterTuningJobName"].as_str().unwrap_or(name).to_owned())
            }
        }
    }

    /// All that are not over.
    pub(super) async fn active(&self) -> Result<Vec<Active>, Failure> {
        match self {
            Self::Folder(data) => {
                let all = active(&data.store).await?;
                Ok(all.into_iter().map(|one| Active { name: one.name, stopping: one.stopping }).collect())
            }
            Self::Endpoint(remote) => {
                let all = remote.client.active().await.map_err(failed)?;
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
                Ok(shown)
            }
        }
    }

    /// Orders the tuning to stop.
    pub(super) async fn stop(&self, name: &str) -> Result<Told, Failure> {
        match self {
            Self::Folder(data) => match lookup::stop(&data.store, name, SystemClock.now()).await {
                Ok(()) => Ok(Told::Ordered),
                Err(LookupError::AlreadyEnded(status)) => Ok(Told::AlreadyEnded(status)),
                Err(error) => Err(error.into()),
            },
            Self::Endpoint(remote) => match remote.client.stop(name).await {
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
            },
        }
    }

    /// Whether somebody is there to obey now.
    pub(super) fn is_running(&self) -> bool {
        match self {
            Self::Folder(data) => data.is_running(),
            Self::Endpoint(_) => true,
        }
    }
}
