//! The contract of queries: order, prefix, paging.
//!
//! Assumes an unused partition key. Never waits for time to pass.

use wire::item::{Item, Key, MAX_ITEM_BYTES};

use super::{Case, assert_refused, page, put, sized};
use use_cases::ports::table::{Condition, Page, Query, Table};

pub(super) fn cases<T: Table>() -> Vec<Case<T>> {
    cases![
        a_query_reads_a_prefix_in_either_order,
        a_query_continues_after_a_key,
        a_prefix_has_no_wildcards,
        a_large_result_is_split_into_pages,
        a_bad_query_is_refused,
    ]
}

async fn a_query_reads_a_prefix_in_either_order<T: Table>(table: &T, pk: &str) {
    fill(table, pk, &["A#1", "B#10", "B#2", "B#é", "B#🦀", "B#\u{ffff}", "C#1", "b#1"]).await;
    fill(table, &format!("{pk}x"), &["B#0"]).await;
    let sorted = ["B#10", "B#2", "B#é", "B#\u{ffff}", "B#🦀"];
    let query = Query::prefix(pk, "B#", 100);
    assert_eq!(keys(&page(table, &query).await), sorted, "in order of UTF-8 bytes");
    let reversed: Vec<&str> = sorted.iter().rev().copied().collect();
    let query = Query { descending: true, ..query };
    assert_eq!(keys(&page(table, &query).await), reversed);
    assert_eq!(keys(&page(table, &Query { limit: 2, ..query }).await), ["B#🦀", "B#\u{ffff}"]);
    assert_eq!(page(table, &Query::prefix(pk, "", 100)).await.items.len(), 8, "no prefix");
    assert_eq!(page(table, &Query::prefix(pk, "Z", 100)).await, Page::default(), "wrong prefix");
    assert_eq!(
        page(table, &Query::prefix(format!("{pk}?"), "", 100)).await,
        Page::default(),
        "wrong partition"
    );
    let item = Item::new(Key::new(pk, "C#1")).with("sk_is", "C#1");
    assert_eq!(page(table, &Query::prefix(pk, "C#1", 100)).await.items, [item], "whole rows");
}

async fn a_query_continues_after_a_key<T: Table>(table: &T, pk: &str) {
    fill(table, pk, &["A", "B1", "B2", "B3", "C"]).await;
    let cases: [(&str, bool, &str, &[&str]); 12] = [
        ("B", false, "B1", &["B2", "B3"]),
        ("B", false, "B15", &["B2", "B3"]),
        ("B", false, "B3", &[]),
        ("B", false, "A", &["B1", "B2", "B3"]),
        ("B", false, "", &["B1", "B2", "B3"]),
        ("B", false, "C", &[]),
        ("B", true, "B3", &["B2", "B1"]),
        ("B", true, "B1", &[]),
        ("B", true, "C", &["B3", "B2", "B1"]),
        ("B", true, "A", &[]),
        ("", true, "B1", &["A"]),
        ("", false, "B3", &["C"]),
    ];
    for (prefix, descending, after, expected) in cases {
        let query = Query { descending, after: Some(after.to_owned()), ..Query::prefix(pk, prefix, 100) };
        assert_eq!(
            keys(&page(table, &query).await),
            expected,
            "{prefix:?} after {after:?}, descending {descending}"
        );
    }
    for descending in [false, true] {
        let mut query = Query { descending, ..Query::prefix(pk, "B", 1) };
        let mut seen = Vec::new();
        loop {
            let page = page(table, &query).await;
            assert!(page.items.len() <= 1, "more than the limit");
            seen.extend(keys(&page).into_iter().map(str::to_owned));
            let Some(next) = page.next else { break };
            query.after = Some(next);
        }
        seen.sort();
        assert_eq!(seen, ["B1", "B2", "B3"], "every row exactly once");
    }
}

async fn a_prefix_has_no_wildcards<T: Table>(table: &T, pk: &str) {
    let odd = ["a%b", "a*b", "a?b", "a[b", "a_b", "a'b", "a\\b", "a\"b", "a#b", "a:b"];
    fill(table, pk, &odd).await;
    fill(table, pk, &["axb"]).await;
    for sk in odd {
        let prefix: String = sk.chars().take(2).collect();
        assert_eq!(keys(&page(table, &Query::prefix(pk, prefix, 100)).await), [sk]);
    }
}

async fn a_large_result_is_split_into_pages<T: Table>(table: &T, pk: &str) {
    let rows: Vec<Item> = (0..6).map(|n| sized(pk, &format!("R{n}"), MAX_ITEM_BYTES)).collect();
    for row in &rows {
        put(table, row.clone(), Condition::Always).await.expect("put");
    }
    for descending in [false, true] {
        let mut query = Query { descending, ..Query::prefix(pk, "R", 100) };
        let (mut read, mut pages) = (Vec::new(), 0);
        loop {
            let page = page(table, &query).await;
            pages += 1;
            assert!(!page.items.is_empty() || page.next.is_none(), "an empty page with a next page");
            assert!(page.items.len() < rows.len(), "1.8 MB in one page");
            read.extend(page.items);
            let Some(next) = page.next else { break };
            query.after = Some(next);
        }
        assert!(pages > 1);
        if descending {
            read.reverse();
        }
        assert!(read == rows, "every row exactly once, in order, descending {descending}");
    }
}

async fn a_bad_query_is_refused<T: Table>(table: &T, pk: &str) {
    assert_refused(&table.query(&Query::prefix("", "", 1)).await.map(drop), "no partition");
    assert_refused(&table.query(&Query::prefix(pk, "", 0)).await.map(drop), "limit 0");
}

async fn fill<T: Table>(table: &T, pk: &str, sort_keys: &[&str]) {
    for sk in sort_keys {
        put(table, Item::new(Key::new(pk, *sk)).with("sk_is", *sk), Condition::Always).await.expect("put");
    }
}

fn keys(page: &Page) -> Vec<&str> {
    page.items.iter().map(|item| item.key.sk.as_str()).collect()
}
