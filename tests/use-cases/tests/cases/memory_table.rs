//! The in-memory table follows the contract, records its changes in order, and counts its requests.

use port_tests::memory::{Change, MAX_TOKENS, MemoryTable};
use port_tests::table as contract;
use use_cases::ports::table::{Condition, Query, Table, Write};
use use_cases::ports::usage::Usage;
use wire::item::{Item, Key};

use crate::support::now;

fn row(sk: &str, n: i64) -> Item {
    Item::new(Key::new("p", sk)).with("n", n)
}

#[test]
fn the_in_memory_table_follows_the_contract() {
    let table = MemoryTable::recording();
    now(contract::all(&table, "contract"));
    now(contract::all(&table, "again"));
}

#[test]
fn changes_are_recorded_once_and_in_order() {
    let table = MemoryTable::recording();
    now(table.write(Write::Put(row("a", 1), Condition::Always))).unwrap();
    now(table.write(Write::Put(row("a", 1), Condition::Always))).unwrap();
    now(table.write(Write::Put(row("a", 9), Condition::NotExists))).unwrap_err();
    now(table.write(Write::Delete(Key::new("p", "none"), Condition::Always))).unwrap();
    let writes =
        vec![Write::Put(row("a", 2), Condition::Always), Write::Put(row("b", 1), Condition::NotExists)];
    now(table.transact(writes.clone(), "t")).unwrap();
    now(table.transact(writes, "t")).unwrap();
    now(table.write(Write::Delete(Key::new("p", "b"), Condition::Always))).unwrap();
    let change = |sequence, sk: &str, old, new| Change { sequence, key: Key::new("p", sk), old, new };
    let expected = [
        change(1, "a", None, Some(row("a", 1))),
        change(2, "a", Some(row("a", 1)), Some(row("a", 2))),
        change(3, "b", None, Some(row("b", 1))),
        change(4, "b", Some(row("b", 1)), None),
    ];
    assert_eq!(table.changes(), expected);
    assert_eq!(table.changes(), []);
    assert_eq!(table.rows(), [row("a", 2)]);
}

#[test]
fn a_table_without_recording_has_no_changes() {
    let table = MemoryTable::new();
    now(table.write(Write::Put(row("a", 1), Condition::Always))).unwrap();
    assert_eq!(table.changes(), []);
}

#[test]
fn requests_and_units_are_counted_like_in_dynamodb() {
    let table = MemoryTable::new();
    let large = |sk: &str| row(sk, 1).with("text", "x".repeat(3500));
    now(table.write(Write::Put(large("a"), Condition::Always))).unwrap(); // 4
    now(table.write(Write::Put(row("a", 1), Condition::NotExists))).unwrap_err(); // 4: the stored row
    now(table.write(Write::Put(row("b", 1), Condition::Always))).unwrap(); // 1
    let check = Write::Check(Key::new("p", "b"), Condition::equals("n", 1));
    now(table.transact(vec![Write::Put(large("c"), Condition::Always), check], "t")).unwrap(); // 8 + 2
    now(table.get(&Key::new("p", "a"))).unwrap(); // 1
    now(table.get(&Key::new("p", "none"))).unwrap(); // 1
    now(table.query(&Query::prefix("p", "", 10))).unwrap(); // 2: 7 KB
    let expected = Usage { reads: 2, writes: 3, transactions: 1, queries: 1, read_units: 4, write_units: 19 };
    assert_eq!(table.usage(), expected);
    assert_eq!(expected.requests(), 7);
}

#[test]
fn the_usage_of_a_part_and_of_the_time_before_it_make_the_whole() {
    let usage = |reads: u64, queries: u64| Usage {
        reads,
        writes: 2 * reads,
        transactions: 3 * reads,
        queries,
        read_units: 5 * reads,
        write_units: 7 * reads,
    };
    let (before, part, whole) = (usage(3, 2), usage(10, 5), usage(13, 7));
    let mut sum = before;
    sum += part;
    assert_eq!(sum, whole);
    assert_eq!(whole.since(before), part);
}

#[test]
fn the_oldest_tokens_are_dropped() {
    let table = MemoryTable::new();
    let put = || vec![Write::Put(row("a", 1), Condition::Always)];
    for n in 0..=MAX_TOKENS {
        now(table.transact(put(), &n.to_string())).unwrap();
    }
    let other = || vec![Write::Put(row("a", 2), Condition::Always)];
    now(table.transact(other(), "1")).unwrap_err();
    now(table.transact(other(), "0")).unwrap();
}
