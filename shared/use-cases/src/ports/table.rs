//! The one table: rows with a two-part key, conditional writes, transactions and queries, all strongly consistent.
//!
//! A strict subset of DynamoDB: whole-row puts and deletes, each with at most one condition on the stored row.
//! The contract suite of crate `port-tests` specifies every implementation.

use std::future::Future;

use thiserror::Error;
use wire::item::{Attr, Item, Key};

/// Most writes in one transaction (DynamoDB's limit).
pub const MAX_TRANSACTION_WRITES: usize = 100;
/// Most bytes in one transaction (DynamoDB's limit is 4 MB).
pub const MAX_TRANSACTION_BYTES: usize = 3_500_000;

/// A condition on the stored row. The write fails if it does not hold.
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
    /// Only checks the condition. Used inside a transaction.
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
    /// Only sort keys with this prefix ("" = all).
    pub prefix: String,
    /// Only sort keys after this one (exclusive), in the direction of the query.
    pub after: Option<String>,
    /// Whether to return the highest sort key first.
    pub descending: bool,
    /// Most rows of the page (>= 1).
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
    /// Pass as `Query::after` to read the next page. `None` = no more rows.
    pub next: Option<String>,
}

/// The pages of a query, one after the other.
#[derive(Debug)]
pub struct Pages(Option<Query>);

impl Pages {
    /// Begins with the first page of `query`.
    pub fn of(query: Query) -> Self {
        Self(Some(query))
    }

    /// Returns the rows of the next page. `None` after the last page.
    pub async fn next<T: Table>(&mut self, table: &T) -> Result<Option<Vec<Item>>, TableError> {
        let Some(query) = &mut self.0 else { return Ok(None) };
        let page = table.query(query).await?;
        match page.next {
            Some(next) => query.after = Some(next),
            None => self.0 = None,
        }
        Ok(Some(page.items))
    }
}

/// The table.
pub trait Table: Send + Sync {
    /// Returns the row with this key (strongly consistent).
    fn get(&self, key: &Key) -> impl Future<Output = Result<Option<Item>, TableError>> + Send;
    /// Performs one write completely or not at all.
    fn write(&self, write: Write) -> impl Future<Output = Result<(), TableError>> + Send;
    /// Performs all writes or none: at most [`MAX_TRANSACTION_WRITES`], no key twice. `token` (1 to 36 characters)
    /// identifies the transaction: sent again within ten minutes with the same writes, it succeeds without effect.
    fn transact(
        &self,
        writes: Vec<Write>,
        token: &str,
    ) -> impl Future<Output = Result<(), TableError>> + Send;
    /// Returns one page of rows (strongly consistent). A page may be shorter than `limit` and still have a `next`.
    fn query(&self, query: &Query) -> impl Future<Output = Result<Page, TableError>> + Send;
}

/// Why the table refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TableError {
    /// A condition did not hold: read again and decide again. Contains the index of each write that failed (`[0]` for
    /// a single write). Nothing was written.
    #[error("the condition of write {0:?} did not hold")]
    Conflict(Vec<usize>),
    /// Too many requests, or a conflict with a concurrent transaction: wait and retry. Nothing was written.
    #[error("the table throttles requests")]
    Throttled,
    /// No answer, or a server fault: the write may or may not have been performed.
    #[error("the table is unavailable: {0}")]
    Unavailable(String),
    /// Permanent: the row is too large, access is denied, the table does not exist, or a stored row is unreadable.
    #[error("the table refused the request: {0}")]
    Refused(String),
}
