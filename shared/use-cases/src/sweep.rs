//! The sweeper's use case. Once a minute it repairs the effects of lost events, within the limits of one sweep.
//!
//! A sweep has these steps. The steps that prevent the highest costs come first:
//!
//! 1. Stops running jobs without an action row.
//! 2. Processes the active tunings: stops jobs, reports that time has passed, rings.
//! 3. Reads due bills.
//! 4. Checks silent jobs.
//! 5. Reads booked bills once more.
//!
//! In parallel, the sweep performs deferred starts. It counts and paces calls of the training service (see [`Limits`]).
//! Work that does not fit is left to the next sweep, which continues where this sweep ended. A lease ensures that only
//! one sweeper runs at a time.
//!
//! Without an active tuning, a sweep makes one query, because the lease and the cursors are in the partition of the
//! active tunings. Once an hour, it also lists jobs and looks for deleted tunings. An unreadable tuning must never
//! block the others.

mod bills;
mod lease;
mod limits;
mod meter;
mod orphans;
mod retention;
mod round;
mod run;
mod silence;
mod tuning;

use std::sync::Arc;

use futures_util::future::join;
use wire::stored::SweepCursor;

use crate::perform::Actuator;
use crate::ports::table::Table;
use crate::ports::training::{TrainingJobsError, TrainingService};
use crate::ports::{Bus, Timer};
use crate::store::{Store, StoreError};

pub use limits::{CallKind, Limits, PerCallKind, Rate, Silence};
pub use meter::Metered;

use lease::Lease;
use round::FirstPage;
use run::Run;

/// Shares of a sweep's time, in percent from its beginning. No operation of a kind starts after its share, so that
/// later kinds get time too. This is the share of the listing of jobs that have reached the minimum age of orphans.
const LIST_NEW_SHARE: u32 = 15;
/// The visit of the active tunings.
const HEAL_SHARE: u32 = 35;
/// Bills and logs.
const BILLS_SHARE: u32 = 65;
/// The listing of all running jobs.
const LIST_SHARE: u32 = 75;
/// Starts, beside all of these. The last one may wait for its turn.
const STARTS_SHARE: u32 = 90;
/// The whole sweep.
const WHOLE: u32 = 100;

/// The sweeper and its dependencies.
#[derive(Debug)]
pub struct Sweeper<T, J, B, C> {
    store: Arc<Store<T>>,
    /// Performs due actions within the limits of this sweep.
    actuator: Actuator<T, Metered<J, C>, B, C>,
    limits: Limits,
    owner: String,
}

/// Numbers of settled actions by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settled {
    /// Starts of training jobs.
    pub starts: usize,
    /// Stops of training jobs.
    pub stops: usize,
    /// Bills read.
    pub bills: usize,
    /// Booked bills that were read once more and have not risen.
    pub confirmed: usize,
    /// Logs and kept instances read, and kept instances released.
    pub reads: usize,
    /// Notices published.
    pub notices: usize,
    /// Requests and returns of money.
    pub grants: usize,
}

/// Numbers of actions that a sweep tried, by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Settled.
    pub done: usize,
    /// Of the settled actions, those that started a training job.
    pub started: usize,
    /// Of the settled actions, those that stopped a training job.
    pub stopped: usize,
    /// Deferred again.
    pub deferred: usize,
}

/// The result of a sweep.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Swept {
    /// Another sweeper holds the lease, so this sweep did nothing.
    pub busy: bool,
    /// The lease expired and another sweeper took it.
    pub lost: bool,
    /// Number of tunings visited.
    pub tunings: usize,
    /// Number of silent jobs checked.
    pub looked: usize,
    /// Actions settled.
    pub settled: Settled,
    /// Number of due actions and silent jobs left to the next sweep, as far as this sweep saw them.
    pub left: usize,
    /// Where the next sweep continues.
    pub cursor: SweepCursor,
    /// Number of calls of the training service.
    pub calls: PerCallKind<u32>,
    /// Number of tunings and listed jobs that could not be read or written. The next sweep retries them.
    pub failed: usize,
    /// The last error.
    pub last_error: Option<StoreError>,
    /// The first errors that concern a tuning: its ID and the error.
    pub failures: Vec<(String, StoreError)>,
    /// Numbers of tried actions by result.
    pub performed: Counts,
    /// Tunings with an event that could not be published: the ID and the reason.
    pub unpublished: Vec<(String, String)>,
    /// Number of tunings without a step for ten minutes although a stored fact or outcome waits for the decider.
    pub stuck: usize,
    /// Number of actions that were ordered a while ago and that no actuator had tried before this sweep.
    pub missed: usize,
    /// Number of silent jobs in which this sweep found a state, at least a minute old, that no event had brought.
    pub events_missed: usize,
    /// The same, with a state or with values that no log batch had brought.
    pub deliveries_missed: usize,
    /// Bills that were booked before the whole log of the job could be read: tuning ID and action.
    pub logs_cut: Vec<(String, String)>,
    /// Starts whose job counts as started, since nothing shows whether it exists: tuning ID, action and the last error.
    pub assumed_started: Vec<(String, String, String)>,
    /// Number of orphans (running jobs without an action row) stopped.
    pub orphans_stopped: usize,
    /// Number of tunings deleted because they ended longer ago than the retention.
    pub retired: usize,
    /// Why running jobs could not be listed or an orphan could not be stopped.
    pub listing_error: Option<TrainingJobsError>,
}

impl<T: Table, J: TrainingService, B: Bus, C: Timer + Clone> Sweeper<T, J, B, C> {
    /// Creates a sweeper from the parts of `actuator`. `owner` names the sweeper. No two sweeps of one owner run at
    /// once, so a lease in its own name is left over from before a restart.
    pub fn new(actuator: Actuator<T, J, B, C>, limits: Limits, owner: String) -> Self {
        let Actuator {
            store,
            jobs,
            bus,
            clock,
            pace,
            stack,
            log_lag_ms,
            bills_are_final,
            claim_ms,
            defer_ms,
            abandoned_ms,
            monthly_cap,
            place,
        } = actuator;
        let jobs = Metered::new(jobs, clock.clone());
        let actuator = Actuator {
            store: Arc::clone(&store),
            jobs,
            bus,
            clock,
            pace,
            stack,
            log_lag_ms,
            bills_are_final,
            claim_ms,
            defer_ms,
            abandoned_ms,
            monthly_cap,
            place,
        };
        Self { store, actuator, limits, owner }
    }

    /// Runs one sweep. Errors of single tunings are part of the result. An `Err` means that nothing was done.
    pub async fn sweep(&self) -> Result<Swept, StoreError> {
        let now = self.actuator.clock.now();
        let page = self.store.table.query(&round::query(None)).await?;
        let mut lease = Lease::read(&page)?;
        let first = FirstPage::of(&page);
        let idle = first.ids.is_empty() && first.next.is_none();
        let mut swept = Swept { cursor: lease.row.cursor.clone(), ..Swept::default() };
        if idle && swept.cursor.listing.is_none() && now < swept.cursor.listing_due {
            return Ok(swept);
        }
        let was_abandoned = lease.was_abandoned();
        let busy = lease.is_held_by_another_than(&self.owner, now);
        if busy || !lease.take(&self.store, &self.owner, now + self.limits.lease_ms).await? {
            swept.busy = true;
            return Ok(swept);
        }
        let until = now + self.limits.time_ms;
        self.actuator.jobs.begin(self.limits.calls, now, until);
        let mut run = Run::new(now, first, lease, swept);
        if !idle {
            self.list_new(&mut run).await;
        }
        self.heal(&mut run, was_abandoned).await;
        // Starts wait for their turns most of the time.
        let starts = self.make_starts(run.begun, run.swept.lost, std::mem::take(&mut run.starts));
        let (starts, ()) = join(Box::pin(starts), Box::pin(self.do_rest(&mut run, idle))).await;
        tuning::record_starts(&mut run, starts);
        self.publish(&mut run).await;
        Ok(self.end(run).await)
    }

    /// Does what comes after the visit of the active tunings, apart from starts.
    async fn do_rest(&self, run: &mut Run, idle: bool) {
        self.read_bills(run).await;
        self.list_all(run, if idle { WHOLE } else { LIST_SHARE }).await;
        self.check_silence(run).await;
        self.confirm_bills(run).await;
        self.enforce_retention(run).await;
    }

    async fn publish(&self, run: &mut Run) {
        for (id, announcement) in std::mem::take(&mut run.announcements) {
            let published = if self.has_time(run, WHOLE) {
                self.actuator.publish(&id, announcement).await
            } else {
                Err("no time left".to_owned())
            };
            run.swept.unpublished.extend(published.err().map(|why| (id, why)));
        }
    }

    /// Returns whether the sweep may start an operation of the first `share` percent of its time.
    fn has_time(&self, run: &Run, share: u32) -> bool {
        let until = run.begun + self.limits.time_ms.percent(share);
        !run.swept.lost && self.actuator.clock.now() < until
    }

    /// Stores the cursor after some work, so that sweeps that die do not all start from the same place.
    async fn save(&self, run: &mut Run) {
        match run.lease.store(&self.store, &run.swept.cursor).await {
            Ok(held) => run.swept.lost |= !held,
            Err(error) => run.swept.last_error = Some(error),
        }
    }

    async fn end(&self, mut run: Run) -> Swept {
        if !run.swept.lost {
            match run.lease.release(&self.store, &run.swept.cursor).await {
                Ok(held) => run.swept.lost |= !held,
                Err(error) => run.swept.last_error = Some(error),
            }
        }
        run.swept.left = run.swept.left.saturating_add(run.silent.saturating_sub(run.swept.looked));
        run.swept.calls = self.actuator.jobs.used();
        run.swept
    }
}
