//! Stops running training jobs of this stack that no action row knows: they cost money and nobody would ever stop them.

use wire::names::{TAG_STACK, parse_training_job_name};
use wire::stored::{self, ActionRow, ActionStatus};

use super::{Sweeper, skip};
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, Listed, TrainingJobListing, TrainingJobs};
use crate::ports::{Bus, Clock, Millis};
use crate::store::StoreError;

/// A job younger than this may have been created by an actuator that has not yet marked its row.
const ORPHAN_AGE_MS: i64 = 600_000;
/// Pages of running jobs looked at in one sweep.
const PAGES_MAX: usize = 100;

impl<T, J, B, C> Sweeper<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs + TrainingJobListing,
    B: Bus,
    C: Clock,
{
    /// How many were stopped, and whether all running jobs were seen.
    pub(super) async fn stop_orphans(&self, now: Millis) -> Result<(usize, bool), StoreError> {
        let mut stopped = 0;
        let mut next: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let Some(page) = skip(self.actuator.jobs.in_progress(next.as_deref()).await) else {
                return Ok((stopped, false));
            };
            for job in &page.items {
                if self.is_orphan(job, now).await? && skip(self.actuator.jobs.stop(&job.name).await).is_some()
                {
                    stopped += 1;
                }
            }
            next = page.next;
            if next.is_none() {
                return Ok((stopped, true));
            }
        }
        Ok((stopped, false))
    }

    async fn is_orphan(&self, job: &Listed, now: Millis) -> Result<bool, StoreError> {
        if now.saturating_sub(job.created) < ORPHAN_AGE_MS {
            return Ok(false);
        }
        let Some((id, key)) = parse_training_job_name(&job.name) else { return Ok(false) };
        let row = self.store.table.get(&stored::action_key(&id, &format!("start-{key}"))).await?;
        let row = row.as_ref().map(ActionRow::read).transpose()?;
        let ordered = row.is_some_and(|row| row.status != ActionStatus::Cancelled);
        // Ordered but concluded: its name is known, yet nobody waits for it any more.
        let awaited = match self.store.load(&id).await? {
            Some(loaded) => loaded.state.job(key).is_some(),
            None => false,
        };
        if (ordered && awaited) || tuning::planted!(OrphanNeverStopped) {
            return Ok(false);
        }
        // Somebody else's job may be named like ours.
        let tags = skip(self.actuator.jobs.tags(&job.name).await);
        let ours = tags.is_some_and(|tags| tags.get(TAG_STACK) == Some(&self.actuator.stack));
        Ok(ours || tuning::planted!(ForeignJobStopped))
    }
}
