//! Lists tuning jobs in the requested order, from the last position of the previous page.
//!
//! The index is ordered by name. For any other order, this module scans the index and keeps the rows nearest to the
//! page, so that memory is bounded. The table has a separate list of active tunings. Must never read a tuning's
//! state.

use std::collections::{BTreeMap, VecDeque};

use use_cases::active::{self, name_in};
use use_cases::lookup::{self, LookupError};
use use_cases::ports::table::{Query, Table};
use use_cases::store::{Store, StoreError};
use wire::stored::{INDEX, IndexRow};

use crate::error::ApiError;
use crate::list::{TuningOrder, TuningsQuery};

/// Index rows per query.
const NAMES_PER_PAGE: usize = 200;
/// Active tunings whose index rows are read together.
const ACTIVE_PER_PAGE: usize = 25;
/// Maximum number of rows in memory, for an order other than by name.
const KEPT_MAX: usize = 1_000;
/// Maximum number of index rows read for a page in such an order, which takes seconds.
const SORTED_MAX: usize = 100_000;
/// Maximum number of heads read to sort by status.
const STATUSES_MAX: usize = 1_000;

/// An iterator over index rows with their positions in the list.
pub(crate) struct Names<'a> {
    asked: &'a TuningsQuery,
    rows: Rows,
    ready: std::vec::IntoIter<(String, IndexRow)>,
    /// Whether more rows follow the kept ones.
    pub(crate) cut: bool,
}

impl<'a> Names<'a> {
    pub(crate) async fn begin<T: Table>(store: &Store<T>, asked: &'a TuningsQuery) -> Result<Self, ApiError> {
        let by_name = asked.order == TuningOrder::Name;
        let (after, descending) =
            if by_name { (asked.after.clone(), asked.descending) } else { (None, false) };
        let rows = if asked.is_of_active() {
            let mut ids = active::ids(&*store.table).await?;
            ids.sort_by_cached_key(|id| position(name_in(id)));
            if descending {
                ids.reverse();
            }
            ids.retain(|id| is_beyond(&position(name_in(id)), after.as_deref(), descending));
            Rows::Active(ids.into())
        } else {
            Rows::All { after, descending, more: true }
        };
        Ok(Self { asked, rows, ready: Vec::new().into_iter(), cut: false })
    }

    pub(crate) async fn next<T: Table>(
        &mut self,
        store: &Store<T>,
    ) -> Result<Option<(String, IndexRow)>, ApiError> {
        loop {
            if let Some(next) = self.ready.next() {
                return Ok(Some(next));
            }
            if !self.rows.more() {
                return Ok(None);
            }
            let ready = match self.asked.order {
                TuningOrder::Name => self.page(store).await?,
                TuningOrder::CreationTime | TuningOrder::Status => self.nearest(store).await?,
            };
            self.ready = ready.into_iter();
        }
    }

    async fn page<T: Table>(&mut self, store: &Store<T>) -> Result<Vec<(String, IndexRow)>, ApiError> {
        let rows = self.rows.page(store).await?.into_iter().filter(|row| self.asked.fits(row));
        Ok(rows.map(|row| (position(&row.name), row)).collect())
    }

    /// Returns the next rows in the order of the list, at most [`KEPT_MAX`].
    async fn nearest<T: Table>(&mut self, store: &Store<T>) -> Result<Vec<(String, IndexRow)>, ApiError> {
        let (descending, after) = (self.asked.descending, self.asked.after.as_deref());
        let (mut kept, mut looked, mut heads) = (BTreeMap::new(), 0_usize, 0_usize);
        while self.rows.more() {
            let rows = self.rows.page(store).await?;
            looked = looked.saturating_add(rows.len());
            if looked > SORTED_MAX {
                return Err(too_many(SORTED_MAX, "time"));
            }
            for row in rows.into_iter().filter(|row| self.asked.fits(row)) {
                let first = if self.asked.order == TuningOrder::Status {
                    heads = heads.saturating_add(1);
                    if heads > STATUSES_MAX {
                        return Err(too_many(STATUSES_MAX, "status"));
                    }
                    status(store, &row).await?
                } else {
                    format!("{:020}", row.created)
                };
                let position = format!("{first}/{}", position(&row.name));
                if is_beyond(&position, after, descending) {
                    kept.insert(position, row);
                }
                if kept.len() > KEPT_MAX {
                    if descending {
                        kept.pop_first()
                    } else {
                        kept.pop_last()
                    };
                    self.cut = true;
                }
            }
        }
        Ok(if descending { kept.into_iter().rev().collect() } else { kept.into_iter().collect() })
    }
}

/// Index rows in order of name.
enum Rows {
    /// All rows after a name.
    All { after: Option<String>, descending: bool, more: bool },
    /// The rows of these tuning IDs.
    Active(VecDeque<String>),
}

impl Rows {
    fn more(&self) -> bool {
        match self {
            Self::All { more, .. } => *more,
            Self::Active(ids) => !ids.is_empty(),
        }
    }

    async fn page<T: Table>(&mut self, store: &Store<T>) -> Result<Vec<IndexRow>, ApiError> {
        match self {
            Self::All { after, descending, more } => {
                let query = Query {
                    after: after.take(),
                    descending: *descending,
                    ..Query::prefix(INDEX, "", NAMES_PER_PAGE)
                };
                let page = store.table.query(&query).await.map_err(StoreError::from)?;
                *more = page.next.is_some();
                *after = page.next;
                let rows: Result<Vec<IndexRow>, _> = page.items.iter().map(IndexRow::read).collect();
                Ok(rows.map_err(StoreError::from)?)
            }
            Self::Active(ids) => {
                let mut rows = Vec::new();
                let count = ids.len().min(ACTIVE_PER_PAGE);
                for id in ids.drain(..count) {
                    match lookup::find(store, name_in(&id)).await {
                        Ok(row) => rows.extend(Some(row).filter(|row| row.id == id)),
                        Err(LookupError::NotFound(_)) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Ok(rows)
            }
        }
    }
}

fn position(name: &str) -> String {
    name.to_ascii_lowercase()
}

fn is_beyond(position: &str, after: Option<&str>, descending: bool) -> bool {
    after.is_none_or(|after| if descending { position < after } else { position > after })
}

/// Returns the status in the head; empty if the head is missing or unreadable.
async fn status<T: Table>(store: &Store<T>, row: &IndexRow) -> Result<String, ApiError> {
    match store.head(&row.id).await {
        Ok(head) => Ok(head.map_or_else(String::new, |head| head.status)),
        Err(StoreError::Stored(_)) => Ok(String::new()),
        Err(error) => Err(error.into()),
    }
}

fn too_many(most: usize, by: &str) -> ApiError {
    ApiError::validation(format!(
        "cannot sort more than {most} tuning jobs by {by}: filter with NameContains or CreationTimeAfter, list active \
         jobs with StatusEquals, or set SortBy to Name"
    ))
}
