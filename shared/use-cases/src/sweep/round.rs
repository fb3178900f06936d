//! The order in which a sweep processes the active tunings: each of them once, starting after a given ID, page by page.

use std::collections::VecDeque;

use wire::stored::{self, ACTIVE};

use crate::ports::table::{Page, Query, Table};
use crate::store::{Store, StoreError};

const PAGE_IDS: usize = 100;

/// The first page of the active tunings, from the first query of the sweep.
#[derive(Debug, Clone, Default)]
pub(super) struct FirstPage {
    pub(super) ids: Vec<String>,
    pub(super) next: Option<String>,
}

/// One visit of all active tunings.
#[derive(Debug)]
pub(super) struct Round {
    /// The round starts with the first ID after this one, and ends with this one.
    after: String,
    ready: VecDeque<String>,
    /// Where the next page begins.
    next: Option<String>,
    /// The first page, until the end of the list was reached.
    first: Option<FirstPage>,
    /// The tuning to visit after all others.
    last: Option<String>,
}

/// Returns the query for the page after `after` of the active tunings. The sweeper's own row comes first in the
/// partition.
pub(super) fn query(after: Option<String>) -> Query {
    Query { after, ..Query::prefix(ACTIVE, "", PAGE_IDS) }
}

impl FirstPage {
    pub(super) fn of(page: &Page) -> Self {
        Self { ids: ids(page), next: page.next.clone() }
    }
}

fn ids(page: &Page) -> Vec<String> {
    page.items.iter().filter_map(stored::active_id).map(str::to_owned).collect()
}

impl Round {
    /// Starts a round with the tuning after `after`.
    pub(super) fn new(first: &FirstPage, after: &str) -> Self {
        let from = first.ids.partition_point(|id| id.as_str() <= after);
        let mut round = Self {
            after: after.to_owned(),
            ready: VecDeque::new(),
            next: None,
            first: Some(first.clone()),
            last: None,
        };
        if from < first.ids.len() || first.next.is_none() {
            round.ready.extend(first.ids.iter().skip(from).cloned());
            round.next.clone_from(&first.next);
        } else {
            round.next = Some(after.to_owned());
        }
        round
    }

    /// Returns the next tuning, or `None` at the end of the round.
    pub(super) async fn next<T: Table>(&mut self, store: &Store<T>) -> Result<Option<String>, StoreError> {
        loop {
            if let Some(id) = self.ready.pop_front() {
                return Ok(Some(id));
            }
            if let Some(after) = self.next.take() {
                let page = store.table.query(&query(Some(after))).await?;
                self.ready.extend(ids(&page));
                self.next = page.next;
            } else if let Some(first) = self.first.take() {
                self.ready.extend(first.ids);
                self.next = first.next;
            } else {
                return Ok(self.last.take());
            }
            if self.first.is_none() {
                let whole = self.ready.len();
                self.ready.retain(|id| *id <= self.after);
                if self.ready.len() < whole {
                    self.next = None;
                }
            }
        }
    }

    /// Visits `id` after all others.
    pub(super) fn put_last(&mut self, id: String) {
        self.last = Some(id);
    }
}
