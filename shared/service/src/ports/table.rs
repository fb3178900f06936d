//! The one table: rows with a two-part key, conditional writes, transactions and queries, all strongly consistent.
//!
//! A strict subset of DynamoDB: whole-row puts and deletes, each with at most one condition on the stored row.
//! The contract suite in `service::contract` says what every implementation must do.

use std::future::Future;

use thiserror::Error;
use wire::item::{Attr, Item, Key};

/// Most writes in one transaction (DynamoDB's limit).
pub const MAX_TRANSACTION_WRITES: usize = 100;
/// Most bytes in one transaction (DynamoDB's limit is 4 MB).
pub const MAX_TRANSACTION_BYTES: usize = 3_500_000;

/// What must hold of the stored row for a write to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    Always,
    /// No row has this key.
    NotExists,
    /// The row exists and attribute `name` equals `value`.
    Equals {
        /// Attribute name.
        name: String,
        /// The value it must have.
        value: Attr,
    },
    /// The row exists and the number in attribute `name` is at least `value`.
    AtLeast {
        /// Attribute name.
        name: String,
        /// The least value.
        value: i64,
    },
}

impl Condition {
    /// The stored row must carry `name` = `value`.
    pub fn equals(name: &str, value: impl Into<Attr>) -> Self {
        Self::Equals { name: name.to_owned(), value: value.into() }
    }
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Puts the whole row in place of what was there.
    Put(Item, Condition),
    /// Removes the row (no error when it is not there and the condition is `Always`).
    Delete(Key, Condition),
    /// Only checks the condition; of use inside a transaction.
    Check(Key, Condition),
}

impl Write {
    /// The key it concerns.
    pub fn key(&self) -> &Key {
        match self {
            Self::Put(item, _) => &item.key,
            Self::Delete(key, _) | Self::Check(key, _) => key,
        }
    }
}

/// Rows of one partition in order of their sort key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Partition key.
    pub pk: String,
    /// Only sort keys that begin with this ("" = all).
    pub prefix: String,
    /// Only sort keys after this one in the direction of reading (exclusive).
    pub after: Option<String>,
    /// Highest sort key first.
    pub descending: bool,
    /// At most so many rows (>= 1).
    pub limit: usize,
}

impl Query {
    /// All rows of partition `pk` whose sort key begins with `prefix`, ascending, `limit` at a time.
    pub fn prefix(pk: impl Into<String>, prefix: impl Into<String>, limit: usize) -> Self {
        Self { pk: pk.into(), prefix: prefix.into(), after: None, descending: false, limit }
    }
}

/// One page of a query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The rows, in order.
    pub items: Vec<Item>,
    /// Pass as `Query::after` to go on; `None` = no more rows.
    pub next: Option<String>,
}

/// The table.
pub trait Table: Send + Sync {
    /// The row with this key, as of now (strongly consistent).
    fn get(&self, key: &Key) -> impl Future<Output = Result<Option<Item>, TableError>> + Send;
    /// One write, done whole or not at all.
    fn write(&self, write: Write) -> impl Future<Output = Result<(), TableError>> + Send;
    /// All writes or none; at most [`MAX_TRANSACTION_WRITES`], no key twice. `token` (1 to 36 characters) names the
    /// transaction: sent again within ten minutes with the same writes it succeeds without effect.
    fn transact(
        &self,
        writes: Vec<Write>,
        token: &str,
    ) -> impl Future<Output = Result<(), TableError>> + Send;
    /// One page of rows, as of now (strongly consistent). A page may be shorter than `limit` and still have a `next`.
    fn query(&self, query: &Query) -> impl Future<Output = Result<Page, TableError>> + Send;
}

/// Why the table did not do it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TableError {
    /// A condition did not hold: read again and decide anew. For a transaction, the index of each write that failed;
    /// for a single write `[0]`. Nothing was written.
    #[error("a condition did not hold for write {0:?}")]
    Conflict(Vec<usize>),
    /// Too many requests, or another transaction was at work on a row: wait and try again. Nothing was written.
    #[error("the table is throttling")]
    Throttled,
    /// No answer, or a server fault: the write may or may not have been done.
    #[error("the table is not available: {0}")]
    Unavailable(String),
    /// It will never be done (row too large, access denied, no such table, a stored row that cannot be read).
    #[error("the table refused: {0}")]
    Refused(String),
}
