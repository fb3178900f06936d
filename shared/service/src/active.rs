//! The tunings that are not over, so that all of them can be ordered to stop.

use wire::stored::{ACTIVE, active_id};

use crate::describe::stop_is_stored;
use crate::ports::table::{Query, Table};
use crate::store::{Store, StoreError};

/// Rows read at once.
const ROWS_PER_PAGE: usize = 200;
const IN_PROGRESS: &str = "InProgress";

/// A tuning that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveTuning {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: String,
    /// Whether it was ordered to stop already.
    pub stopping: bool,
}

/// The ids of all tunings that are not at rest: of those that are not over, and of some that have just ended.
pub async fn ids<T: Table>(table: &T) -> Result<Vec<String>, StoreError> {
    let mut all = Vec::new();
    let mut query = Query::prefix(ACTIVE, "", ROWS_PER_PAGE);
    loop {
        let page = table.query(&query).await?;
        all.extend(page.items.iter().filter_map(active_id).map(str::to_owned));
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(all),
        }
    }
}

/// All tunings that are not over, in order of their ids. One that is only waiting for its last notice to go out is over; one that
/// cannot be read may not be.
pub async fn active<T: Table>(store: &Store<T>) -> Result<Vec<ActiveTuning>, StoreError> {
    let mut all = Vec::new();
    for id in ids(&*store.table).await? {
        let Some(status) = readable(store.head(&id).await)?
            .map_or(Some(IN_PROGRESS.to_owned()), |head| head.map(|head| head.status))
        else {
            continue;
        };
        let stopping = match status.as_str() {
            IN_PROGRESS => stop_is_stored(store, &id).await?,
            "Stopping" => true,
            _ => continue,
        };
        let name = match readable(store.tuning(&id).await)? {
            Some(Some(tuning)) => tuning.definition.name.clone(),
            Some(None) => continue,
            None => name_in(&id).to_owned(),
        };
        all.push(ActiveTuning { name, id, stopping });
    }
    Ok(all)
}

/// The name in a tuning's id.
pub fn name_in(id: &str) -> &str {
    id.rsplit_once('-').map_or(id, |(name, _)| name)
}

/// What was read; `None` if a row is there that cannot be.
fn readable<V>(read: Result<V, StoreError>) -> Result<Option<V>, StoreError> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(StoreError::Stored(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
