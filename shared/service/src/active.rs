//! The tunings that are not over, so that all of them can be ordered to stop.

use wire::stored::{ACTIVE, active_id};

use crate::describe::stop_is_stored;
use crate::ports::table::{Query, Table};
use crate::store::{Store, StoreError};

/// Rows read at once.
const ROWS_PER_PAGE: usize = 200;

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

/// A tuning of which it cannot be read whether it is over.
#[derive(Debug, Clone, PartialEq)]
pub struct UnreadTuning {
    /// Its name.
    pub name: String,
    /// Why.
    pub error: StoreError,
}

/// What is not over.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ActiveTunings {
    /// Those that are known, in order of their ids.
    pub tunings: Vec<ActiveTuning>,
    /// Those that cannot be read: they must not hide the others.
    pub unread: Vec<UnreadTuning>,
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

/// All tunings that are not over. One that is only waiting for its last notice to go out is over.
pub async fn active<T: Table>(store: &Store<T>) -> Result<ActiveTunings, StoreError> {
    let mut all = ActiveTunings::default();
    for id in ids(&*store.table).await? {
        let name = name_in(&id).to_owned();
        match stopping(store, &id).await {
            Ok(Some(stopping)) => all.tunings.push(ActiveTuning { name, id, stopping }),
            Ok(None) => {}
            Err(error) => all.unread.push(UnreadTuning { name, error }),
        }
    }
    Ok(all)
}

/// Whether a tuning was ordered to stop; `None` if it is over, or deleted.
async fn stopping<T: Table>(store: &Store<T>, id: &str) -> Result<Option<bool>, StoreError> {
    let Some(head) = store.head(id).await? else { return Ok(None) };
    Ok(match head.status.as_str() {
        "InProgress" => Some(stop_is_stored(store, id).await?),
        "Stopping" => Some(true),
        _ => None,
    })
}

/// The name in a tuning's id: what stands before the incarnation. So a definition that cannot be read hides no tuning.
pub fn name_in(id: &str) -> &str {
    id.rsplit_once('-').map_or(id, |(name, _)| name)
}
