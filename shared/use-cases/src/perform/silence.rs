//! Checks a silent job: reads its state and its stored log.
//!
//! The decider stops the job for its silence only if this check finds no value. Therefore, all facts found are stored
//! before the fact that the check is complete.

use tuning::log::fact::{Fact, JobKey};
use tuning::unit::time::Time;
use wire::names::training_job_name;

use super::bill::state_fact;
use super::log::{Log, Read};
use super::{Actuator, Outcome, later};
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, TrainingJobs};
use crate::ports::{Bus, Timer};
use crate::store::StoreError;

impl<T: Table, J: TrainingJobs + JobLogs, B: Bus, C: Timer> Actuator<T, J, B, C> {
    /// Reads at most `pages` pages of the log.
    pub(super) async fn check_silence(
        &self,
        id: &str,
        job: JobKey,
        since: Time,
        pages: usize,
    ) -> Result<Outcome, StoreError> {
        let Some(tuning) = self.store.tuning(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let name = training_job_name(id, job);
        let description = match self.jobs.describe(&name).await {
            Ok(description) => description,
            Err(error) => return Ok(later(&error).unwrap_or_else(|| Outcome::Later(error.to_string()))),
        };
        let log = Log { actuator: self, tuning: &tuning, name: &name, job };
        match log.since(since, pages).await {
            // The unread part may contain a value, and a job is never stopped on a guess.
            Ok(Read { is_whole: false, .. }) => {
                Ok(Outcome::Later("the log is too long to read in one batch".to_owned()))
            }
            Ok(Read { mut facts, .. }) => {
                facts.push(state_fact(job, &description));
                facts.push(self.fact(format!("silence-seen#{since}"), Fact::SilenceSeen { job, since }));
                Ok(Outcome::Done(facts))
            }
            Err(error) => Ok(later(&error).unwrap_or_else(|| Outcome::Later(error.to_string()))),
        }
    }
}
