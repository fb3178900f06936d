//! The stored rows of one tuning, page by page. From a copy of them, another machine explains, replays or reports the
//! tuning with the same code.
//!
//! The first row is the row of the name. Then follow the partition of the tuning, with the head before the steps, and
//! the facts. A copy therefore has all steps of its head, and perhaps later steps, which readers of a state ignore.

use wire::item::Item;
use wire::stored::{self, IndexRow};

use crate::ports::table::{Page, Query, Table};
use crate::store::StoreError;

/// Maximum size of a page, in bytes of rows; a page has at least one row. Lambda's limit is 6 MB.
const BYTES: usize = 2_000_000;

/// A page of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct RowPage {
    /// The rows.
    pub rows: Vec<Item>,
    /// The position of the next page; `None` on the last page.
    pub next: Option<Position>,
}

/// The position after a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Whether the facts have begun.
    facts: bool,
    /// Sort key of the row; empty before the first row of its partition.
    after: String,
}

impl Position {
    /// Returns the position as a text.
    pub fn text(&self) -> String {
        format!("{}{}", if self.facts { 'F' } else { 'T' }, self.after)
    }

    /// Reads a text of [`text`](Self::text).
    pub fn read(text: &str) -> Option<Self> {
        let (facts, after) = match text.split_at_checked(1)? {
            ("T", after) => (false, after),
            ("F", after) => (true, after),
            _ => return None,
        };
        Some(Self { facts, after: after.to_owned() })
    }
}

/// Returns the page of tuning `row` that begins at `position`, or the first page. It has at most `limit` (>= 1) rows besides
/// that of the name.
pub async fn page<T: Table>(
    table: &T,
    row: &IndexRow,
    position: Option<Position>,
    limit: usize,
) -> Result<RowPage, StoreError> {
    let mut rows = if position.is_none() { vec![row.row()] } else { Vec::new() };
    let position = position.unwrap_or(Position { facts: false, after: String::new() });
    let partition =
        if position.facts { stored::fact_partition(&row.id) } else { stored::tuning_partition(&row.id) };
    let after = Some(position.after.clone()).filter(|after| !after.is_empty());
    let Page { items, next } = table.query(&Query { after, ..Query::prefix(partition, "", limit) }).await?;
    let (count, mut bytes, mut last) = (items.len(), 0_usize, position.after);
    let mut taken = 0;
    for item in items {
        bytes = bytes.saturating_add(item.size_bytes());
        taken += 1;
        last.clone_from(&item.key.sk);
        rows.push(item);
        if bytes >= BYTES {
            break;
        }
    }
    let next = if next.is_some() || taken < count {
        Some(Position { facts: position.facts, after: last })
    } else {
        (!position.facts).then(|| Position { facts: true, after: String::new() })
    };
    Ok(RowPage { rows, next })
}
