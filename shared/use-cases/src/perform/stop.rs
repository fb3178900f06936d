//! Stops a training job, or cancels its start if the job was never created.

use tuning::log::fact::{Fact, JobKey};
use tuning::unit::time::Time;
use wire::names::training_job_name;
use wire::stored::{self, ActionRow, ActionStatus};

use super::{Actuator, Effect, Outcome, later};
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, TrainingJobs, TrainingJobsError};
use crate::ports::{Bus, Timer};
use crate::store::StoreError;

impl<T: Table, J: TrainingJobs + JobLogs, B: Bus, C: Timer> Actuator<T, J, B, C> {
    pub(super) async fn stop(&self, id: &str, job: JobKey) -> Result<Outcome, StoreError> {
        let accepted = || vec![self.fact(format!("stop-accepted#{job}"), Fact::StopAccepted { job })];
        let asked = self.clock.now();
        match self.jobs.stop(&training_job_name(id, job)).await {
            Ok(()) => Ok(Outcome::Done(accepted())),
            // The job has ended by itself. Its end will be seen, and no stop of ours is reported.
            Err(TrainingJobsError::AlreadyEnded(_)) => Ok(Outcome::DoneAs(Effect::Other, accepted())),
            Err(TrainingJobsError::NotFound(_)) => self.cancel_start(id, job, asked).await,
            // Whatever the error, the stop is retried: the job costs money.
            Err(error) => Ok(later(&error).unwrap_or_else(|| Outcome::Later(error.to_string()))),
        }
    }

    /// Cancels the start of a job that did not exist at `asked`, so that it can never be created.
    async fn cancel_start(&self, id: &str, job: JobKey, asked: Time) -> Result<Outcome, StoreError> {
        let key = stored::action_key(id, &format!("start-{job}"));
        let Some(item) = self.store.table.get(&key).await? else {
            return Ok(Outcome::Later("the order to start the job is not in the table".to_owned()));
        };
        let mut start = ActionRow::read(&item)?;
        // A create whose answer was lost may still take effect, and so may that of a frozen actuator. Only an answer to
        // a question after that time shows that the job does not exist: this function may have been frozen since.
        let unsure = start.claimed_until + self.abandoned_ms > asked;
        let cancelled = match start.status {
            ActionStatus::Cancelled => true,
            // A taken name proves that an earlier create succeeded, although the job is invisible or deleted. The start
            // settles which.
            ActionStatus::Pending | ActionStatus::Performing if unsure || start.name_taken => false,
            ActionStatus::Pending | ActionStatus::Performing => {
                let before = start.revision;
                start.status = ActionStatus::Cancelled;
                start.revision += 1;
                self.put_row(id, &start, before).await?
            }
            // The create succeeded, so a later stop will find the job. Or it was refused, and the refusal is already
            // stored.
            ActionStatus::Done => false,
        };
        if !cancelled {
            return Ok(Outcome::Later("the job is being started".to_owned()));
        }
        let fact = self.fact(format!("never-started#{job}"), Fact::JobNeverStarted { job });
        Ok(Outcome::Done(vec![fact]))
    }
}
