//! Reads the bill of an ended job.

use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, Recorded};
use tuning::unit::limits::MAX_METRICS;
use wire::events::job_state::{classify, cut_message};
use wire::names::training_job_name;

use super::{Actuator, Outcome, later};
use crate::ports::table::Table;
use crate::ports::training::{Description, JobLogs, TrainingJobs};
use crate::ports::{Bus, Timer};
use crate::store::StoreError;

impl<T: Table, J: TrainingJobs + JobLogs, B: Bus, C: Timer> Actuator<T, J, B, C> {
    /// Reads a bill. The first description that shows one settles the job's money.
    pub(super) async fn bill(&self, id: &str, job: JobKey) -> Result<Outcome, StoreError> {
        let name = training_job_name(id, job);
        let description = match self.jobs.describe(&name).await {
            Ok(description) => description,
            Err(error) => return Ok(later(&error).unwrap_or_else(|| Outcome::Later(error.to_string()))),
        };
        let Some((bill, seconds)) = described(job, &description) else {
            return Ok(Outcome::Later("the bill is not available yet".to_owned()));
        };
        // The decider would reject this bill, and it would not receive another one.
        if is_zero_bill(&description) && self.has_run(id, job).await? {
            return Ok(Outcome::Later("the job has run, but its bill does not show this yet".to_owned()));
        }
        let confirmed = self.bills_are_final.then(|| {
            let fact = Fact::BillsConfirmed { bills: vec![(job, seconds)] };
            self.fact(format!("bill-final#{job}"), fact)
        });
        let metrics = self.final_metrics(id, job, &description).await?;
        // The bill comes last: until it is known, the decider waits for this action, which is repeated after a crash.
        Ok(Outcome::Done(metrics.into_iter().chain(confirmed).chain([bill]).collect()))
    }

    /// Returns the fact with the last values of a job's metrics, if it has others than the objective.
    async fn final_metrics(
        &self,
        id: &str,
        job: JobKey,
        description: &Description,
    ) -> Result<Option<Recorded>, StoreError> {
        if description.final_metrics.is_empty() {
            return Ok(None);
        }
        let Some(tuning) = self.store.tuning(id).await? else { return Ok(None) };
        let request = tuning.request_of(job.trial);
        let names = request.metric_names();
        let place = |name: &str| u8::try_from(names.iter().position(|known| *known == name)?).ok();
        let finite = description.final_metrics.iter().filter(|(_, value)| value.is_finite());
        let values = finite.filter_map(|(name, value)| Some((place(name)?, *value))).take(MAX_METRICS);
        let values: Vec<(u8, f64)> = values.collect();
        let fact = || {
            self.fact(format!("final-metrics#{job}"), Fact::FinalMetricsSeen { job, values: values.clone() })
        };
        // The decider has the values of the objective.
        let has_others = !request.other_metrics(&values).is_empty();
        Ok(has_others.then(fact))
    }

    /// Returns whether the decider has seen job `job` run.
    async fn has_run(&self, id: &str, job: JobKey) -> Result<bool, StoreError> {
        let Some(loaded) = self.store.load(id).await? else { return Ok(false) };
        let mut billed = loaded.state.billed_jobs();
        let started = billed.any(|(key, billed)| key == job && billed.started().is_some());
        let trial = loaded.state.trials.get(job.trial);
        Ok(started || trial.is_some_and(|trial| trial.streams.iter().any(|s| s.attempt == job.attempt)))
    }
}

/// Returns the fact with the present bill of a job if it is above `seconds`.
pub(crate) fn higher(job: JobKey, description: &Description, seconds: u64) -> Option<Recorded> {
    let (mut recorded, billed) = described(job, description)?;
    recorded.key = format!("{}#{billed}", recorded.key);
    (billed > seconds).then_some(recorded)
}

/// Returns the fact with the bill of a job and its billed seconds, or `None` while its bill is unknown. A job that never had an instance costs
/// nothing.
fn described(job: JobKey, description: &Description) -> Option<(Recorded, u64)> {
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
    let recorded = Recorded { key: format!("described#{job}"), at: description.modified, fact };
    Some((recorded, billable_seconds))
}

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

pub(crate) fn phase(description: &Description) -> JobPhase {
    classify(&description.status, &description.secondary_status, description.failure_reason.as_deref())
}

/// Returns whether a bill claims that the job never ran.
fn is_zero_bill(description: &Description) -> bool {
    description.started.is_none() && description.billable_seconds.unwrap_or(0) == 0
}
