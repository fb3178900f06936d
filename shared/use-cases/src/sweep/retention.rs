//! Deletes data that is no longer retained: the rows of deleted tunings, and tunings that ended before the retention
//! period.
//!
//! Runs once an hour, after the listing of all running jobs, in the remaining time of the sweep. An incomplete pass
//! continues an hour later.

use tuning::unit::time::{Millis, Time};
use wire::item::Item;
use wire::stored::{self, DELETED, INDEX, IndexRow};

use super::run::Run;
use super::{Sweeper, WHOLE};
use crate::delete::{DeleteError, delete_found, purge};
use crate::lookup::LookupError;
use crate::ports::table::{Query, Table};
use crate::ports::training::TrainingService;
use crate::ports::{Bus, Timer};
use crate::store::StoreError;

const NAMES_PER_PASS: usize = 100;
const DELETED_PER_PASS: usize = 100;

impl<T: Table, J: TrainingService, B: Bus, C: Timer + Clone> Sweeper<T, J, B, C> {
    /// Deletes what is no longer kept, if this sweep has completed the hourly listing.
    pub(super) async fn enforce_retention(&self, run: &mut Run) {
        if !run.listed_all {
            return;
        }
        if let Some(retention) = self.limits.retention
            && let Err(error) = self.retire(run, retention).await
        {
            run.failed(error);
        }
        if let Err(error) = self.purge_deleted(run).await {
            run.failed(error);
        }
    }

    /// Deletes tunings that ended longer ago than `retention`.
    async fn retire(&self, run: &mut Run, retention: Millis) -> Result<(), StoreError> {
        let after = run.swept.cursor.retired.clone();
        let query = Query { after, ..Query::prefix(INDEX, "", NAMES_PER_PASS) };
        let page = self.store.table.query(&query).await?;
        let before = self.now() - retention;
        for item in page.items {
            if !self.has_time(run, WHOLE) {
                return Ok(());
            }
            if let Err(error) = self.retire_one(run, &item, before).await {
                run.failed_for(&item.key.sk, error);
            }
            run.swept.cursor.retired = Some(item.key.sk);
        }
        run.swept.cursor.retired = page.next;
        Ok(())
    }

    /// Deletes the tuning of an index row if it ended before a time.
    async fn retire_one(&self, run: &mut Run, item: &Item, before: Time) -> Result<(), StoreError> {
        let row = IndexRow::read(item)?;
        if row.created >= before {
            return Ok(());
        }
        // A tuning's last step ended it. Later steps book late bills, and begin its retention again.
        if self.store.head(&row.id).await?.is_none_or(|head| head.at >= before) {
            return Ok(());
        }
        match delete_found(&self.store, &row.id, self.now()).await {
            Ok(()) => run.swept.retired += 1,
            Err(DeleteError::Lookup(LookupError::Store(error))) => return Err(error),
            // It runs, or it changed. A later pass looks again.
            Err(_) => {}
        }
        Ok(())
    }

    /// Removes the rows of deleted tunings.
    async fn purge_deleted(&self, run: &mut Run) -> Result<(), StoreError> {
        let page = self.store.table.query(&Query::prefix(DELETED, "", DELETED_PER_PASS)).await?;
        for item in page.items {
            let id = stored::deleted_id(&item).to_owned();
            let has_time = || self.has_time(run, WHOLE);
            match purge(&*self.store.table, &id, has_time).await {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => run.failed_for(&id, error.into()),
            }
        }
        Ok(())
    }
}
