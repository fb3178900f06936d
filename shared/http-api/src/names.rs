//! Tuning jobs in the order in which a list shows them, from where the page before ended.
//!
//! By name they come as they lie in the index; in any other order the nearest to the page are kept of all that fit, so that
//! what is held in memory is bounded however many there are. Of those that are not over, the table has a list of its own. Must
//! never read a tuning's state.

use std::collections::{BTreeMap, VecDeque};

use service::active::{self, name_in};
use service::lookup::{self, LookupError};
use service::ports::table::{Query, Table};
use service::store::{Store, StoreError};
use wire::stored::{INDEX, IndexRow};

use crate::error::ApiError;
use crate::list::{TuningOrder, TuningsQuery};

/// Names read at once.
const NAMES_PER_PAGE: usize = 200;
/// Active tunings whose rows of the index are read at once.
const ACTIVE_PER_PAGE: usize = 25;
/// Rows kept in an order that the index has not.
const KEPT_MAX: usize = 1_000;
/// Names looked at for one page in such an order: some seconds.
const SORTED_MAX: usize = 100_000;
/// Heads read to put tunings in order of their status.
const STATUSES_MAX: usize = 1_000;

/// Index rows with their positions in the list that is asked for, one after the other.
pub(crate) struct Names<'a> {
    asked: &'a TuningsQuery,
    rows: Rows,
    ready: std::vec::IntoIter<(String, IndexRow)>,
    /// Whether others follow those that were kept.
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

    /// The next, and its position.
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

    /// Those that come next of all, as many as are kept.
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

/// Rows of the index in order of their names.
enum Rows {
    /// All, from behind a name.
    All { after: Option<String>, descending: bool, more: bool },
    /// Those of these ids.
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

/// Where a name stands in the index.
fn position(name: &str) -> String {
    name.to_ascii_lowercase()
}

fn is_beyond(position: &str, after: Option<&str>, descending: bool) -> bool {
    after.is_none_or(|after| if descending { position < after } else { position > after })
}

/// The status in the head; nothing where that cannot be read.
async fn status<T: Table>(store: &Store<T>, row: &IndexRow) -> Result<String, ApiError> {
    match store.head(&row.id).await {
        Ok(head) => Ok(head.map_or_else(String::new, |head| head.status)),
        Err(StoreError::Stored(_)) => Ok(String::new()),
        Err(error) => Err(error.into()),
    }
}

fn too_many(most: usize, by: &str) -> ApiError {
    ApiError::validation(format!(
        "more than {most} tuning jobs cannot be put in order of their {by}: ask for fewer with NameContains or \
         CreationTimeAfter, for those that are not over with StatusEquals, or for the order of their names with SortBy Name"
    ))
}
