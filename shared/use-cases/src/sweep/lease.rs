//! The lease of a sweep: ensures that one sweeper runs at a time, and stores where the next sweep continues.
//!
//! The lease only saves calls that would otherwise be made twice, because all work of a sweep is idempotent. A sweeper
//! that was frozen until its lease expired finds another fencing number when it next stores its cursor, and ends.

use tuning::unit::time::Time;
use wire::stored::{FENCE, StoredError, SweepCursor, SweepRow};

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
    /// An unreadable row, which is overwritten.
    Damaged,
}

impl Lease {
    /// Reads the lease from the first page of the active tunings.
    pub(super) fn read(page: &Page) -> Result<Self, StoreError> {
        let key = SweepRow::key();
        match page.items.iter().find(|item| item.key == key).map(SweepRow::read) {
            None => Ok(Self { row: SweepRow::default(), stored: Stored::Nothing }),
            Some(Ok(row)) => Ok(Self { stored: Stored::Fence(row.fence), row }),
            Some(Err(StoredError::Unreadable { .. })) => {
                Ok(Self { row: SweepRow::default(), stored: Stored::Damaged })
            }
            Some(Err(error @ (StoredError::Newer { .. } | StoredError::NewerFact { .. }))) => {
                Err(error.into())
            }
        }
    }

    /// Returns whether an owner other than `owner` holds the lease.
    pub(super) fn is_held_by_another_than(&self, owner: &str, now: Time) -> bool {
        self.row.expires > now && self.row.owner != owner
    }

    /// Returns whether the last owner ended without releasing the lease.
    pub(super) fn was_abandoned(&self) -> bool {
        self.row.expires > Time::EPOCH
    }

    /// Takes the lease until `expires`. Returns `false` if another sweeper took it first.
    pub(super) async fn take<T: Table>(
        &mut self,
        store: &Store<T>,
        owner: &str,
        expires: Time,
    ) -> Result<bool, StoreError> {
        self.row.fence = self.row.fence.saturating_add(1);
        owner.clone_into(&mut self.row.owner);
        self.row.expires = expires;
        self.put(store).await
    }

    /// Stores the cursor. Returns `false` if another sweeper has taken the lease.
    pub(super) async fn store<T: Table>(
        &mut self,
        store: &Store<T>,
        cursor: &SweepCursor,
    ) -> Result<bool, StoreError> {
        self.row.cursor.clone_from(cursor);
        self.put(store).await
    }

    /// Stores the cursor and releases the lease.
    pub(super) async fn release<T: Table>(
        &mut self,
        store: &Store<T>,
        cursor: &SweepCursor,
    ) -> Result<bool, StoreError> {
        self.row.expires = Time::EPOCH;
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
