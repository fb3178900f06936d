//! Reads how long the instances of an ended job were kept, and releases them.
//!
//! The training service sends no event when a warm pool ends, so it must be polled. A pool that may still cost money
//! must never be reported as over, because the report frees its reservation.

use tuning::definition::JobTerms;
use tuning::log::fact::{Fact, JobKey};
use tuning::log::pool::Retained;
use tuning::unit::limits::POOL_ALLOWANCE_SECONDS;
use tuning::unit::time::{Millis, Time};
use wire::names::training_job_name;

use super::{Actuator, Outcome, later};
use crate::ports::table::Table;
use crate::ports::training::{Description, JobLogs, TrainingJobs, TrainingJobsError};
use crate::ports::{Bus, Timer};
use crate::store::StoreError;

impl<T: Table, J: TrainingJobs + JobLogs, B: Bus, C: Timer> Actuator<T, J, B, C> {
    /// Reads the state of the instances kept after `job`. With `last`, retries until they are released.
    pub(super) async fn read_pool(
        &self,
        id: &str,
        job: JobKey,
        n: u32,
        last: bool,
    ) -> Result<Outcome, StoreError> {
        let Some(tuning) = self.store.tuning(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let described = self.jobs.describe(&training_job_name(id, job)).await;
        Ok(match self.retained(tuning.definition.terms_of(job.trial), described) {
            Ok(Some(retained)) => self.pool_over(job, retained),
            Ok(None) if last => Outcome::Later("the instances are still kept".to_owned()),
            Ok(None) => {
                Outcome::Done(vec![self.fact(format!("pool-seen#{job}#{n}"), Fact::PoolSeen { job, n })])
            }
            Err(outcome) => outcome,
        })
    }

    /// Releases the instances kept after `job`, and reads how long they were kept.
    pub(super) async fn release_pool(&self, id: &str, job: JobKey) -> Result<Outcome, StoreError> {
        let Some(tuning) = self.store.tuning(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let name = training_job_name(id, job);
        let described = self.jobs.describe(&name).await;
        match self.retained(tuning.definition.terms_of(job.trial), described) {
            Ok(Some(retained)) => return Ok(self.pool_over(job, retained)),
            Ok(None) => {}
            Err(outcome) => return Ok(outcome),
        }
        Ok(match self.jobs.release(&name).await {
            Ok(()) => Outcome::Later("the instances are being released".to_owned()),
            // Whatever the error, the instances cost money until they are released, so the release is retried.
            Err(error) => later(&error).unwrap_or_else(|| Outcome::Later(error.to_string())),
        })
    }

    fn pool_over(&self, job: JobKey, retained: Retained) -> Outcome {
        Outcome::Done(vec![self.fact(format!("pool-over#{job}"), Fact::PoolOver { job, retained })])
    }

    /// Returns how long the instances were kept in total. `None` while they may still be kept.
    fn retained(
        &self,
        terms: JobTerms,
        described: Result<Description, TrainingJobsError>,
    ) -> Result<Option<Retained>, Outcome> {
        match described {
            Ok(description) => Ok(retained(terms, &description, self.clock.now())),
            // A job cannot be deleted while its instances are kept.
            Err(TrainingJobsError::NotFound(_)) => Ok(Some(Retained::Unknown)),
            Err(error) => Err(later(&error).unwrap_or_else(|| Outcome::Later(error.to_string()))),
        }
    }
}

fn retained(terms: JobTerms, description: &Description, now: Time) -> Option<Retained> {
    let Some(pool) = &description.warm_pool else {
        // The service may show a warm pool late. Long after its maximum lifetime, none exists.
        let seconds = terms.keep_alive_seconds.saturating_add(POOL_ALLOWANCE_SECONDS);
        let over = now >= description.ended? + Millis::from_seconds(seconds);
        return over.then_some(Retained::Seconds(0));
    };
    match pool.status.as_str() {
        // The job that reuses the instances pays for them from then on.
        "Terminated" | "Reused" | "InUse" => pool.retained_seconds.map(Retained::Seconds),
        _ => None,
    }
}
