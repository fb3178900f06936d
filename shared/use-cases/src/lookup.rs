//! Finds tunings by name, lists them, and stores requests to stop one.

use thiserror::Error;
use tuning::log::fact::{Fact, JobKey, Recorded};
use tuning::unit::time::Time;
use wire::stored::{INDEX, IndexRow};

use crate::ports::table::{Page, Query, Table};
use crate::record;
use crate::stops::{self, STOP};
use crate::store::{Store, StoreError};

/// Why a tuning could not be found or stopped.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum LookupError {
    /// No tuning has this name: 400 `ResourceNotFound`.
    #[error("no hyperparameter tuning job is named {0}")]
    NotFound(String),
    /// The tuning has already ended: 400 `ValidationException`.
    #[error("The request was rejected because the hyperparameter tuning job is in status {0}.")]
    AlreadyEnded(String),
    /// The table failed. A retry may help.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns the index row of the tuning named `name`, ignoring case.
pub async fn find<T: Table>(store: &Store<T>, name: &str) -> Result<IndexRow, LookupError> {
    let item = store.table.get(&IndexRow::key(name)).await.map_err(StoreError::from)?;
    let item = item.ok_or_else(|| LookupError::NotFound(name.to_owned()))?;
    Ok(IndexRow::read(&item).map_err(StoreError::from)?)
}

/// Returns one page of tunings in order of their names, and where the next page begins.
pub async fn list<T: Table>(
    store: &Store<T>,
    after: Option<String>,
    limit: usize,
) -> Result<(Vec<IndexRow>, Option<String>), StoreError> {
    let query = Query { after, ..Query::prefix(INDEX, "", limit) };
    let Page { items, next } = store.table.query(&query).await?;
    let rows: Result<Vec<IndexRow>, _> = items.iter().map(IndexRow::read).collect();
    Ok((rows?, next))
}

/// Stores a request to stop the tuning named `name`.
pub async fn stop<T: Table>(store: &Store<T>, name: &str, now: Time) -> Result<(), LookupError> {
    stop_found(store, &find(store, name).await?.id, now).await
}

/// Stores a request to stop tuning `id`.
pub async fn stop_found<T: Table>(store: &Store<T>, id: &str, now: Time) -> Result<(), LookupError> {
    let head = store.head(id).await?;
    let status = head.map_or_else(|| "InProgress".to_owned(), |head| head.status);
    if status != "InProgress" && status != "Stopping" {
        return Err(LookupError::AlreadyEnded(status));
    }
    let fact = Recorded { key: STOP.to_owned(), at: now, fact: Fact::StopRequested };
    record::deliver(&*store.table, id, &[fact], now).await.map_err(StoreError::from)?;
    Ok(())
}

/// Stores a request to stop training job `job` of tuning `id`. The tuning goes on with other trials.
pub async fn stop_job_found<T: Table>(
    store: &Store<T>,
    id: &str,
    job: JobKey,
    now: Time,
) -> Result<(), LookupError> {
    let fact = Recorded { key: format!("{STOP}#{job}"), at: now, fact: Fact::JobStopRequested { job } };
    // First, so that the sweeper finds every request that was accepted.
    stops::list(&*store.table, id, &fact).await.map_err(StoreError::from)?;
    record::deliver(&*store.table, id, &[fact], now).await.map_err(StoreError::from)?;
    Ok(())
}
