//! The sweeper's use case, once a minute: heals what never arrived, as much as one sweep may do, and goes on the next time.
//!
//! A sweep stops running jobs that no action row knows, goes once round the active tunings (stops what is to be stopped,
//! tells the time, rings), reads owed bills, makes the starts that were put off, and looks at silent jobs, in this order:
//! what costs money first. Calls of the training service are counted and paced ([`Limits`]); what does not fit is left to the
//! next sweep, whose rounds go on where this one's ended. One sweeper at a time, by a lease. With no active tuning it makes
//! one query a minute, since the lease and the cursors lie in the partition of the active tunings, and one listing an
//! hour. Must never let one tuning that cannot be read keep the others from their turn.

mod lease;
mod limits;
mod look;
mod meter;
mod orphans;
mod round;
mod run;
mod tuning;

use std::sync::Arc;

use wire::stored::SweepCursor;

use crate::perform::Actuator;
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, TrainingJobListing, TrainingJobs, TrainingJobsError};
use crate::ports::{Bus, Timer};
use crate::store::{Store, StoreError};

pub use limits::{Limits, PerSort, Rate, Sort};
pub use meter::Metered;

use lease::Lease;
use round::FirstPage;
use run::Run;

/// Shares of a sweep's time, in percent from its beginning: nothing of a kind is begun after its share, so that what comes
/// later has some time too. The listing of jobs that have come of age.
const LIST_NEW_SHARE: i64 = 15;
/// The round of the active tunings.
const HEAL_SHARE: i64 = 35;
/// Bills and logs.
const BILLS_SHARE: i64 = 55;
/// The listing of all running jobs.
const LIST_SHARE: i64 = 65;
/// Starts.
const STARTS_SHARE: i64 = 80;
/// All of it.
const WHOLE: i64 = 100;

/// The use case with what it needs.
#[derive(Debug)]
pub struct Sweeper<T, J, B, C> {
    store: Arc<Store<T>>,
    /// Performs what was left undone, under this sweep's meter.
    actuator: Actuator<T, Metered<J, C>, B, C>,
    limits: Limits,
    owner: String,
}

/// Actions that were settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settled {
    /// Starts of jobs.
    pub starts: usize,
    /// Stops.
    pub stops: usize,
    /// Bills read.
    pub bills: usize,
    /// Logs read from their beginning.
    pub reads: usize,
    /// Notices.
    pub notices: usize,
    /// Askings and returns of money.
    pub grants: usize,
}

/// What became of the actions that a sweep took up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Settled now.
    pub done: usize,
    /// Of these, training jobs started.
    pub started: usize,
    /// And stopped.
    pub stopped: usize,
    /// Put off again.
    pub put_off: usize,
}

/// What a sweep did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Swept {
    /// Another sweeper is at it: nothing was done.
    pub busy: bool,
    /// The lease ran out and passed to another sweeper.
    pub lost: bool,
    /// Tunings visited.
    pub tunings: usize,
    /// Silent jobs looked at.
    pub looked: usize,
    /// Actions settled.
    pub settled: Settled,
    /// Actions that are due and silent jobs, left to the next sweep (as far as this one saw them).
    pub left: usize,
    /// Where the next sweep goes on.
    pub cursor: SweepCursor,
    /// Calls of the training service.
    pub calls: PerSort<u32>,
    /// Tunings and listed jobs that could not be read or written; the next sweep tries again.
    pub failed: usize,
    /// Why the last of these could not be.
    pub last_error: Option<StoreError>,
    /// The first of these that concern a tuning: which, and why.
    pub failures: Vec<(String, StoreError)>,
    /// Actions by what became of them.
    pub performed: Counts,
    /// Tunings with a decision that the event bus was not told of, and why.
    pub unpublished: Vec<(String, String)>,
    /// Tunings without a step for ten minutes of which something that is stored waits for the decider.
    pub stuck: usize,
    /// Actions that nobody had taken up before this sweep, though they were ordered a while ago.
    pub missed: usize,
    /// Bills that were booked before all of their jobs' logs could be read: the tunings, and the actions.
    pub logs_cut: Vec<(String, String)>,
    /// Running jobs that no action row knows, stopped.
    pub orphans_stopped: usize,
    /// Why running jobs could not be listed or an orphan not be stopped.
    pub listing_error: Option<TrainingJobsError>,
}

impl<T, J, B, C> Sweeper<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs + TrainingJobListing,
    B: Bus,
    C: Timer + Clone,
{
    /// A sweeper that performs with what `actuator` has. `owner` names who sweeps and never makes two sweeps at once: a
    /// lease in its own name is left from before it was restarted.
    pub fn new(actuator: Actuator<T, J, B, C>, limits: Limits, owner: String) -> Self {
        let Actuator {
            store,
            jobs,
            bus,
            clock,
            stack,
            log_lag_ms,
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
            stack,
            log_lag_ms,
            claim_ms,
            defer_ms,
            abandoned_ms,
            monthly_cap,
            place,
        };
        Self { store, actuator, limits, owner }
    }

    /// One sweep. What fails for one tuning is told and left to the next sweep; an error means that nothing was done.
    pub async fn sweep(&self) -> Result<Swept, StoreError> {
        if ::tuning::planted!(LoseSweep) {
            return Ok(Swept::default());
        }
        let now = self.actuator.clock.now();
        let page = self.store.table.query(&round::query(None)).await?;
        let mut lease = Lease::read(&page)?;
        let first = FirstPage::of(&page);
        let idle = first.ids.is_empty() && first.next.is_none();
        let mut swept = Swept { cursor: lease.row.cursor.clone(), ..Swept::default() };
        if idle && swept.cursor.listing.is_none() && now < swept.cursor.listing_due {
            return Ok(swept);
        }
        let was_left = lease.was_left();
        let held = lease.is_held(&self.owner, now);
        if held || !lease.take(&self.store, &self.owner, now.saturating_add(self.limits.lease_ms)).await? {
            swept.busy = true;
            return Ok(swept);
        }
        let until = now.saturating_add(self.limits.time_ms);
        self.actuator.jobs.begin(self.limits.calls, now, until);
        let mut run = Run::new(now, first, lease, swept);
        if !idle {
            self.list_new(&mut run).await;
        }
        self.heal(&mut run, was_left).await;
        self.read_bills(&mut run).await;
        self.list_all(&mut run, if idle { WHOLE } else { LIST_SHARE }).await;
        self.make_starts(&mut run).await;
        self.look(&mut run).await;
        self.publish(&mut run).await;
        Ok(self.end(run).await)
    }

    /// Tells the event bus of what this sweep has to tell.
    async fn publish(&self, run: &mut Run) {
        for (id, news) in std::mem::take(&mut run.news) {
            let published = if self.goes_on(run, WHOLE) {
                self.actuator.publish(&id, news).await
            } else {
                Err("no time was left".to_owned())
            };
            run.swept.unpublished.extend(published.err().map(|why| (id, why)));
        }
    }

    /// Whether the sweep may begin something that belongs into the first `share` percent of its time.
    fn goes_on(&self, run: &Run, share: i64) -> bool {
        let until = run.begun.saturating_add(self.limits.time_ms.saturating_mul(share) / WHOLE);
        !run.swept.lost && self.actuator.clock.now() < until
    }

    /// Stores the place after some work, so that a sweep that dies is not begun from the same place again and again.
    async fn save(&self, run: &mut Run) {
        match run.lease.store(&self.store, &run.swept.cursor).await {
            Ok(held) => run.swept.lost |= !held,
            Err(error) => run.swept.last_error = Some(error),
        }
    }

    async fn end(&self, mut run: Run) -> Swept {
        if !run.swept.lost {
            match run.lease.give_back(&self.store, &run.swept.cursor).await {
                Ok(held) => run.swept.lost |= !held,
                Err(error) => run.swept.last_error = Some(error),
            }
        }
        run.swept.left = run.swept.left.saturating_add(run.silent.saturating_sub(run.swept.looked));
        run.swept.calls = self.actuator.jobs.used();
        run.swept
    }
}
