//! Stops orphans: running training jobs of this stack that have no action row, or whose action row belongs to another
//! decision. They cost money, and nothing else stops them.
//!
//! There are two listings. Both start with the oldest job and continue by creation time, so no page token is stored.
//! While a tuning is active, every sweep lists the jobs that have reached the minimum age since the last sweep. This
//! takes one or two pages, however many jobs run. Once an hour all running jobs are listed, over several sweeps if
//! necessary. This finds jobs that became orphans later, and orphans from a time without an active tuning. Both
//! listings assume that a job is visible in a listing before it reaches the minimum age.

use std::collections::BTreeSet;

use tuning::log::ruling::Order;
use tuning::unit::time::{Millis, Time};
use wire::names::{TAG_DECISION, TAG_STACK, decision, parse_training_job_name};
use wire::stored::{self, ActionRow, ActionStatus, FullListing};

use super::limits::CallKind;
use super::run::Run;
use super::{LIST_NEW_SHARE, Sweeper};
use crate::ports::table::{Table, TableError};
use crate::ports::training::{Listed, TrainingJobListing, TrainingJobs, TrainingJobsError, TrainingService};
use crate::ports::{Bus, Timer};
use crate::store::StoreError;

/// Minimum age of an orphan. A younger job may belong to an actuator that has not marked its row yet.
const ORPHAN_AGE: Millis = Millis::from_seconds(600);
/// Time between two listings of all running jobs: an hour, less half of a sweep's interval, so that a sweep
/// slightly before the hour does not delay the listing by a minute.
const LISTING_EVERY: Millis = Millis::from_seconds(3_570);

/// The result of checking a listed job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Ordered and not concluded, or not of this stack.
    Expected,
    /// Of this stack, and no decider waits for it.
    Orphan,
    /// The check failed and is retried.
    Unknown,
    /// The check needs a call that this sweep may no longer make.
    NoMoreCalls,
}

/// A pass over running jobs.
#[derive(Debug)]
struct Pass {
    /// Jobs created before this time were checked.
    upto: Time,
    /// Creation time of the first job whose check or stop failed.
    first_gap: Option<Time>,
    /// When jobs that are too young, or whose check failed, must be checked again.
    again: Option<Time>,
    /// Whether the pass reached the end of the listing.
    whole: bool,
    /// Whether the pass ended because no calls were left. The next sweep continues with the same job.
    cut: bool,
}

impl Pass {
    fn gap(&mut self, job: &Listed, again: Time) {
        self.first_gap.get_or_insert(job.created);
        self.see_again(again);
    }

    fn see_again(&mut self, again: Time) {
        self.again = Some(self.again.map_or(again, |known| known.min(again)));
    }
}

impl<T: Table, J: TrainingService, B: Bus, C: Timer + Clone> Sweeper<T, J, B, C> {
    /// Stops orphans among the jobs that have reached the minimum age since the last listing.
    pub(super) async fn list_new(&self, run: &mut Run) {
        let now = self.now();
        // Older jobs are left to the hourly listing.
        let from = run.swept.cursor.checked.max(now - ORPHAN_AGE - LISTING_EVERY);
        let pass = self.pass(run, LIST_NEW_SHARE, from, false).await;
        let upto = if pass.whole { pass.upto.max(now - ORPHAN_AGE) } else { pass.upto };
        run.swept.cursor.checked = pass.first_gap.map_or(upto, |gap| gap.min(upto));
    }

    /// Stops orphans among all running jobs, if this listing is due or was begun by an earlier sweep.
    pub(super) async fn list_all(&self, run: &mut Run, share: u32) {
        let now = self.now();
        let due = now >= run.swept.cursor.listing_due;
        let begun = || due.then_some(FullListing { begun: now, from: Time::EPOCH, again: None, gaps: false });
        let Some(mut listing) = run.swept.cursor.listing.or_else(begun) else { return };
        let pass = self.pass(run, share, listing.from, true).await;
        listing.from = pass.upto;
        listing.again = listing.again.into_iter().chain(pass.again).min();
        listing.gaps |= pass.first_gap.is_some();
        run.listed_all = pass.whole;
        let cursor = &mut run.swept.cursor;
        cursor.listing = (!pass.whole).then_some(listing);
        if pass.whole {
            let usual = listing.begun + LISTING_EVERY;
            cursor.listing_due = listing.again.map_or(usual, |again| again.min(usual));
            if !listing.gaps {
                cursor.checked = cursor.checked.max(listing.begun - ORPHAN_AGE);
            }
        }
    }

    /// Checks running jobs created since `from`. With `all`, also checks jobs below the minimum age, to learn when they
    /// reach it.
    async fn pass(&self, run: &mut Run, share: u32, from: Time, all: bool) -> Pass {
        let mut pass = Pass { upto: from, first_gap: None, again: None, whole: false, cut: false };
        let mut foreign = BTreeSet::new();
        let mut next: Option<String> = None;
        while self.has_time(run, share) && self.actuator.jobs.turn(CallKind::List).await {
            let page = match self.actuator.jobs.in_progress(from, next.as_deref()).await {
                Ok(page) => page,
                Err(error) => {
                    run.swept.listing_error = Some(error);
                    return pass;
                }
            };
            let now = self.now();
            for job in &page.items {
                let mature_at = job.created + ORPHAN_AGE;
                if mature_at > now && !all {
                    pass.whole = true;
                    return pass;
                }
                if !self.has_time(run, share) {
                    return pass;
                }
                let found = match self.classify(job, &mut foreign).await {
                    Ok(found) => found,
                    Err(error) => {
                        let passing = matches!(
                            error,
                            StoreError::Table(TableError::Throttled | TableError::Unavailable(_))
                        );
                        run.failed(error);
                        // An unreadable row would block every sweep. The hourly listing checks the job again.
                        if passing { Found::Unknown } else { Found::Expected }
                    }
                };
                match found {
                    Found::Expected => {}
                    Found::Orphan if mature_at > now => pass.see_again(mature_at),
                    Found::Orphan => self.stop_orphan(run, &mut pass, job).await,
                    Found::Unknown => pass.gap(job, now.max(mature_at)),
                    Found::NoMoreCalls => return pass,
                }
                if pass.cut {
                    return pass;
                }
                pass.upto = pass.upto.max(job.created);
            }
            next = page.next;
            if next.is_none() {
                pass.whole = true;
                return pass;
            }
        }
        pass
    }

    async fn stop_orphan(&self, run: &mut Run, pass: &mut Pass, job: &Listed) {
        match self.actuator.jobs.stop(&job.name).await {
            Ok(()) => run.swept.orphans_stopped += 1,
            Err(TrainingJobsError::AlreadyEnded(_) | TrainingJobsError::NotFound(_)) => {}
            Err(TrainingJobsError::Throttled) => pass.cut = true,
            Err(error) => {
                let refused = matches!(error, TrainingJobsError::Refused { .. });
                run.swept.listing_error = Some(error);
                // The next hourly listing tries this stop again.
                if !refused {
                    pass.gap(job, self.now());
                }
            }
        }
    }

    /// Classifies a listed job. `foreign` contains tunings that only other stacks have. One of their jobs is enough to
    /// skip the others.
    async fn classify(&self, job: &Listed, foreign: &mut BTreeSet<String>) -> Result<Found, StoreError> {
        let Some((id, key)) = parse_training_job_name(&job.name) else { return Ok(Found::Expected) };
        if foreign.contains(&id) {
            return Ok(Found::Expected);
        }
        let row = self.store.table.get(&stored::action_key(&id, &format!("start-{key}"))).await?;
        let known = row.is_some();
        let row = row.as_ref().map(ActionRow::read).transpose()?;
        let mut ordered = None;
        if let Some(row) = row.filter(|row| row.status != ActionStatus::Cancelled) {
            // It was ordered. But if it was concluded, no decider waits for it any more.
            let concluded = self.store.table.get(&stored::job_key(&id, key)).await?;
            if concluded.is_none() {
                // An open start has not created or adopted this job yet.
                if row.status == ActionStatus::Done {
                    return Ok(Found::Expected);
                }
                ordered = decision_of(&row.order);
            }
        }
        // A job of another stack or program may have a name like ours.
        match self.actuator.jobs.tags(&job.name).await {
            Ok(tags) if tags.get(TAG_STACK) == Some(&self.actuator.stack) => {
                let is_ordered = |ordered| tags.get(TAG_DECISION).is_none_or(|decision| *decision == ordered);
                Ok(if ordered.is_some_and(is_ordered) { Found::Expected } else { Found::Orphan })
            }
            Ok(_) => {
                // A foreign job under the ID of a tuning of ours says nothing about the other jobs under this ID.
                if !known && self.store.tuning(&id).await?.is_none() {
                    foreign.insert(id);
                }
                Ok(Found::Expected)
            }
            Err(TrainingJobsError::NotFound(_) | TrainingJobsError::AlreadyEnded(_)) => Ok(Found::Expected),
            Err(TrainingJobsError::Throttled) => Ok(Found::NoMoreCalls),
            Err(error) => {
                let refused = matches!(error, TrainingJobsError::Refused { .. });
                Ok(if refused { Found::Expected } else { Found::Unknown })
            }
        }
    }
}

/// Returns the tag of the job that `order` starts.
fn decision_of(order: &Order) -> Option<String> {
    let Order::Start { job, configuration, limits, launch, .. } = order else { return None };
    Some(decision(*job, configuration, *limits, *launch))
}
