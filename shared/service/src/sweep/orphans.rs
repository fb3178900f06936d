//! Stops running training jobs of this stack that no action row knows: they cost money and nobody would ever stop them.
//!
//! Two listings, both oldest first and both going on by the time of creation, so that no page token is kept. While a tuning
//! is active, every sweep lists the jobs that have come of age since the last one, which takes a page or two however many
//! run. Once an hour all running jobs are listed, over several sweeps if need be: it finds what became unknown later, and
//! what nobody looked for while nothing was active. Assumes that a job shows in a listing before it is of age.

use std::collections::BTreeSet;

use wire::names::{TAG_STACK, parse_training_job_name};
use wire::stored::{self, ActionRow, ActionStatus, FullListing};

use super::limits::Sort;
use super::run::Run;
use super::{LIST_NEW_SHARE, Sweeper};
use crate::ports::table::{Table, TableError};
use crate::ports::training::{JobLogs, Listed, TrainingJobListing, TrainingJobs, TrainingJobsError};
use crate::ports::{Bus, Millis, Timer};
use crate::store::StoreError;

/// A job younger than this may have been created by an actuator that has not yet marked its row.
const ORPHAN_AGE_MS: Millis = 600_000;
/// Time between two listings of all running jobs: an hour, less half a sweep's interval, so that it is not missed by a
/// moment and made a minute late.
const LISTING_EVERY_MS: Millis = 3_570_000;

/// What a job in a listing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Ordered and awaited, or not of this stack.
    Fine,
    /// Of this stack, and nobody waits for it.
    Orphan,
    /// It could not be learned now.
    Unknown,
    /// It takes a call that this sweep may not make any more.
    NoMoreCalls,
}

/// A pass over running jobs.
#[derive(Debug)]
struct Pass {
    /// Jobs created before this were looked at.
    upto: Millis,
    /// The first job that could not be dealt with.
    first_gap: Option<Millis>,
    /// When jobs that are too young now, or could not be dealt with, must be seen again.
    again: Option<Millis>,
    /// Whether it came to the end.
    whole: bool,
    /// Whether it ended for want of calls: the next sweep goes on with the same job.
    cut: bool,
}

impl Pass {
    fn gap(&mut self, job: &Listed, again: Millis) {
        self.first_gap.get_or_insert(job.created);
        self.see_again(again);
    }

    fn see_again(&mut self, again: Millis) {
        self.again = Some(self.again.map_or(again, |known| known.min(again)));
    }
}

impl<T, J, B, C> Sweeper<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs + TrainingJobListing,
    B: Bus,
    C: Timer + Clone,
{
    /// Stops orphans among the jobs that have come of age since this was last done.
    pub(super) async fn list_new(&self, run: &mut Run) {
        let now = self.now();
        // What is older is the hourly listing's.
        let from = run.swept.cursor.checked.max(now - ORPHAN_AGE_MS - LISTING_EVERY_MS);
        let pass = self.pass(run, LIST_NEW_SHARE, from, false).await;
        let upto = if pass.whole { pass.upto.max(now - ORPHAN_AGE_MS) } else { pass.upto };
        run.swept.cursor.checked = pass.first_gap.map_or(upto, |gap| gap.min(upto));
    }

    /// Stops orphans among all running jobs, if it is time for that or it is under way.
    pub(super) async fn list_all(&self, run: &mut Run, share: i64) {
        let now = self.now();
        let due = now >= run.swept.cursor.listing_due;
        let begun = || due.then_some(FullListing { begun: now, from: 0, again: None, gaps: false });
        let Some(mut listing) = run.swept.cursor.listing.or_else(begun) else { return };
        let pass = self.pass(run, share, listing.from, true).await;
        listing.from = pass.upto;
        listing.again = listing.again.into_iter().chain(pass.again).min();
        listing.gaps |= pass.first_gap.is_some();
        let cursor = &mut run.swept.cursor;
        cursor.listing = (!pass.whole).then_some(listing);
        if pass.whole {
            let usual = listing.begun.saturating_add(LISTING_EVERY_MS);
            cursor.listing_due = listing.again.map_or(usual, |again| again.min(usual));
            if !listing.gaps {
                cursor.checked = cursor.checked.max(listing.begun.saturating_sub(ORPHAN_AGE_MS));
            }
        }
    }

    /// Looks at running jobs created since `from`; `all` = also at those that are not of age, to know when they will be.
    async fn pass(&self, run: &mut Run, share: i64, from: Millis, all: bool) -> Pass {
        let mut pass = Pass { upto: from, first_gap: None, again: None, whole: false, cut: false };
        let mut foreign = BTreeSet::new();
        let mut next: Option<String> = None;
        self.actuator.jobs.take_refused();
        while self.goes_on(run, share) && self.actuator.jobs.turn(Sort::List).await {
            let page = match self.actuator.jobs.in_progress(from, next.as_deref()).await {
                Ok(page) => page,
                Err(error) => {
                    run.swept.listing_error = Some(error);
                    return pass;
                }
            };
            let now = self.now();
            for job in &page.items {
                let of_age = job.created.saturating_add(ORPHAN_AGE_MS);
                if of_age > now && !all {
                    pass.whole = true;
                    return pass;
                }
                if !self.goes_on(run, share) {
                    return pass;
                }
                let found = match self.what_is(job, &mut foreign).await {
                    Ok(found) => found,
                    Err(error) => {
                        let passing = matches!(
                            error,
                            StoreError::Table(TableError::Throttled | TableError::Unavailable(_))
                        );
                        run.failed(error);
                        // A row that cannot be read would hold up every sweep: the hourly listing comes back to it.
                        if passing { Found::Unknown } else { Found::Fine }
                    }
                };
                match found {
                    Found::Fine => {}
                    Found::Orphan if of_age > now => pass.see_again(of_age),
                    Found::Orphan => self.stop_orphan(run, &mut pass, job).await,
                    Found::Unknown => pass.gap(job, now.max(of_age)),
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
            Err(_) if self.actuator.jobs.take_refused() => pass.cut = true,
            Err(error) => {
                let refused = matches!(error, TrainingJobsError::Refused { .. });
                run.swept.listing_error = Some(error);
                // What is refused is tried again with the next hourly listing.
                if !refused {
                    pass.gap(job, self.now());
                }
            }
        }
    }

    /// What a listed job is. `foreign` are tunings that only other stacks have: one of their jobs tells for
    /// all.
    async fn what_is(&self, job: &Listed, foreign: &mut BTreeSet<String>) -> Result<Found, StoreError> {
        let Some((id, key)) = parse_training_job_name(&job.name) else { return Ok(Found::Fine) };
        if foreign.contains(&id) {
            return Ok(Found::Fine);
        }
        let row = self.store.table.get(&stored::action_key(&id, &format!("start-{key}"))).await?;
        let known = row.is_some();
        let row = row.as_ref().map(ActionRow::read).transpose()?;
        if row.is_some_and(|row| row.status != ActionStatus::Cancelled) {
            // Ordered; but once concluded, nobody waits for it any more.
            let concluded = self.store.table.get(&stored::job_key(&id, key)).await?;
            if concluded.is_none() {
                return Ok(Found::Fine);
            }
        }
        // Somebody else's job may be named like ours.
        match self.actuator.jobs.tags(&job.name).await {
            _ if tuning::planted!(OrphanNeverStopped) => Ok(Found::Fine),
            Ok(tags)
                if tags.get(TAG_STACK) == Some(&self.actuator.stack)
                    || tuning::planted!(ForeignJobStopped) =>
            {
                Ok(Found::Orphan)
            }
            Ok(_) => {
                // Somebody's job under the id of a tuning of ours tells nothing of the others under it.
                if !known && self.store.tuning(&id).await?.is_none() {
                    foreign.insert(id);
                }
                Ok(Found::Fine)
            }
            Err(TrainingJobsError::NotFound(_) | TrainingJobsError::AlreadyEnded(_)) => Ok(Found::Fine),
            Err(_) if self.actuator.jobs.take_refused() => Ok(Found::NoMoreCalls),
            Err(error) => {
                let refused = matches!(error, TrainingJobsError::Refused { .. });
                Ok(if refused { Found::Fine } else { Found::Unknown })
            }
        }
    }
}
