//! The lease of a sweep: one sweeper at a time, and the place where the next one goes on.
//!
//! Nothing rests on it but calls that are made once instead of twice: all that a sweep does is idempotent, and a sweeper
//! that was frozen past its lease finds another fencing number when it next stores its place, and ends.

use wire::stored::{FENCE, StoredError, SweepCursor, SweepRow};

use crate::ports::Millis;
use crate::ports::table::{Condition, Page, Table, TableError, Write};
use crate::store::{Store, StoreError};

/// The lease, held or not.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) row: SweepRow,
    /// The fencing number in the table.
    stored: Stored,
}

#[derive(Debug)]
enum Stored {
    Nothing,
    Fence(i64),
    /// A row that cannot be read is of no use to anybody.
    Damaged,
}

impl Lease {
    /// As the first page of the active tunings shows it.
    pub(super) fn read(page: &Page) -> Result<Self, StoreError> {
        let key = SweepRow::key();
        match page.items.iter().find(|item| item.key == key).map(SweepRow::read) {
            None => Ok(Self { row: SweepRow::default(), stored: Stored::Nothing }),
            Some(Ok(row)) => Ok(Self { stored: Stored::Fence(row.fence), row }),
            Some(Err(StoredError::Unreadable { .. })) => {
                Ok(Self { row: SweepRow::default(), stored: Stored::Damaged })
            }
            Some(Err(error @ StoredError::Newer { .. })) => Err(error.into()),
        }
    }

    /// Whether somebody else holds it.
    pub(super) fn is_held(&self, owner: &str, now: Millis) -> bool {
        self.row.expires > now && self.row.owner != owner
    }

    /// Whether the last who held it did not give it back.
    pub(super) fn was_left(&self) -> bool {
        self.row.expires > 0
    }

    /// Takes it until `expires`; `false` if somebody else was first.
    pub(super) async fn take<T: Table>(
        &mut self,
        store: &Store<T>,
        owner: &str,
        expires: Millis,
    ) -> Result<bool, StoreError> {
        self.row.fence = self.row.fence.saturating_add(1);
        owner.clone_into(&mut self.row.owner);
        self.row.expires = expires;
        self.put(store).await
    }

    /// Stores the place; `false` if the lease has passed to somebody else.
    pub(super) async fn store<T: Table>(
        &mut self,
        store: &Store<T>,
        cursor: &SweepCursor,
    ) -> Result<bool, StoreError> {
        self.row.cursor.clone_from(cursor);
        self.put(store).await
    }

    /// Stores the place and gives it back.
    pub(super) async fn give_back<T: Table>(
        &mut self,
        store: &Store<T>,
        cursor: &SweepCursor,
    ) -> Result<bool, StoreError> {
        self.row.expires = 0;
        self.store(store, cursor).await
    }

    async fn put<T: Table>(&mut self, store: &Store<T>) -> Result<bool, StoreError> {
        let condition = match self.stored {
            Stored::Nothing => Condition::NotExists,
            Stored::Fence(fence) => Condition::equals(FENCE, fence),
            Stored::Damaged => Condition::Always,
        };
        match store.table.write(Write::Put(self.row.row(), condition)).await {
            Ok(()) => {
                self.stored = Stored::Fence(self.row.fence);
                Ok(true)
            }
            Err(TableError::Conflict(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
