//! The contract of every [`Table`], as a test suite for any implementation. That of training services is in
//! [`training`].
//!
//! Each case is an async function of a table and an unused prefix for partition keys. It panics if the table violates
//! the contract. [`all`] runs every case. Cases assume nothing about other rows of the table, and never wait for time
//! to pass.

use wire::item::{Item, Key};

use crate::ports::table::{Condition, Page, Query, Table, TableError, Write};

mod queries;
pub mod training;
mod transactions;
mod writes;

pub use queries::queries;
pub use transactions::transactions;
pub use writes::single_writes;

/// Runs every case under the prefix `fresh`, which must be unused.
///
/// # Panics
/// If the table violates the contract.
pub async fn all<T: Table>(table: &T, fresh: &str) {
    Box::pin(single_writes(table, fresh)).await;
    Box::pin(transactions(table, fresh)).await;
    Box::pin(queries(table, fresh)).await;
}

async fn put<T: Table>(table: &T, item: Item, condition: Condition) -> Result<(), TableError> {
    table.write(Write::Put(item, condition)).await
}

async fn page<T: Table>(table: &T, query: &Query) -> Page {
    table.query(query).await.expect("query")
}

fn conflict<T>(indices: &[usize]) -> Result<T, TableError> {
    Err(TableError::Conflict(indices.to_vec()))
}

fn assert_refused(result: &Result<(), TableError>, what: &str) {
    assert!(matches!(result, Err(TableError::Refused(_))), "{what}: expected a refusal, got {result:?}");
}

/// Returns a row of exactly `bytes` bytes.
fn sized(pk: &str, sk: &str, bytes: usize) -> Item {
    let item = Item::new(Key::new(pk, sk)).with("fill", "");
    let missing = bytes - item.size_bytes();
    item.with("fill", "x".repeat(missing))
}

/// Returns a short token that differs between partitions.
fn token(pk: &str) -> String {
    let hash = pk.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
