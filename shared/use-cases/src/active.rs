//! Lists the tunings that are not over, so that all of them can be stopped.

use wire::stored::{ACTIVE, active_id};

use crate::describe::stop_is_stored;
use crate::ports::table::{Query, Table};
use crate::store::{Store, StoreError};

const ROWS_PER_PAGE: usize = 200;

/// A tuning that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveTuning {
    /// Name of the tuning.
    pub name: String,
    /// ID of the tuning.
    pub id: String,
    /// Whether a stop was already requested.
    pub stopping: bool,
}

/// A tuning whose status is unreadable.
#[derive(Debug, Clone, PartialEq)]
pub struct UnreadableTuning {
    /// Name of the tuning.
    pub name: String,
    /// The error.
    pub error: StoreError,
}

/// The tunings that are not over.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ActiveTunings {
    /// Tunings with a known status, in order of their IDs.
    pub tunings: Vec<ActiveTuning>,
    /// Tunings with an unreadable status. They must not hide the others.
    pub unread: Vec<UnreadableTuning>,
}

/// Returns the IDs of all tunings with an active row: those that are not over, and some that have just ended.
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

/// Returns all tunings that are not over. A tuning that only waits for its last notice to be published is over.
pub async fn active<T: Table>(store: &Store<T>) -> Result<ActiveTunings, StoreError> {
    let mut all = ActiveTunings::default();
    for id in ids(&*store.table).await? {
        let name = name_in(&id).to_owned();
        match stopping(store, &id).await {
            Ok(Some(stopping)) => all.tunings.push(ActiveTuning { name, id, stopping }),
            Ok(None) => {}
            Err(error) => all.unread.push(UnreadableTuning { name, error }),
        }
    }
    Ok(all)
}

/// Returns whether a stop of a tuning was requested, or `None` if the tuning is over or deleted.
async fn stopping<T: Table>(store: &Store<T>, id: &str) -> Result<Option<bool>, StoreError> {
    let Some(head) = store.head(id).await? else { return Ok(None) };
    Ok(match head.status.as_str() {
        "InProgress" => Some(stop_is_stored(store, id).await?),
        "Stopping" => Some(true),
        _ => None,
    })
}

/// Returns the name in a tuning's ID: the part before the incarnation. It is known even if the definition is
/// unreadable.
pub fn name_in(id: &str) -> &str {
    id.rsplit_once('-').map_or(id, |(name, _)| name)
}
