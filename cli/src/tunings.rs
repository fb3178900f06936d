//! The tunings of a data directory or of a stack, through one client of the API.
//!
//! A data directory has the API in this process; its active `run` performs stops and changes. Code that only one of the
//! two places needs is in a match on [`Home`].

use std::path::Path;
use std::sync::Arc;

use api_client::{Client, ClientError, Retry, Stack};
use local::host::SystemClock;
use serde_json::Value;
use use_cases::delete::{DeleteError, delete_found, purge};
use use_cases::lookup;
use use_cases::ports::Clock;
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::store::{Store, StoreError};
use wire::change::LimitsChange;
use wire::describe::TuningJob;
use wire::stored;

use crate::arguments::{Source, Where, folder_option};
use crate::data::Data;
use crate::failure::Failure;
use crate::folder_api::FolderApi;
use crate::log_hint::LogHint;
use crate::page::Page;
use crate::record::RunRecord;
use crate::remote::{NOT_FOUND, Remote, failed};

const NAMES_PER_PAGE: usize = 200;

/// The tunings of one place.
#[derive(Debug)]
pub(crate) struct Tunings {
    pub(crate) client: Client,
    pub(crate) home: Home,
    /// The options that a suggested command needs to reach this place.
    pub(crate) location_options: String,
}

#[derive(Debug)]
pub(crate) enum Home {
    Folder(Data),
    Stack(Arc<Stack>),
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
        match source.place()? {
            Where::Folder(folder) => Ok(Self::of_folder(Data::existing(&folder).await?)),
            Where::Endpoint(address) => {
                Ok(Self::of_stack(Remote::connect(address).await?, source.location_options()))
            }
        }
    }

    /// Like [`Tunings::open`], but fails if this user may only read the folder.
    pub(crate) async fn open_writable(source: &Source) -> Result<Self, Failure> {
        let tunings = Self::open(source).await?;
        tunings.require_writable()?;
        Ok(tunings)
    }

    pub(crate) fn of_folder(data: Data) -> Self {
        let api = FolderApi::new(Arc::clone(&data.store), data.folder());
        let location_options = folder_option(data.folder());
        let client = Client::new(Arc::new(api), Retry::default());
        Self { client, home: Home::Folder(data), location_options }
    }

    pub(crate) fn of_stack(remote: Remote, location_options: String) -> Self {
        Self { client: remote.client, home: Home::Stack(remote.stack), location_options }
    }

    /// Fails if this user may only read the folder.
    pub(crate) fn require_writable(&self) -> Result<(), Failure> {
        match &self.home {
            Home::Folder(data) => data.require_writable(),
            Home::Stack(_) => Ok(()),
        }
    }

    /// Returns whether a controller is active that performs orders now.
    pub(crate) fn is_running(&self) -> bool {
        match &self.home {
            Home::Folder(data) => data.is_running(),
            Home::Stack(_) => true,
        }
    }

    /// Describes the tuning `name`. The error for an unknown name suggests similar names.
    pub(crate) async fn describe(&self, name: &str) -> Result<TuningJob, Failure> {
        match self.client.describe(name).await {
            Ok(described) => Ok(described),
            Err(error) => Err(self.failure(error, name).await),
        }
    }

    /// Returns the tuning `name` with its jobs.
    pub(crate) async fn page(&self, name: &str) -> Result<Page, Failure> {
        let described = self.describe(name).await?;
        let jobs = self.client.training_jobs(name).await.map_err(failed)?;
        let interrupted = self.interrupted(&described);
        Ok(Page { described, jobs, interrupted })
    }

    /// Returns the JSON of the tuning `name`, which does not have the jobs.
    pub(crate) async fn json(&self, name: &str) -> Result<Value, Failure> {
        let described = self.describe(name).await?;
        let interrupted = self.interrupted(&described);
        Ok(Page { described, jobs: Vec::new(), interrupted }.json())
    }

    /// Returns the name of the tuning in its original letter case, or as given if the tuning is unreadable: it can still
    /// be stopped and deleted.
    pub(crate) async fn name(&self, name: &str) -> Result<String, Failure> {
        match self.client.describe(name).await {
            Ok(described) => Ok(described.base.name),
            Err(ClientError::Host(_) | ClientError::Busy { .. }) if !name.is_empty() => Ok(name.to_owned()),
            Err(error) => Err(self.failure(error, name).await),
        }
    }

    /// Returns the command that continues a tuning which no controller continues.
    pub(crate) fn interrupted(&self, described: &TuningJob) -> Option<String> {
        let is_interrupted = !described.base.is_ended() && !self.is_running();
        is_interrupted.then(|| self.resume(&described.base.name))
    }

    /// Returns the command that continues the tuning `name` of a data directory.
    pub(crate) fn resume(&self, name: &str) -> String {
        format!("hyperband resume {name}{}", self.location_options)
    }

    pub(crate) fn log_hint(&self) -> LogHint {
        let records = match &self.home {
            Home::Folder(data) => Some(data.training_jobs()),
            Home::Stack(_) => None,
        };
        LogHint::at(&self.location_options, records)
    }

    /// Returns all active tunings, and the errors for those that could not be read.
    pub(crate) async fn active(&self) -> (Vec<Active>, Vec<Failure>) {
        let (all, errors) = self.client.active().await;
        let unread = errors.into_iter().map(|error| failed(error).context("cannot list all active tunings"));
        let shown =
            all.into_iter().map(|one| Active { stopping: one.base.is_stopping(), name: one.base.name });
        let mut shown: Vec<Active> = shown.collect();
        // A tuning whose stop begins between the two requests is in both responses.
        shown.sort_by(|one, other| one.name.cmp(&other.name));
        shown.dedup_by(|one, other| one.name == other.name);
        (shown, unread.collect())
    }

    pub(crate) async fn stop(&self, name: &str) -> Result<OrderOutcome, Failure> {
        self.outcome(name, self.client.stop(name).await).await
    }

    pub(crate) async fn change(&self, name: &str, limits: &LimitsChange) -> Result<OrderOutcome, Failure> {
        self.outcome(name, self.client.change(name, limits).await).await
    }

    /// Returns the outcome of an order. If it was rejected, the status shows whether the tuning has ended.
    async fn outcome(&self, name: &str, answer: Result<(), ClientError>) -> Result<OrderOutcome, Failure> {
        match answer {
            Ok(()) => Ok(OrderOutcome::Accepted),
            Err(error) if error.is("ValidationException") => {
                let base = self.describe(name).await?.base;
                // Limits of a stopping tuning cannot be changed.
                let is_over = base.is_ended() || base.is_stopping();
                if is_over { Ok(OrderOutcome::AlreadyEnded(base.status)) } else { Err(failed(error)) }
            }
            Err(error) => Err(self.failure(error, name).await),
        }
    }

    pub(crate) async fn delete(&self, name: &str) -> Result<(), Failure> {
        match &self.home {
            Home::Folder(data) => {
                // An unreadable tuning can be deleted.
                if let Ok(described) = self.client.describe(name).await
                    && let Some(resume) = self.interrupted(&described)
                {
                    return Err(not_ended(&described, &resume, &self.location_options));
                }
                let id = lookup::find(&data.store, name).await?.id;
                delete_ended(&data.store, data.folder(), &id, !data.is_running()).await
            }
            Home::Stack(_) => match self.client.delete(name).await {
                Ok(()) => Ok(()),
                Err(error) => Err(self.failure(error, name).await),
            },
        }
    }

    /// Converts the error of a call about the tuning `name`.
    pub(crate) async fn failure(&self, error: ClientError, name: &str) -> Failure {
        if name.is_empty() {
            let list = format!("`hyperband list{}` shows all tunings", self.location_options);
            return Failure::usage("the name of the tuning is empty").hint(list);
        }
        if !error.is(NOT_FOUND) {
            return failed(error);
        }
        // If they cannot be read, there is no suggestion.
        let names = self.some_names().await;
        let none = names.as_ref().is_ok_and(Vec::is_empty);
        let names = names.unwrap_or_default();
        let near = wire::closest(name, names.iter().map(String::as_str));
        let (place, start) = match &self.home {
            Home::Folder(data) => (format!("in {}", data.folder().display()), "run"),
            Home::Stack(stack) => (format!("at {}", stack.address()), "submit"),
        };
        let hint = match near.as_slice() {
            [] if none => format!("there are no tunings: start one with `hyperband {start}`"),
            [] => format!("`hyperband list{}` shows all tunings", self.location_options),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        Failure::usage(format!("there is no tuning '{name}' {place}")).hint(hint)
    }

    /// Returns names for suggestions: all of a folder, whose index is quick to read, and the newest of a stack.
    async fn some_names(&self) -> Result<Vec<String>, Failure> {
        let Home::Folder(data) = &self.home else {
            let page = self.client.newest().await.map_err(failed)?;
            return Ok(page.tunings.into_iter().map(|shown| shown.base.name).collect());
        };
        let (mut names, mut after) = (Vec::new(), None);
        loop {
            let (page, next) = lookup::list(&data.store, after, NAMES_PER_PAGE).await?;
            names.extend(page.into_iter().map(|row| row.name));
            match next {
                Some(next) => after = Some(next),
                None => return Ok(names),
            }
        }
    }
}

/// Returns the error for the deletion of an interrupted tuning.
fn not_ended(described: &TuningJob, resume: &str, location_options: &str) -> Failure {
    let name = &described.base.name;
    let failure =
        Failure::usage(format!("the tuning {name} has not ended, and no `hyperband run` is active"));
    failure.hint(if described.base.is_stopping() {
        format!("its stop takes effect when you continue it: {resume}")
    } else {
        format!("stop it and continue it to its end: hyperband stop {name}{location_options}; {resume}")
    })
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
