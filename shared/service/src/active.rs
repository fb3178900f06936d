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

/// All tunings that are not over, in order of their ids. One that is only waiting for its last notice to go out is over.
pub async fn active<T: Table>(store: &Store<T>) -> Result<Vec<ActiveTuning>, StoreError> {
    let mut all = Vec::new();
    let mut query = Query::prefix(ACTIVE, "", ROWS_PER_PAGE);
    loop {
        let page = store.table.query(&query).await?;
        for id in page.items.iter().filter_map(active_id) {
            let (Some(head), Some(tuning)) = (store.head(id).await?, store.tuning(id).await?) else {
                continue;
            };
            let stopping = match head.status.as_str() {
                "InProgress" => stop_is_stored(store, id).await?,
                "Stopping" => true,
                _ => continue,
            };
            all.push(ActiveTuning { name: tuning.definition.name.clone(), id: id.to_owned(), stopping });
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(all),
        }
    }
}
