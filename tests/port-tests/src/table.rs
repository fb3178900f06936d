//! The contract of every [`Table`], as a test suite for any implementation.
//!
//! Each case is an async function of a table and an unused partition key, and may use keys that begin with it. It
//! panics if the table violates the contract. [`all`] runs every case; [`cases`] lists them, for a test that runs them
//! one by one. Cases assume nothing about other rows of the table, and never wait for time to pass.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use use_cases::ports::table::{Condition, Page, Query, Table, TableError, Write};
use wire::item::{Item, Key};

/// Returns the named functions as cases.
macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        vec![$($crate::table::Case { name: stringify!($case), run: |table, pk| Box::pin($case(table, pk)) }),+]
    };
}

mod queries;
mod transactions;
mod writes;

/// One case of the contract.
pub struct Case<T> {
    /// The name: the behavior as a sentence in snake case.
    pub name: &'static str,
    /// The test. Its second argument is a partition key: it and every key that begins with it must be unused.
    pub run: for<'a> fn(&'a T, &'a str) -> Run<'a>,
}

/// A running case. It panics if the table violates the contract.
pub type Run<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

impl<T> fmt::Debug for Case<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Returns every case.
pub fn cases<T: Table>() -> Vec<Case<T>> {
    [writes::cases(), transactions::cases(), queries::cases()].into_iter().flatten().collect()
}

/// Runs every case under the prefix `fresh`, which must be unused.
///
/// # Panics
/// If the table violates the contract.
pub async fn all<T: Table>(table: &T, fresh: &str) {
    for case in cases::<T>() {
        (case.run)(table, &format!("{fresh}#{}", case.name)).await;
    }
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
