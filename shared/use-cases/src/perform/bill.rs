//! Reads the bill of an ended job, and before it the rest of its log.
//!
//! The bill concludes the job, so the log is read first. This finds lines whose delivery was lost, and no job is
//! concluded without its last value.

use tuning::fact::{Fact, JobEnd, JobKey, JobPhase, Recorded};
use tuning::time::Time;
use wire::events::job_state::{classify, cut_message};
use wire::names::training_job_name;

use super::log::{LOG_PAGES_MAX, Log};
use super::{Actuator, Outcome, later};
use crate::ports::table::Table;
use crate::ports::training::{Description, JobLogs, TrainingJobs};
use crate::ports::{Bus, Clock};
use crate::store::StoreError;

/// Number of tries to read a bill after which an incomplete log no longer delays it. These tries take about ten
/// minutes. After an hour without a bill, the decider would book the whole reservation.
const WHOLE_LOG_TRIES: i64 = 6;
/// Why the actuator does not read a long log in a batch of new actions.
const LEFT_TO_SWEEPER: &str = "the log is long: the sweeper reads it";

impl<T, J, B, C> Actuator<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs,
    B: Bus,
    C: Clock,
{
    /// Reads a bill and at most `pages` pages of the log. `tries` counts the tries to read this bill, this one
    /// included.
    pub(super) async fn bill(
        &self,
        id: &str,
        job: JobKey,
        tries: i64,
        pages: usize,
    ) -> Result<Outcome, StoreError> {
        let Some(tuning) = self.store.tuning(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let name = training_job_name(id, job);
        let description = match self.jobs.describe(&name).await {
            Ok(description) => description,
            Err(error) => return Ok(later(&error).unwrap_or_else(|| Outcome::Later(error.to_string()))),
        };
        let Some(bill) = described(job, &description) else {
            return Ok(Outcome::Later("the bill is not available yet".to_owned()));
        };
        // The decider would reject this bill, and it would not receive another one.
        if is_zero_bill(&description) && self.has_run(id, job).await? {
            return Ok(Outcome::Later("the job has run, but its bill does not show this yet".to_owned()));
        }
        let ended = description.ended.unwrap_or(description.modified);
        if self.clock.now() < ended + self.log_lag_ms {
            return Ok(Outcome::Later("the last log lines may not be available yet".to_owned()));
        }
        let log = Log { jobs: &self.jobs, tuning: &tuning, name: &name, job };
        if tries > WHOLE_LOG_TRIES && pages >= LOG_PAGES_MAX {
            return Ok(log.read_partially(&description, bill).await);
        }
        Ok(match log.read_completely(&description, pages).await {
            Ok(Some(mut facts)) => {
                facts.push(bill);
                Outcome::Done(facts)
            }
            Ok(None) => Outcome::Later(LEFT_TO_SWEEPER.to_owned()),
            // A bill without its log would lose metric lines for good, so even a refused read is retried a few times.
            Err(error) => later(&error).unwrap_or_else(|| Outcome::Later(error.to_string())),
        })
    }

    /// Returns whether the decider has seen job `job` run.
    async fn has_run(&self, id: &str, job: JobKey) -> Result<bool, StoreError> {
        let Some(loaded) = self.store.load(id).await? else { return Ok(false) };
        let started = loaded.state.job(job).is_some_and(|job| job.started.is_some());
        let trial = loaded.state.trials.get(&job.trial);
        Ok(started || trial.is_some_and(|trial| trial.streams.iter().any(|s| s.attempt == job.attempt)))
    }

    /// Reads a job's stored log from its beginning.
    pub(super) async fn read(
        &self,
        id: &str,
        job: JobKey,
        streams: u32,
        pages: usize,
    ) -> Result<Outcome, StoreError> {
        let Some(tuning) = self.store.tuning(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let name = training_job_name(id, job);
        let log = Log { jobs: &self.jobs, tuning: &tuning, name: &name, job };
        match log.since(Time::EPOCH, pages).await {
            Ok((_, false)) if pages < LOG_PAGES_MAX => Ok(Outcome::Later(LEFT_TO_SWEEPER.to_owned())),
            Ok((mut facts, _)) => {
                let fact = Fact::LogRead { job, streams };
                facts.push(self.fact(format!("log-read#{job}#{streams}"), fact));
                Ok(Outcome::Done(facts))
            }
            Err(error) => Ok(later(&error).unwrap_or_else(|| Outcome::Later(error.to_string()))),
        }
    }
}

/// Returns the fact that concludes a job, or `None` while its bill is unknown. A job that never had an instance costs
/// nothing.
fn described(job: JobKey, description: &Description) -> Option<Recorded> {
    let JobPhase::Ended(end) = phase(description) else { return None };
    let billable_seconds = match (description.billable_seconds, description.started) {
        (Some(seconds), _) => seconds,
        // Such a job has run. Neither its start nor its bill is visible yet.
        (None, None) if matches!(end, JobEnd::Completed | JobEnd::AlgorithmError) => return None,
        (None, None) => 0,
        (None, Some(_)) => return None,
    };
    let fact = Fact::JobDescribed {
        job,
        end,
        started: description.started,
        ended: description.ended,
        billable_seconds,
        message: description.failure_reason.as_deref().filter(|_| end != JobEnd::Completed).map(cut_message),
        interruptions: description.interruptions,
    };
    Some(Recorded { key: format!("described#{job}"), at: description.modified, fact })
}

/// Returns the state in a description, as a fact.
pub(crate) fn state_fact(job: JobKey, description: &Description) -> Recorded {
    let at = description.modified;
    let fact = Fact::JobStateChanged {
        job,
        phase: phase(description),
        started: description.started,
        ended: description.ended,
        message: description.failure_reason.as_deref().map(cut_message),
    };
    Recorded { key: format!("described-state#{}#{at}", description.secondary_status), at, fact }
}

/// Returns the phase in a description.
pub(crate) fn phase(description: &Description) -> JobPhase {
    classify(&description.status, &description.secondary_status, description.failure_reason.as_deref())
}

/// Returns whether a bill claims that the job never ran.
fn is_zero_bill(description: &Description) -> bool {
    description.started.is_none() && description.billable_seconds.unwrap_or(0) == 0
}
