//! A second process can read and write the file while its owner runs. Two handles in one process stand for the two
//! processes.

use dynamodb::{DynamoTable, Embedded, OpenError, StreamStart};
use use_cases::ports::table::{Condition, Table, TableError, Write};
use wire::item::{Item, Key};

fn row(n: i64) -> Item {
    Item::new(Key::new("p", format!("{n:06}"))).with("n", n)
}

async fn put_all(table: DynamoTable, rows: std::ops::Range<i64>) -> Result<(), TableError> {
    for n in rows {
        table.write(Write::Put(row(n), Condition::NotExists)).await?;
    }
    Ok(())
}

#[tokio::test]
async fn attach_needs_an_existing_table_file_and_creates_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table.db");
    assert!(matches!(Embedded::attach(&path).await, Err(OpenError::Access { .. })));
    assert!(!path.exists());
    std::fs::write(&path, "something else ".repeat(100)).unwrap();
    assert!(matches!(Embedded::attach(&path).await, Err(OpenError::NotATable { .. })));
}

#[tokio::test]
async fn owner_and_guest_see_each_others_writes_and_lose_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table.db");
    let owner = Embedded::open(&path).await.unwrap();
    let mut stream = owner.stream(StreamStart::Latest).await.unwrap();
    let guest = Embedded::attach(&path).await.unwrap();
    put_all(owner.table(), 0..1).await.unwrap();
    assert_eq!(guest.table().get(&row(0).key).await, Ok(Some(row(0))));
    let again = guest.table().write(Write::Put(row(0), Condition::NotExists)).await;
    assert_eq!(again, Err(TableError::Conflict(vec![0])), "conditions apply across processes");

    let one = tokio::spawn(put_all(owner.table(), 1..100));
    let two = tokio::spawn(put_all(guest.table(), 100..200));
    one.await.unwrap().unwrap();
    two.await.unwrap().unwrap();
    let mut sequences = Vec::new();
    while sequences.len() < 200 {
        let records = stream.next_batch(1000).await.unwrap();
        sequences.extend(records.iter().map(|record| record["dynamodb"]["SequenceNumber"].to_string()));
    }
    assert!(sequences.is_sorted_by(|a, b| a < b) && sequences.len() == 200, "each record once, in order");
}

/// A guest that attached during the owner's start created the table too, and the owner failed.
#[tokio::test]
async fn regression_a_guest_never_creates_the_table_of_a_starting_owner() {
    for _ in 0..5 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table.db");
        let guests = tokio::spawn({
            let path = path.clone();
            async move {
                loop {
                    match Embedded::attach(&path).await {
                        Ok(guest) => return guest,
                        Err(OpenError::NoTable { .. } | OpenError::Access { .. }) => {
                            tokio::task::yield_now().await;
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        });
        let owner = Embedded::open(&path).await.unwrap();
        put_all(owner.table(), 0..1).await.unwrap();
        assert_eq!(guests.await.unwrap().table().get(&row(0).key).await, Ok(Some(row(0))));
    }
}

/// A user without write permission could not even list the tunings of a data directory.
#[tokio::test]
async fn regression_a_file_can_be_read_without_writing_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("50% done?.sqlite");
    let owner = Embedded::open(&path).await.unwrap();
    put_all(owner.table(), 0..3).await.unwrap();
    let before = std::fs::read_dir(folder.path()).unwrap().count();
    let copy = Embedded::snapshot(&path).await.unwrap();
    for n in 0..3 {
        assert_eq!(copy.table().get(&row(n).key).await, Ok(Some(row(n))));
    }
    put_all(copy.table(), 3..4).await.unwrap();
    assert_eq!(owner.table().get(&row(3).key).await, Ok(None), "the copy is another table");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), before);
    owner.close().await;
    let before = std::fs::read_dir(folder.path()).unwrap().count();
    let copy = Embedded::snapshot(&path).await.unwrap();
    assert_eq!(copy.table().get(&row(0).key).await, Ok(Some(row(0))));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), before);
}
