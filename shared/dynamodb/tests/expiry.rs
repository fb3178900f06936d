//! How long facts are kept: as the code says, or as the stack does, however they are written.

use dynamodb::Embedded;
use service::ports::table::{Condition, Table, Write};
use wire::item::{EXPIRES_AT, Item, Key};

const DAY: i64 = 86_400;

fn row(sk: &str) -> Item {
    Item::new(Key::new("F#a", sk)).with(EXPIRES_AT, 1_800_000_000)
}

#[tokio::test]
async fn a_stack_may_keep_facts_for_longer_or_shorter() {
    for (days, expected) in [(None, 0), (Some(30), 0), (Some(90), 60 * DAY), (Some(7), -23 * DAY)] {
        let table = Embedded::memory().await.expect("a table").table();
        let table = match days {
            Some(days) => table.keeping_facts(days),
            None => table,
        };
        table.write(Write::Put(row("alone"), Condition::NotExists)).await.expect("it is written");
        let beside = Item::new(Key::new("T#a", "HEAD")).with("step", 1);
        let writes = [row("together"), beside.clone()].map(|row| Write::Put(row, Condition::NotExists));
        table.transact(writes.into(), "token").await.expect("it is written");
        for sk in ["alone", "together"] {
            let stored = table.get(&row(sk).key).await.expect("an answer").expect("a row");
            assert_eq!(stored.number(EXPIRES_AT), Some(1_800_000_000 + expected), "{days:?} {sk}");
        }
        assert_eq!(table.get(&beside.key).await.expect("an answer"), Some(beside), "other rows never expire");
    }
}
