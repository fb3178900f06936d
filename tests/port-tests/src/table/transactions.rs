//! The contract of transactions: all or nothing, once per token, within limits.
//!
//! Assumes an unused partition key. Never waits for time to pass.

use wire::item::{Item, Key, MAX_ITEM_BYTES};

use super::{Case, assert_refused, conflict, page, put, sized, token};
use use_cases::ports::table::{
    Condition, MAX_TRANSACTION_BYTES, MAX_TRANSACTION_WRITES, Query, Table, Write,
};

pub(super) fn cases<T: Table>() -> Vec<Case<T>> {
    cases![
        a_transaction_performs_all_writes_or_none,
        a_token_identifies_a_transaction,
        a_failed_transaction_can_be_retried,
        a_transaction_without_writes_is_refused,
        a_transaction_beyond_the_limits_is_refused,
    ]
}

async fn a_transaction_performs_all_writes_or_none<T: Table>(table: &T, pk: &str) {
    let row = |sk: &str, n: i64| Item::new(Key::new(pk, sk)).with("n", n);
    let first = vec![
        Write::Put(row("a", 1), Condition::NotExists),
        Write::Put(row("b", 1), Condition::Always),
        Write::Check(Key::new(pk, "c"), Condition::NotExists),
        Write::Delete(Key::new(pk, "d"), Condition::Always),
    ];
    assert_eq!(table.transact(first, &format!("1{}", token(pk))).await, Ok(()));
    let second = vec![
        Write::Put(row("a", 2), Condition::equals("n", 1)),
        Write::Put(row("b", 2), Condition::NotExists),
        Write::Delete(Key::new(pk, "c"), Condition::Always),
        Write::Check(Key::new(pk, "a"), Condition::Always),
        Write::Check(Key::new(pk, "e"), Condition::equals("n", 1)),
    ];
    let mut writes = second.clone();
    writes.remove(3);
    assert_eq!(table.transact(writes, &format!("2{}", token(pk))).await, conflict(&[1, 3]));
    assert_refused(&table.transact(second, &format!("3{}", token(pk))).await, "duplicate key a");
    assert_eq!(table.get(&Key::new(pk, "a")).await, Ok(Some(row("a", 1))), "no write was performed");
    let third = vec![
        Write::Put(row("a", 3), Condition::equals("n", 1)),
        Write::Delete(Key::new(pk, "b"), Condition::AtLeast { name: "n".to_owned(), value: 1 }),
        Write::Check(Key::new(pk, "c"), Condition::Always),
    ];
    assert_eq!(table.transact(third, &format!("4{}", token(pk))).await, Ok(()));
    assert_eq!(table.get(&Key::new(pk, "a")).await, Ok(Some(row("a", 3))));
    assert_eq!(table.get(&Key::new(pk, "b")).await, Ok(None));
}

async fn a_token_identifies_a_transaction<T: Table>(table: &T, pk: &str) {
    let row = |n: i64| Item::new(Key::new(pk, "row")).with("n", n).with("b", vec![1, 2]);
    for token in [token(pk), format!("{}{}", token(pk), "-long".repeat(20))] {
        let key = row(0).key;
        table.write(Write::Delete(key.clone(), Condition::Always)).await.expect("delete");
        let once = || vec![Write::Put(row(1), Condition::NotExists)];
        assert_eq!(table.transact(once(), &token).await, Ok(()));
        put(table, row(2), Condition::Always).await.expect("put");
        assert_eq!(table.transact(once(), &token).await, Ok(()), "sent again");
        assert_eq!(table.get(&key).await, Ok(Some(row(2))), "without effect");
        for other in [Write::Put(row(3), Condition::NotExists), Write::Put(row(1), Condition::Always)] {
            assert_refused(&table.transact(vec![other], &token).await, "other writes");
        }
        assert_eq!(table.get(&key).await, Ok(Some(row(2))));
    }
    assert_refused(&table.transact(vec![Write::Put(row(1), Condition::Always)], "").await, "no token");
}

async fn a_failed_transaction_can_be_retried<T: Table>(table: &T, pk: &str) {
    let row = Item::new(Key::new(pk, "row")).with("n", 1);
    let writes = || vec![Write::Put(row.clone(), Condition::NotExists)];
    put(table, row.clone(), Condition::Always).await.expect("put");
    assert_eq!(table.transact(writes(), &token(pk)).await, conflict(&[0]));
    table.write(Write::Delete(row.key.clone(), Condition::Always)).await.expect("delete");
    assert_eq!(table.transact(writes(), &token(pk)).await, Ok(()));
}

async fn a_transaction_without_writes_is_refused<T: Table>(table: &T, pk: &str) {
    let check = vec![Write::Check(Key::new(pk, "row"), Condition::NotExists)];
    assert_eq!(table.transact(check, &format!("1{}", token(pk))).await, Ok(()), "one check");
    assert_refused(&table.transact(Vec::new(), &format!("2{}", token(pk))).await, "no write");
}

async fn a_transaction_beyond_the_limits_is_refused<T: Table>(table: &T, pk: &str) {
    let puts = |count: usize| -> Vec<Write> {
        let key = |n: usize| Key::new(pk, format!("{n:03}"));
        (0..count).map(|n| Write::Put(Item::new(key(n)).with("n", 1), Condition::NotExists)).collect()
    };
    assert_refused(&table.transact(puts(MAX_TRANSACTION_WRITES + 1), &token(pk)).await, "101 writes");
    assert_eq!(page(table, &Query::prefix(pk, "", 1)).await.items, Vec::new());
    assert_eq!(table.transact(puts(MAX_TRANSACTION_WRITES), &format!("1{}", token(pk))).await, Ok(()));
    let all: Vec<usize> = (0..MAX_TRANSACTION_WRITES).collect();
    assert_eq!(
        table.transact(puts(MAX_TRANSACTION_WRITES), &format!("2{}", token(pk))).await,
        conflict(&all)
    );
    assert_eq!(page(table, &Query::prefix(pk, "", 1000)).await.items.len(), MAX_TRANSACTION_WRITES);
    let large = |count: usize| -> Vec<Write> {
        (0..count)
            .map(|n| Write::Put(sized(pk, &format!("L{n}"), MAX_ITEM_BYTES), Condition::Always))
            .collect()
    };
    let most = MAX_TRANSACTION_BYTES / MAX_ITEM_BYTES;
    assert_refused(&table.transact(large(most + 1), &format!("3{}", token(pk))).await, "too many bytes");
    assert_eq!(table.transact(large(most), &format!("4{}", token(pk))).await, Ok(()));
}
