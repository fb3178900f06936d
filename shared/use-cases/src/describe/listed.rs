//! The entry of a tuning in a list, also of a tuning with unreadable rows.
//!
//! A damaged tuning, or one of a newer version after a rollback, must not hide the others, least of all from a user who
//! wants to stop them. Unknown fields are omitted, not invented.

use serde_json::Value;
use wire::describe::{UnreadableTuningView, unreadable_tuning_summary};
use wire::stored::{IndexRow, StoredError};

use super::{Place, stop_is_stored, summary};
use crate::ports::table::Table;
use crate::store::{Store, StoreError};

/// Returns the entry of the tuning of an index row, or `None` if the tuning does not exist any more.
pub async fn listed<T: Table>(
    store: &Store<T>,
    place: &Place,
    row: &IndexRow,
) -> Result<Option<Value>, StoreError> {
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
) -> Result<Value, StoreError> {
    let head = match store.head(&row.id).await {
        Ok(head) => head,
        Err(StoreError::Stored(_)) => None,
        Err(error) => return Err(error),
    };
    // If even the head is unreadable, the tuning may still be in progress.
    let (status, at) =
        head.map_or_else(|| ("InProgress".to_owned(), row.created), |head| (head.status, head.at));
    let stopping = status == "InProgress" && stop_is_stored(store, &row.id).await?;
    Ok(unreadable_tuning_summary(&UnreadableTuningView {
        name: &row.name,
        arn: &place.tuning_arn(&row.name),
        status: if stopping { "Stopping" } else { &status },
        created_ms: row.created,
        modified_ms: at,
        why: &why.to_string(),
    }))
}
