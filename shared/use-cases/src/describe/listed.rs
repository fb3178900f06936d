//! The entry of a tuning in a list, even of a tuning with unreadable rows.
//!
//! A damaged tuning, or one of a newer version after a rollback, must not hide the others, especially from a user who
//! wants to stop them. Unknown fields are omitted, not invented.

use wire::describe::{SummaryController, TuningBase, TuningSummary};
use wire::stored::{IndexRow, StoredError};

use super::{Place, stop_is_stored, summary};
use crate::ports::table::Table;
use crate::store::{Store, StoreError};

/// Returns the entry of the tuning of an index row, or `None` if the tuning does not exist any more.
pub async fn listed<T: Table>(
    store: &Store<T>,
    place: &Place,
    row: &IndexRow,
) -> Result<Option<TuningSummary>, StoreError> {
    match summary(store, place, &row.id).await {
        Err(StoreError::Stored(error)) => unreadable_entry(store, place, row, &error).await.map(Some),
        shown => shown,
    }
}

async fn unreadable_entry<T: Table>(
    store: &Store<T>,
    place: &Place,
    row: &IndexRow,
    why: &StoredError,
) -> Result<TuningSummary, StoreError> {
    let head = match store.head(&row.id).await {
        Ok(head) => head,
        Err(StoreError::Stored(_)) => None,
        Err(error) => return Err(error),
    };
    // If even the head is unreadable, the tuning may still be in progress.
    let (status, at) =
        head.map_or_else(|| ("InProgress".to_owned(), row.created), |head| (head.status, head.at));
    let stopping = status == "InProgress" && stop_is_stored(store, &row.id).await?;
    Ok(TuningSummary {
        base: TuningBase {
            name: row.name.clone(),
            arn: place.tuning_arn(&row.name),
            status: if stopping { "Stopping".to_owned() } else { status },
            created_ms: row.created.0,
            modified_ms: at.0,
            ended_ms: None,
            counters: None,
            objectives: None,
        },
        strategy: None,
        resource_limits: None,
        controller: SummaryController::Unreadable { why: why.to_string() },
    })
}
