//! The DynamoDB table on the embedded engine fulfills the contract of every table.

use dynamodb::Embedded;
use port_tests::table as contract;
use use_cases::ports::table::{Condition, Query, Table, Write};
use wire::item::{Item, Key};

#[tokio::test]
async fn the_embedded_table_in_memory_fulfills_the_contract() {
    let embedded = Embedded::memory().await.unwrap();
    contract::all(&embedded.table(), "memory").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_table_in_a_file_fulfills_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    let embedded = Embedded::open(directory.path().join("table.db")).await.unwrap();
    contract::all(&embedded.table(), "file").await;
}

#[tokio::test]
async fn tables_in_memory_are_independent() {
    let (one, other) = (Embedded::memory().await.unwrap(), Embedded::memory().await.unwrap());
    let row = Item::new(Key::new("p", "s"));
    one.table().write(Write::Put(row.clone(), Condition::Always)).await.unwrap();
    assert_eq!(other.table().get(&row.key).await, Ok(None));
}

#[tokio::test]
async fn a_metered_table_counts_like_the_in_memory_table() {
    let metered = Embedded::memory().await.unwrap().table().metered();
    let counted = port_tests::memory::MemoryTable::new();
    run(&metered).await;
    run(&counted).await;
    assert_eq!(metered.usage(), counted.usage());
    assert_eq!(counted.usage().write_units, 16);
}

// No write fails here: DynamoDB charges a failed write, but does not return the units.
async fn run<T: Table>(table: &T) {
    let row = |sk: &str, bytes| Item::new(Key::new("p", sk)).with("text", "x".repeat(bytes));
    table.write(Write::Put(row("a", 3500), Condition::Always)).await.expect("the request succeeds"); // 4
    table.write(Write::Put(row("b", 1), Condition::NotExists)).await.expect("the request succeeds"); // 1
    table.write(Write::Delete(Key::new("p", "b"), Condition::Always)).await.expect("the request succeeds"); // 1
    let put = vec![Write::Put(row("d", 4500), Condition::Always)];
    table.transact(put, "done").await.expect("the request succeeds"); // 10
    table.get(&Key::new("p", "a")).await.expect("the request succeeds");
    table.query(&Query::prefix("p", "", 10)).await.expect("the request succeeds");
}
