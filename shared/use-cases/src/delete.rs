//! Deletes an ended tuning, in two parts.
//!
//! The first is one transaction. It removes the tuning's name, definition and head, so that the tuning no longer exists
//! for any reader. It also stores a row that orders the second part: the removal of all other rows, page by page. A
//! crash between the parts loses nothing, since the sweeper removes the rows of every such order.

use thiserror::Error;
use tuning::unit::time::Time;
use wire::names::digest;
use wire::stored::{self, IndexRow, STEP_NUMBER};

use crate::active::name_in;
use crate::lookup::LookupError;
use crate::ports::table::{
    Condition, MAX_TRANSACTION_BYTES, MAX_TRANSACTION_WRITES, Query, Table, TableError, Write,
};
use crate::store::{Store, StoreError};

/// Why a tuning cannot be deleted.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum DeleteError {
    /// 400: the tuning has not ended.
    #[error("The request was rejected because the hyperparameter tuning job is in status {0}: stop it first")]
    NotEnded(String),
    /// 400: the tuning has ended, but its notices are not published yet.
    #[error("the hyperparameter tuning job ended just now and is not settled yet: retry in two minutes")]
    Unsettled,
    /// 409: the tuning changed meanwhile.
    #[error("the hyperparameter tuning job changed during the deletion: retry the request")]
    Changed,
    /// The tuning does not exist, or the table failed.
    #[error(transparent)]
    Lookup(#[from] LookupError),
}

impl From<StoreError> for DeleteError {
    fn from(error: StoreError) -> Self {
        Self::Lookup(error.into())
    }
}

impl From<TableError> for DeleteError {
    fn from(error: TableError) -> Self {
        StoreError::from(error).into()
    }
}

/// Deletes the ended tuning `id` for every reader, and orders the removal of its rows.
pub async fn delete_found<T: Table>(store: &Store<T>, id: &str, now: Time) -> Result<(), DeleteError> {
    let name = name_in(id);
    let Some(head) = store.head(id).await? else {
        return Err(LookupError::NotFound(name.to_owned()).into());
    };
    if matches!(head.status.as_str(), "InProgress" | "Stopping") {
        return Err(DeleteError::NotEnded(head.status));
    }
    if store.table.get(&stored::active_row(id).key).await?.is_some() {
        return Err(DeleteError::Unsettled);
    }
    let step = i64::try_from(head.step).unwrap_or(i64::MAX);
    let writes = vec![
        Write::Delete(IndexRow::key(name), Condition::equals("id", id)),
        Write::Delete(stored::head_key(id), Condition::equals(STEP_NUMBER, step)),
        Write::Delete(stored::meta_key(id), Condition::Always),
        Write::Put(stored::deleted_row(id, now), Condition::Always),
    ];
    let token = digest(format!("delete {id} {now}").as_bytes());
    match store.table.transact(writes, &token).await {
        Ok(()) => {}
        Err(TableError::Conflict(_)) => return Err(DeleteError::Changed),
        Err(error) => return Err(error.into()),
    }
    store.forget(id);
    Ok(())
}

/// Removes the rows of deleted tuning `id`, as long as `may_continue` returns true. Returns whether none is left.
pub async fn purge<T: Table>(
    table: &T,
    id: &str,
    mut may_continue: impl FnMut() -> bool,
) -> Result<bool, TableError> {
    let ring = stored::ring_key(id).pk;
    for pk in [stored::tuning_partition(id), stored::action_partition(id), stored::fact_partition(id), ring] {
        let mut query = Query::prefix(pk, "", MAX_TRANSACTION_WRITES);
        loop {
            if !may_continue() {
                return Ok(false);
            }
            let page = table.query(&query).await?;
            // The size of deleted rows counts in a transaction.
            let (mut keys, mut bytes) = (Vec::new(), 0_usize);
            for item in page.items {
                bytes = bytes.saturating_add(item.size_bytes());
                if bytes > MAX_TRANSACTION_BYTES && !keys.is_empty() {
                    remove(table, std::mem::take(&mut keys)).await?;
                    bytes = item.size_bytes();
                }
                keys.push(item.key);
            }
            if !keys.is_empty() {
                remove(table, keys).await?;
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
    }
    table.write(Write::Delete(stored::deleted_key(id), Condition::Always)).await?;
    Ok(true)
}

async fn remove<T: Table>(table: &T, keys: Vec<wire::item::Key>) -> Result<(), TableError> {
    let token = digest(format!("{keys:?}").as_bytes());
    let writes = keys.into_iter().map(|key| Write::Delete(key, Condition::Always)).collect();
    table.transact(writes, &token).await
}
