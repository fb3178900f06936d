//! The sweeper's use case, once a minute: heals what never arrived.
//!
//! Describes silent jobs, reads log lines that were not delivered, performs actions that nobody performed, tells the
//! decider the time when one of its deadlines passed, rings where nothing moves, stops jobs that no action row knows, and
//! takes tunings that have ended off the list. With no active tuning it makes one query a minute and a listing an hour.

mod orphans;
mod tuning;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use wire::stored::ACTIVE;

use crate::perform::Actuator;
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, TrainingJobListing, TrainingJobs, TrainingJobsError};
use crate::ports::{Bus, Clock};
use crate::store::{Store, StoreError};

/// While nothing is active, running jobs are listed so often; with the age of an orphan and a sweep less than an hour.
const IDLE_LISTING_MS: i64 = 2_800_000;

/// The use case with what it needs.
#[derive(Debug)]
pub struct Sweeper<T, J, B, C> {
    /// Reads tunings.
    pub store: Arc<Store<T>>,
    /// Performs what was left undone.
    pub actuator: Arc<Actuator<T, J, B, C>>,
    /// When jobs were last listed, ms.
    pub listed_at: AtomicI64,
    /// A job that shows no sign of life for so long is described, ms.
    pub silence_ms: i64,
}

/// What a sweep did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Swept {
    /// Tunings looked at.
    pub tunings: usize,
    /// Tunings that could not be swept; the next sweep tries again.
    pub failed: usize,
    /// Why the last of these could not be.
    pub last_error: Option<StoreError>,
    /// Running jobs that no action row knows, stopped.
    pub orphans_stopped: usize,
}

impl<T, J, B, C> Sweeper<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs + TrainingJobListing,
    B: Bus,
    C: Clock,
{
    /// One sweep.
    pub async fn sweep(&self) -> Result<Swept, StoreError> {
        if ::tuning::planted!(LoseSweep) {
            return Ok(Swept::default());
        }
        let now = self.actuator.clock.now();
        let active = self.store.all(ACTIVE, "").await?;
        let mut swept = Swept { tunings: active.len(), ..Swept::default() };
        for row in &active {
            if let Err(error) = self.sweep_tuning(&row.key.sk, now).await {
                swept.failed += 1;
                swept.last_error = Some(error);
            }
        }
        let idle_for = now.saturating_sub(self.listed_at.load(Ordering::Relaxed));
        if !active.is_empty() || idle_for >= IDLE_LISTING_MS {
            let (stopped, whole) = self.stop_orphans(now).await?;
            swept.orphans_stopped = stopped;
            if whole {
                self.listed_at.store(now, Ordering::Relaxed);
            }
        }
        Ok(swept)
    }
}

/// Whether an error of the training service ends the work on this job for now (all do; it is tried at the next sweep).
fn skip<V>(result: Result<V, TrainingJobsError>) -> Option<V> {
    result.ok()
}
