//! The contract of rows, single writes and their conditions.
//!
//! Assumes an unused partition prefix. Never waits for time to pass.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use wire::item::{Attr, Item, Key, MAX_ITEM_BYTES};

use super::{assert_refused, conflict, put, sized, token};
use crate::ports::table::{Condition, Table, Write};

/// Runs the cases of rows, single writes and their conditions.
///
/// # Panics
/// If the table violates the contract.
pub async fn single_writes<T: Table>(table: &T, fresh: &str) {
    let pk = |case: &str| format!("{fresh}#{case}");
    a_row_reads_back_as_it_was_put(table, &pk("round")).await;
    a_put_replaces_the_whole_row(table, &pk("replace")).await;
    not_exists_allows_only_the_first_put(table, &pk("first")).await;
    equals_compares_type_and_value(table, &pk("equals")).await;
    at_least_compares_numbers(table, &pk("least")).await;
    a_delete_without_condition_needs_no_row(table, &pk("delete")).await;
    a_check_writes_nothing(table, &pk("check")).await;
    one_of_two_concurrent_writers_wins(table, &pk("race")).await;
    a_row_that_is_too_large_is_refused(table, &pk("large")).await;
    a_bad_key_is_refused(table, &pk("key")).await;
}

async fn a_row_reads_back_as_it_was_put<T: Table>(table: &T, pk: &str) {
    assert_eq!(table.get(&Key::new(pk, "none")).await, Ok(None));
    let item = Item::new(Key::new(format!("{pk}/Übung 学習"), "ключ #1 \"'\\ 🦀"))
        .with("text", "a \"b\"\n\\ü🦀")
        .with("empty", "")
        .with("least", i64::MIN)
        .with("greatest", i64::MAX)
        .with("zero", 0)
        .with("bytes", (0..=255).collect::<Vec<u8>>())
        .with("no_bytes", Vec::new())
        .with("yes", Attr::Bool(true))
        .with("no", Attr::Bool(false))
        .with("name with spaces.and[0]:#", "x")
        .with("size", "a word that DynamoDB reserves");
    put(table, item.clone(), Condition::Always).await.expect("a row with every kind of attribute");
    assert_eq!(table.get(&item.key).await, Ok(Some(item)));
    let bare = Item::new(Key::new(pk, "bare"));
    put(table, bare.clone(), Condition::Always).await.expect("a row without attributes");
    assert_eq!(table.get(&bare.key).await, Ok(Some(bare)));
}

async fn a_put_replaces_the_whole_row<T: Table>(table: &T, pk: &str) {
    let key = Key::new(pk, "row");
    put(table, Item::new(key.clone()).with("a", 1).with("b", 2), Condition::Always).await.expect("put");
    for n in 3..6 {
        put(table, Item::new(key.clone()).with("b", n), Condition::Always).await.expect("put over");
        assert_eq!(table.get(&key).await, Ok(Some(Item::new(key.clone()).with("b", n))), "read after write");
    }
}

async fn not_exists_allows_only_the_first_put<T: Table>(table: &T, pk: &str) {
    let row = |n: i64| Item::new(Key::new(pk, "row")).with("n", n);
    assert_eq!(put(table, row(1), Condition::NotExists).await, Ok(()));
    assert_eq!(put(table, row(2), Condition::NotExists).await, conflict(&[0]));
    assert_eq!(table.get(&row(1).key).await, Ok(Some(row(1))));
    assert_eq!(
        put(table, Item::new(Key::new(pk, "other")), Condition::NotExists).await,
        Ok(()),
        "another row"
    );
}

async fn equals_compares_type_and_value<T: Table>(table: &T, pk: &str) {
    let row = Item::new(Key::new(pk, "row"))
        .with("s", "1")
        .with("n", 1)
        .with("bool", Attr::Bool(true))
        .with("b", b"1".to_vec())
        .with("empty", "");
    put(table, row.clone(), Condition::Always).await.expect("put");
    let holding: [(&str, Attr); 5] = [
        ("s", "1".into()),
        ("n", 1.into()),
        ("bool", Attr::Bool(true)),
        ("b", b"1".to_vec().into()),
        ("empty", "".into()),
    ];
    for (name, value) in holding {
        assert_eq!(put(table, row.clone(), Condition::equals(name, value)).await, Ok(()), "{name}");
    }
    let failing: [(&str, Attr); 7] = [
        ("s", "2".into()),
        ("s", 1.into()),
        ("n", 2.into()),
        ("n", "1".into()),
        ("bool", Attr::Bool(false)),
        ("b", b"2".to_vec().into()),
        ("missing", "".into()),
    ];
    for (name, value) in failing {
        assert_eq!(put(table, row.clone(), Condition::equals(name, value)).await, conflict(&[0]), "{name}");
    }
    let none = Item::new(Key::new(pk, "none"));
    assert_eq!(put(table, none.clone(), Condition::equals("n", 1)).await, conflict(&[0]), "no row");
    assert_eq!(table.get(&none.key).await, Ok(None));
}

async fn at_least_compares_numbers<T: Table>(table: &T, pk: &str) {
    let row = Item::new(Key::new(pk, "row")).with("n", 10).with("s", "zzz");
    put(table, row.clone(), Condition::Always).await.expect("put");
    let at_least = |name: &str, value| Condition::AtLeast { name: name.to_owned(), value };
    for value in [i64::MIN, -1, 9, 10] {
        assert_eq!(put(table, row.clone(), at_least("n", value)).await, Ok(()), "10 >= {value}");
    }
    for (name, value) in [("n", 11), ("n", i64::MAX), ("s", 0), ("missing", i64::MIN)] {
        assert_eq!(put(table, row.clone(), at_least(name, value)).await, conflict(&[0]), "{name} >= {value}");
    }
    let none = Item::new(Key::new(pk, "none"));
    assert_eq!(put(table, none, at_least("n", 0)).await, conflict(&[0]), "no row");
}

async fn a_delete_without_condition_needs_no_row<T: Table>(table: &T, pk: &str) {
    let row = Item::new(Key::new(pk, "row")).with("n", 1);
    let delete = |condition| table.write(Write::Delete(row.key.clone(), condition));
    assert_eq!(delete(Condition::Always).await, Ok(()), "nothing to delete");
    assert_eq!(delete(Condition::equals("n", 1)).await, conflict(&[0]));
    put(table, row.clone(), Condition::Always).await.expect("put");
    assert_eq!(delete(Condition::equals("n", 2)).await, conflict(&[0]));
    assert_eq!(table.get(&row.key).await, Ok(Some(row.clone())));
    assert_eq!(delete(Condition::equals("n", 1)).await, Ok(()));
    assert_eq!(table.get(&row.key).await, Ok(None));
    put(table, row.clone(), Condition::NotExists).await.expect("put again");
    assert_eq!(delete(Condition::Always).await, Ok(()));
    assert_eq!(table.get(&row.key).await, Ok(None));
}

async fn a_check_writes_nothing<T: Table>(table: &T, pk: &str) {
    let row = Item::new(Key::new(pk, "row")).with("n", 1);
    let check = |condition| table.write(Write::Check(row.key.clone(), condition));
    assert_eq!(check(Condition::Always).await, Ok(()));
    assert_eq!(check(Condition::NotExists).await, Ok(()));
    assert_eq!(table.get(&row.key).await, Ok(None));
    put(table, row.clone(), Condition::Always).await.expect("put");
    assert_eq!(check(Condition::equals("n", 1)).await, Ok(()));
    assert_eq!(check(Condition::NotExists).await, conflict(&[0]));
    assert_eq!(table.get(&row.key).await, Ok(Some(row.clone())));
}

async fn one_of_two_concurrent_writers_wins<T: Table>(table: &T, pk: &str) {
    for round in 0..20 {
        let row = |writer: &str| Item::new(Key::new(pk, format!("{round}"))).with("by", writer);
        let (a, b) = join(
            put(table, row("a"), Condition::NotExists),
            table
                .transact(vec![Write::Put(row("b"), Condition::NotExists)], &format!("{round}{}", token(pk))),
        )
        .await;
        // A table may also throttle the loser, because the row is part of another transaction.
        assert!(a.is_ok() != b.is_ok(), "exactly one wins: {a:?}, {b:?}");
        let winner = if a.is_ok() { "a" } else { "b" };
        assert_eq!(table.get(&row("").key).await, Ok(Some(row(winner))));
    }
}

async fn a_row_that_is_too_large_is_refused<T: Table>(table: &T, pk: &str) {
    let largest = sized(pk, "row", MAX_ITEM_BYTES);
    put(table, largest.clone(), Condition::Always).await.expect("the largest row");
    assert_eq!(table.get(&largest.key).await, Ok(Some(largest.clone())));
    let larger = sized(pk, "row", MAX_ITEM_BYTES + 1);
    assert_refused(&put(table, larger.clone(), Condition::Always).await, "too large");
    let writes = vec![Write::Put(larger, Condition::Always)];
    assert_refused(&table.transact(writes, &token(pk)).await, "too large in a transaction");
    assert_eq!(table.get(&largest.key).await, Ok(Some(largest)));
}

async fn a_bad_key_is_refused<T: Table>(table: &T, pk: &str) {
    let long = "k".repeat(1025);
    for key in [Key::new("", "sk"), Key::new(pk, ""), Key::new(pk, &long), Key::new(long.repeat(2), "sk")] {
        assert_refused(&put(table, Item::new(key.clone()), Condition::Always).await, "put");
        assert_refused(&table.write(Write::Delete(key.clone(), Condition::Always)).await, "delete");
        assert_refused(&table.get(&key).await.map(drop), "get");
    }
    let shadow = Item::new(Key::new(pk, "row")).with("sk", "other");
    assert_refused(&put(table, shadow, Condition::Always).await, "an attribute with the name of the key");
}

/// Polls both futures in turn, so that a table that waits in between sees two concurrent writers.
async fn join<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut done_a, mut done_b) = (None, None);
    poll_fn(|context| {
        if done_a.is_none()
            && let Poll::Ready(output) = a.as_mut().poll(context)
        {
            done_a = Some(output);
        }
        if done_b.is_none()
            && let Poll::Ready(output) = b.as_mut().poll(context)
        {
            done_b = Some(output);
        }
        match (done_a.take(), done_b.take()) {
            (Some(a), Some(b)) => Poll::Ready((a, b)),
            (a, b) => {
                (done_a, done_b) = (a, b);
                Poll::Pending
            }
        }
    })
    .await
}
