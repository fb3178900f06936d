//! The IDs of the tunings that have not ended.

use wire::stored::{ACTIVE, active_id};

use crate::ports::table::{Pages, Query, Table};
use crate::store::StoreError;

const ROWS_PER_PAGE: usize = 200;

/// Returns the IDs of all tunings with an active row: those that are not over, and some that have just ended.
pub async fn ids<T: Table>(table: &T) -> Result<Vec<String>, StoreError> {
    let mut all = Vec::new();
    let mut pages = Pages::of(Query::prefix(ACTIVE, "", ROWS_PER_PAGE));
    while let Some(rows) = pages.next(table).await? {
        all.extend(rows.iter().filter_map(active_id).map(str::to_owned));
    }
    Ok(all)
}

/// Returns the name in a tuning's ID: the part before the incarnation. It is known even if the definition is
/// unreadable.
pub fn name_in(id: &str) -> &str {
    id.rsplit_once('-').map_or(id, |(name, _)| name)
}
