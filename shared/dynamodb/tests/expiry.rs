//! The expiry of fact rows: the default, or the stack's own retention, for single writes and transactions.

use dynamodb::Embedded;
use use_cases::ports::table::{Condition, Table, Write};
use wire::item::{EXPIRES_AT, Item, Key};

const DAY: i64 = 86_400;

fn row(sk: &str) -> Item {
    Item::new(Key::new("F#a", sk)).with(EXPIRES_AT, 1_800_000_000)
}

#[tokio::test]
async fn fact_days_shift_the_expiry_of_fact_rows_only() {
    for (days, expected) in [(None, 0), (Some(30), 0), (Some(90), 60 * DAY), (Some(7), -23 * DAY)] {
        let table = Embedded::memory().await.expect("a table").table();
        let table = match days {
            Some(days) => table.with_fact_days(days),
            None => table,
        };
        table.write(Write::Put(row("alone"), Condition::NotExists)).await.expect("the write succeeds");
        let beside = Item::new(Key::new("T#a", "HEAD")).with("step", 1);
        let writes = [row("together"), beside.clone()].map(|row| Write::Put(row, Condition::NotExists));
        table.transact(writes.into(), "token").await.expect("the write succeeds");
        for sk in ["alone", "together"] {
            let stored = table.get(&row(sk).key).await.expect("an answer").expect("a row");
            assert_eq!(stored.number(EXPIRES_AT), Some(1_800_000_000 + expected), "{days:?} {sk}");
        }
        assert_eq!(
            table.get(&beside.key).await.expect("an answer"),
            Some(beside),
            "a row without an expiry is unchanged"
        );
    }
}
