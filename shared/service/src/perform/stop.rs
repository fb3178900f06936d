//! Stops a training job; one that was never created is called off instead.

use tuning::fact::{Fact, JobKey};
use wire::names::training_job_name;
use wire::stored::{self, ActionRow, ActionStatus};

use super::{Actuator, Effect, Outcome, later};
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, TrainingJobs, TrainingJobsError};
use crate::ports::{Bus, Clock};
use crate::store::StoreError;

impl<T, J, B, C> Actuator<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs,
    B: Bus,
    C: Clock,
{
    pub(super) async fn stop(&self, id: &str, job: JobKey) -> Result<Outcome, StoreError> {
        let accepted = || vec![self.fact(format!("stop-accepted#{job}"), Fact::StopAccepted { job })];
        match self.jobs.stop(&training_job_name(id, job)).await {
            Ok(()) => Ok(Outcome::Done(accepted())),
            // A job that has ended needs no stop; its end will be seen. Nobody is told that we stopped it.
            Err(TrainingJobsError::AlreadyEnded(_)) => Ok(Outcome::DoneAs(Effect::Other, accepted())),
            Err(TrainingJobsError::NotFound(_)) => self.call_off(id, job).await,
            Err(TrainingJobsError::Throttled) if tuning::planted!(StopFailureIsDone) => {
                Ok(Outcome::Done(accepted()))
            }
            // The stop stays owed whatever the service says: the job costs money.
            Err(error) => Ok(later(&error).unwrap_or_else(|| Outcome::Later(error.to_string()))),
        }
    }

    /// Cancels the start of a job that does not exist, so that it never will.
    async fn call_off(&self, id: &str, job: JobKey) -> Result<Outcome, StoreError> {
        let key = stored::action_key(id, &format!("start-{job}"));
        let Some(item) = self.store.table.get(&key).await? else {
            return Ok(Outcome::Later("the start is not in the table".to_owned()));
        };
        let mut start = ActionRow::read(&item)?;
        let now = self.clock.now();
        // A create whose answer never came may still show; so may one whose actuator is frozen.
        let unsure =
            start.claimed_until.saturating_add(self.abandoned_ms) > now && !tuning::planted!(CallOffAtOnce);
        let cancelled = match start.status {
            ActionStatus::Cancelled => true,
            ActionStatus::Done if tuning::planted!(CallOffStarted) => true,
            ActionStatus::Pending | ActionStatus::Performing if unsure => false,
            ActionStatus::Pending | ActionStatus::Performing => {
                let before = start.revision;
                start.status = ActionStatus::Cancelled;
                start.revision += 1;
                self.put_row(id, &start, before).await?
            }
            // It was accepted, so it will be found; or refused, and the refusal is on its way.
            ActionStatus::Done => false,
        };
        if !cancelled {
            return Ok(Outcome::Later("the job is being started".to_owned()));
        }
        let fact = self.fact(format!("never-started#{job}"), Fact::JobNeverStarted { job });
        Ok(Outcome::Done(vec![fact]))
    }
}
