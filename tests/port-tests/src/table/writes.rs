//! The contract of rows, single writes and their conditions.
//!
//! Assumes an unused partition key. Never waits for time to pass.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use wire::item::{Attr, Item, Key, MAX_ITEM_BYTES};

use super::{Case, assert_refused, conflict, put, sized, token};
use use_cases::ports::table::{Condition, Table, TableError, Write};

/// Returns the cases of rows, single writes and their conditions.
pub(super) fn cases<T: Table>() -> Vec<Case<T>> {
    cases![
        a_row_reads_back_as_it_was_put,
        a_put_replaces_the_whole_row,
        not_exists_allows_only_the_first_put,
        equals_compares_type_and_value,
        at_least_compares_numbers,
        at_least_is_false_for_a_text,
        conditions_compare_numbers_exactly,
        a_delete_without_condition_needs_no_row,
        a_check_writes_nothing,
        one_of_two_concurrent_writers_wins,
        a_row_that_is_too_large_is_refused,
        a_put_with_a_bad_key_is_refused,
        a_delete_with_a_bad_key_is_refused,
        a_get_with_a_bad_key_is_refused,
    ]
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
    let row = Item::new(Key::new(pk, "row")).with("n", 10);
    put(table, row.clone(), Condition::Always).await.expect("put");
    for value in [i64::MIN, -1, 9, 10] {
        assert_eq!(put(table, row.clone(), at_least("n", value)).await, Ok(()), "10 >= {value}");
    }
    for (name, value) in [("n", 11), ("n", i64::MAX), ("missing", i64::MIN)] {
        assert_eq!(put(table, row.clone(), at_least(name, value)).await, conflict(&[0]), "{name} >= {value}");
    }
    let none = Item::new(Key::new(pk, "none"));
    assert_eq!(put(table, none, at_least("n", 0)).await, conflict(&[0]), "no row");
}

async fn at_least_is_false_for_a_text<T: Table>(table: &T, pk: &str) {
    let row = Item::new(Key::new(pk, "row")).with("s", "zzz");
    put(table, row.clone(), Condition::Always).await.expect("put");
    assert_eq!(put(table, row, at_least("s", 0)).await, conflict(&[0]));
}

/// A table that compares floating-point numbers takes neighbors above 2^53 for equal.
async fn conditions_compare_numbers_exactly<T: Table>(table: &T, pk: &str) {
    for n in [(1 << 53) + 1, i64::MAX, i64::MIN + 1] {
        let row = Item::new(Key::new(pk, "row")).with("n", n);
        put(table, row.clone(), Condition::Always).await.expect("put");
        let equals = |value: i64| Condition::equals("n", value);
        assert_eq!(put(table, row.clone(), equals(n)).await, Ok(()), "{n} = {n}");
        assert_eq!(put(table, row.clone(), equals(n - 1)).await, conflict(&[0]), "{n} = {n} - 1");
        assert_eq!(put(table, row.clone(), at_least("n", n)).await, Ok(()), "{n} >= {n}");
        if let Some(above) = n.checked_add(1) {
            assert_eq!(put(table, row.clone(), at_least("n", above)).await, conflict(&[0]), "{n} >= {above}");
        }
    }
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
        let (winner, loser) = match (a, b) {
            (Ok(()), loser) => ("a", loser),
            (loser, Ok(())) => ("b", loser),
            neither => panic!("one of the two wins: {neither:?}"),
        };
        // A table may also throttle the loser, because the row is part of another transaction.
        let lost = [conflict(&[0]), Err(TableError::Throttled)];
        assert!(lost.contains(&loser), "{winner} wins, and the loser gets {loser:?}");
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

async fn a_put_with_a_bad_key_is_refused<T: Table>(table: &T, pk: &str) {
    for key in bad_keys() {
        let what = bytes_of(&key);
        assert_refused(&put(table, Item::new(key), Condition::Always).await, &what);
    }
    let shadow = Item::new(Key::new(pk, "row")).with("sk", "other");
    assert_refused(&put(table, shadow, Condition::Always).await, "an attribute with the name of the key");
}

async fn a_delete_with_a_bad_key_is_refused<T: Table>(table: &T, _: &str) {
    for key in bad_keys() {
        let what = bytes_of(&key);
        assert_refused(&table.write(Write::Delete(key, Condition::Always)).await, &what);
    }
}

async fn a_get_with_a_bad_key_is_refused<T: Table>(table: &T, _: &str) {
    for key in bad_keys() {
        assert_refused(&table.get(&key).await.map(drop), &bytes_of(&key));
    }
}

/// Returns keys with an empty part or a part above DynamoDB's limits: 2048 bytes, and 1024 of a sort key.
fn bad_keys() -> [Key; 4] {
    let long = "k".repeat(1025);
    [Key::new("", "sk"), Key::new("pk", ""), Key::new("pk", &long), Key::new(long.repeat(2), "sk")]
}

fn bytes_of(key: &Key) -> String {
    format!("a key of {} and {} bytes", key.pk.len(), key.sk.len())
}

fn at_least(name: &str, value: i64) -> Condition {
    Condition::AtLeast { name: name.to_owned(), value }
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
