//! Reads how long the instances of an ended job were kept, and lets them go.
//!
//! The service tells nobody when a warm pool ends, so it is asked. Must never take a pool for over while it may still
//! cost money: what is reserved for it is free afterwards.

use tuning::definition::Definition;
use tuning::fact::{Fact, JobKey};
use tuning::limits::POOL_ALLOWANCE_SECONDS;
use tuning::pool::Retained;
use wire::names::training_job_name;

use super::{Actuator, Outcome, later};
use crate::ports::table::Table;
use crate::ports::training::{Description, JobLogs, TrainingJobs, TrainingJobsError};
use crate::ports::{Bus, Clock, Millis};
use crate::store::StoreError;

impl<T, J, B, C> Actuator<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs,
    B: Bus,
    C: Clock,
{
    /// Looks at the instances kept after `job`; with `last` until they are gone.
    pub(super) async fn read_pool(
        &self,
        id: &str,
        job: JobKey,
        n: u32,
        last: bool,
    ) -> Result<Outcome, StoreError> {
        let Some(tuning) = self.store.tuning(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let described = self.jobs.describe(&training_job_name(id, job)).await;
        Ok(match self.retained(&tuning.definition, described) {
            Ok(Some(retained)) => self.pool_over(job, retained),
            Ok(None) if last => Outcome::Later("its instances are still kept".to_owned()),
            Ok(None) => {
                Outcome::Done(vec![self.fact(format!("pool-seen#{job}#{n}"), Fact::PoolSeen { job, n })])
            }
            Err(outcome) => outcome,
        })
    }

    /// Lets the instances kept after `job` go, and reads how long they were kept.
    pub(super) async fn release_pool(&self, id: &str, job: JobKey) -> Result<Outcome, StoreError> {
        let Some(tuning) = self.store.tuning(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let name = training_job_name(id, job);
        let described = self.jobs.describe(&name).await;
        match self.retained(&tuning.definition, described) {
            Ok(Some(retained)) => return Ok(self.pool_over(job, retained)),
            Ok(None) => {}
            Err(outcome) => return Ok(outcome),
        }
        Ok(match self.jobs.release(&name).await {
            Ok(()) => Outcome::Later("its instances are being let go".to_owned()),
            // Whatever the service says, they cost money until they are gone.
            Err(error) => later(&error).unwrap_or_else(|| Outcome::Later(error.to_string())),
        })
    }

    fn pool_over(&self, job: JobKey, retained: Retained) -> Outcome {
        Outcome::Done(vec![self.fact(format!("pool-over#{job}"), Fact::PoolOver { job, retained })])
    }

    /// How long they were kept in the end; `None` while they may still be.
    fn retained(
        &self,
        definition: &Definition,
        described: Result<Description, TrainingJobsError>,
    ) -> Result<Option<Retained>, Outcome> {
        match described {
            Ok(description) => Ok(retained(definition, &description, self.clock.now())),
            // A job cannot be deleted while its instances are kept.
            Err(TrainingJobsError::NotFound(_)) => Ok(Some(Retained::Unknown)),
            Err(error) => Err(later(&error).unwrap_or_else(|| Outcome::Later(error.to_string()))),
        }
    }
}

fn retained(definition: &Definition, description: &Description, now: Millis) -> Option<Retained> {
    let Some(pool) = &description.warm_pool else {
        // The service may be late to show what it keeps. Long after the time for it, it keeps nothing.
        let seconds = definition.job.keep_alive_seconds.saturating_add(POOL_ALLOWANCE_SECONDS);
        let length = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000);
        let over = now >= description.ended?.saturating_add(length);
        return over.then_some(Retained::Seconds(0));
    };
    match pool.status.as_str() {
        // Who took them pays for them.
        "Terminated" | "Reused" | "InUse" => pool.retained_seconds.map(Retained::Seconds),
        _ => None,
    }
}
