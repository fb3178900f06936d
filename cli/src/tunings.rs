//! The tunings of a data directory or an endpoint: their pages, stops, changes of limits and deletions. In a data
//! directory, the active `run` performs stops and changes.

use std::path::Path;

use api_client::ClientError;
use local::host::SystemClock;
use serde_json::Value;
use use_cases::active::active;
use use_cases::change::{ChangeError, change};
use use_cases::delete::{DeleteError, delete_found, purge};
use use_cases::lookup::{self, LookupError};
use use_cases::ports::Clock;
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::store::{Store, StoreError};
use wire::change::LimitsChange;
use wire::describe::TuningSummary;
use wire::stored;

use crate::arguments::{Source, Where};
use crate::data::Data;
use crate::failure::Failure;
use crate::log_hint::LogHint;
use crate::page::Page;
use crate::record::RunRecord;
use crate::remote::{Remote, failed};

/// An open data directory or a connected endpoint.
#[derive(Debug)]
pub(crate) enum Tunings {
    Folder(Box<Data>),
    Endpoint(Box<Remote>),
}

/// A tuning that has not ended.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) name: String,
    /// Whether a stop was already requested.
    pub(crate) stopping: bool,
}

#[derive(Debug)]
pub(crate) enum OrderOutcome {
    Accepted,
    /// The tuning had already ended, with this status.
    AlreadyEnded(String),
}

impl Tunings {
    pub(crate) async fn open(source: &Source) -> Result<Self, Failure> {
        Ok(match source.place().map_err(Failure::usage)? {
            Where::Folder(folder) => Self::Folder(Box::new(Data::existing(&folder).await?)),
            Where::Endpoint(endpoint) => Self::Endpoint(Box::new(Remote::connect(endpoint).await?)),
        })
    }

    /// Like [`Tunings::open`], but fails if this user may only read the folder.
    pub(crate) async fn open_writable(source: &Source) -> Result<Self, Failure> {
        let tunings = Self::open(source).await?;
        if let Self::Folder(data) = &tunings {
            data.require_writable()?;
        }
        Ok(tunings)
    }

    /// Returns the tuning `name` with its jobs.
    pub(crate) async fn page(&self, name: &str) -> Result<Page, Failure> {
        match self {
            Self::Folder(data) => {
                let row = data.find(name).await?;
                Page::of_folder(&data.store, data.folder(), &row.id).await
            }
            Self::Endpoint(remote) => remote.page(name).await,
        }
    }

    /// Returns the JSON of the tuning `name`, which does not have the jobs.
    pub(crate) async fn json(&self, name: &str) -> Result<Value, Failure> {
        match self {
            Self::Folder(_) => Ok(self.page(name).await?.json()),
            // The list of jobs can be long.
            Self::Endpoint(remote) => Ok(Page::of_stack(remote.describe(name).await?, Vec::new()).json()),
        }
    }

    /// Returns where the logs are. `location` has the options that a command needs to reach the tunings.
    pub(crate) fn log_hint(&self, location: &str) -> LogHint {
        let records = match self {
            Self::Folder(data) => Some(data.training_jobs()),
            Self::Endpoint(_) => None,
        };
        LogHint::at(location, records)
    }

    /// Returns the name of the tuning in its original letter case.
    pub(crate) async fn name(&self, name: &str) -> Result<String, Failure> {
        match self {
            Self::Folder(data) => Ok(data.find(name).await?.name),
            Self::Endpoint(remote) => Ok(remote.describe(name).await?.base.name),
        }
    }

    /// Returns all active tunings, and the errors for those that could not be read.
    pub(crate) async fn active(&self) -> Result<(Vec<Active>, Vec<Failure>), Failure> {
        match self {
            Self::Folder(data) => {
                let all = active(&data.store).await?;
                let found = all.tunings.into_iter();
                let found = found.map(|one| Active { name: one.name, stopping: one.stopping }).collect();
                let unread = all.unread.into_iter().map(|one| {
                    Failure::from(one.error)
                        .context(format!("cannot stop {}: its state is unreadable", one.name))
                });
                Ok((found, unread.collect()))
            }
            Self::Endpoint(remote) => {
                let (all, errors) = remote.client.active().await;
                let unread =
                    errors.into_iter().map(|error| failed(error).context("cannot list all active tunings"));
                let shown = all.into_iter().map(|TuningSummary { base, .. }| Active {
                    stopping: base.is_stopping(),
                    name: base.name,
                });
                let mut shown: Vec<Active> = shown.collect();
                // A tuning whose stop begins between the two requests is in both responses.
                shown.sort_by(|one, other| one.name.cmp(&other.name));
                shown.dedup_by(|one, other| one.name == other.name);
                Ok((shown, unread.collect()))
            }
        }
    }

    pub(crate) async fn stop(&self, name: &str) -> Result<OrderOutcome, Failure> {
        match self {
            Self::Folder(data) => match lookup::stop(&data.store, name, SystemClock.now()).await {
                Ok(()) => Ok(OrderOutcome::Accepted),
                Err(LookupError::AlreadyEnded(status)) => Ok(OrderOutcome::AlreadyEnded(status)),
                Err(error) => Err(error.into()),
            },
            Self::Endpoint(remote) => order_outcome(remote, name, remote.client.stop(name).await).await,
        }
    }

    pub(crate) async fn delete(&self, name: &str) -> Result<(), Failure> {
        match self {
            Self::Folder(data) => {
                let id = data.find(name).await?.id;
                delete_ended(&data.store, data.folder(), &id, !data.is_running()).await
            }
            Self::Endpoint(remote) => match remote.client.delete(name).await {
                Ok(()) => Ok(()),
                Err(error) => Err(remote.tuning_failure(error, name).await),
            },
        }
    }

    pub(crate) async fn change(&self, name: &str, limits: &LimitsChange) -> Result<OrderOutcome, Failure> {
        match self {
            Self::Folder(data) => {
                let body = limits.body().to_string();
                match change(&data.store, name, body.as_bytes(), SystemClock.now()).await {
                    Ok(()) => Ok(OrderOutcome::Accepted),
                    Err(ChangeError::Lookup(LookupError::AlreadyEnded(status))) => {
                        Ok(OrderOutcome::AlreadyEnded(status))
                    }
                    Err(ChangeError::Refused(error)) => Err(Failure::invalid_request(&error)),
                    Err(error @ ChangeError::Raise(_)) => Err(Failure::usage(error.to_string())),
                    Err(ChangeError::Lookup(error)) => Err(error.into()),
                }
            }
            Self::Endpoint(remote) => {
                order_outcome(remote, name, remote.client.change(name, limits).await).await
            }
        }
    }

    /// Returns whether a controller is active that performs orders now.
    pub(crate) fn is_running(&self) -> bool {
        match self {
            Self::Folder(data) => data.is_running(),
            Self::Endpoint(_) => true,
        }
    }
}

/// Deletes the ended tuning `id` of a data directory. `is_last` says that no other process settles it.
pub(crate) async fn delete_ended<T: Table>(
    store: &Store<T>,
    folder: &Path,
    id: &str,
    is_last: bool,
) -> Result<(), Failure> {
    let mut deleted = delete_found(store, id, SystemClock.now()).await;
    if deleted == Err(DeleteError::Unsettled) && is_last {
        // The `run` ended before its sweeper removed the row. Nothing else settles the tuning.
        let active = Write::Delete(stored::active_row(id).key, Condition::Always);
        store.table.write(active).await.map_err(StoreError::from)?;
        deleted = delete_found(store, id, SystemClock.now()).await;
    }
    match deleted {
        Ok(()) => {}
        Err(DeleteError::Lookup(error)) => return Err(error.into()),
        Err(error) => return Err(Failure::usage(error.to_string())),
    }
    purge(&*store.table, id, || true).await.map_err(StoreError::from)?;
    store.forget(id);
    RunRecord::remove(folder, id);
    Ok(())
}

/// Returns the outcome of an order to a stack. If the stack rejects it, the status shows whether the tuning has ended.
async fn order_outcome(
    remote: &Remote,
    name: &str,
    answer: Result<(), ClientError>,
) -> Result<OrderOutcome, Failure> {
    match answer {
        Ok(()) => Ok(OrderOutcome::Accepted),
        Err(error) if error.is("ValidationException") => {
            let base = remote.describe(name).await?.base;
            if base.is_ended() { Ok(OrderOutcome::AlreadyEnded(base.status)) } else { Err(failed(error)) }
        }
        Err(error) => Err(remote.tuning_failure(error, name).await),
    }
}
