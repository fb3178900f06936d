//! The order in which a sweep visits the active tunings: from a place on, once round, a page of ids at a time.

use std::collections::VecDeque;

use wire::stored::{self, ACTIVE};

use crate::ports::table::{Page, Query, Table};
use crate::store::{Store, StoreError};

/// Ids read at once.
const PAGE_IDS: usize = 100;

/// The first page of the active tunings, as the sweep's first query gave it.
#[derive(Debug, Clone, Default)]
pub(super) struct FirstPage {
    pub(super) ids: Vec<String>,
    pub(super) next: Option<String>,
}

/// Once round.
#[derive(Debug)]
pub(super) struct Round {
    /// The ids after this one come first, this one last.
    after: String,
    ready: VecDeque<String>,
    /// Where the next page begins.
    next: Option<String>,
    /// The first page, until the end of the list has been reached.
    first: Option<FirstPage>,
    /// To be visited at the very end.
    last: Option<String>,
}

/// The query for the page after `after` of the active tunings and of the sweeper's own row, which comes first.
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
    /// Once round, from the tuning after `after` on.
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

    /// The next tuning.
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

    /// Visits `id` at the very end.
    pub(super) fn put_last(&mut self, id: String) {
        self.last = Some(id);
    }
}
