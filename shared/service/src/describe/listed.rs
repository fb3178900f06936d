//! The entry of a tuning in a list, also of one whose rows cannot be read.
//!
//! One damaged tuning, or one of a newer version after a rollback, must not hide all others, least of all from who wants to stop
//! them. What is not known of it is left out, not made up.

use serde_json::Value;
use wire::describe::{UnreadView, unread_tuning_job};
use wire::stored::{IndexRow, StoredError};

use super::{Place, stop_is_stored, summary};
use crate::ports::table::Table;
use crate::store::{Store, StoreError};

/// The entry of the tuning of an index row; `None` if it is not there any more.
pub async fn listed<T: Table>(
    store: &Store<T>,
    place: &Place,
    row: &IndexRow,
) -> Result<Option<Value>, StoreError> {
    match summary(store, place, &row.id).await {
        Err(StoreError::Stored(error)) => unread(store, place, row, &error).await.map(Some),
        shown => shown,
    }
}

async fn unread<T: Table>(
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
    // Where even the head cannot be read, nobody knows that it is over.
    let (status, at) =
        head.map_or_else(|| ("InProgress".to_owned(), row.created), |head| (head.status, head.at));
    let stopping = status == "InProgress" && stop_is_stored(store, &row.id).await?;
    Ok(unread_tuning_job(&UnreadView {
        name: &row.name,
        arn: &place.tuning_arn(&row.name),
        status: if stopping { "Stopping" } else { &status },
        created_ms: row.created,
        modified_ms: at,
        why: &why.to_string(),
    }))
}
