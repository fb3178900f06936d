//! Starts a training job under its computed name, or adopts an existing job of this name if it is ours.

use std::collections::BTreeMap;

use tuning::log::fact::{Fact, JobKey, Recorded};
use tuning::log::ruling::Order;
use tuning::unit::time::Time;
use wire::events::job_state::cut_message;
use wire::names::{TAG_DECISION, decision, job_tags, training_job_name};
use wire::request::TrainingJob;
use wire::stored::ActionRow;

use super::{Actuator, Effect, Outcome, later};
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, TrainingJobs, TrainingJobsError};
use crate::ports::{Bus, Timer};
use crate::store::StoreError;

/// Number of tries after which a job counts as started if nothing shows whether it exists. They take a day or longer,
/// since the waits between them grow to five minutes.
const UNSURE_TRIES_MAX: i64 = 300;

impl<T: Table, J: TrainingJobs + JobLogs, B: Bus, C: Timer> Actuator<T, J, B, C> {
    /// `earlier` is the end of the previous try's claim.
    pub(super) async fn start(
        &self,
        id: &str,
        row: &ActionRow,
        earlier: Time,
    ) -> Result<Outcome, StoreError> {
        let Order::Start { job, configuration, limits, launch, .. } = &row.order else {
            return Ok(Outcome::Done(Vec::new()));
        };
        let Some(tuning) = self.store.tuning(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let name = training_job_name(id, *job);
        let tags = job_tags(&self.stack, id, decision(*job, configuration, *limits, *launch));
        let max_resource = tuning.definition.max_resource();
        let request = tuning.request.create_training_job(&TrainingJob {
            name: &name,
            tuning_id: id,
            trial: job.trial.0,
            configuration: &configuration.0,
            limits: *limits,
            tags: &tags,
            resource: tuning
                .request_of(job.trial)
                .resource_hyperparameter()
                .zip(launch.resource.or(max_resource)),
            launch: *launch,
        });
        // Checked directly before the call: an actuator that was frozen must not start a job that was cancelled
        // meanwhile.
        if !self.claim_is_good(row) {
            return Ok(Outcome::Later("the claim expired before the start could be sent".to_owned()));
        }
        match self.jobs.create(&request).await {
            Ok(()) => Ok(Outcome::Done(vec![self.started(*job)])),
            Err(error) => self.handle_create_error(row, *job, &name, &tags, earlier, error).await,
        }
    }

    async fn handle_create_error(
        &self,
        row: &ActionRow,
        job: JobKey,
        name: &str,
        tags: &BTreeMap<String, String>,
        earlier: Time,
        error: TrainingJobsError,
    ) -> Result<Outcome, StoreError> {
        let refused = |message: String, name_is_foreign: bool| {
            // Error messages have any length. An uncut one might exceed the row limit, and storing the outcome would
            // always fail.
            let fact = Fact::StartRefused { job, message: cut_message(&message), name_is_foreign };
            Outcome::Refused(self.fact(format!("refused#{job}"), fact))
        };
        let started = || Outcome::Done(vec![self.started(job)]);
        // A request of an earlier try may still take effect.
        let over = earlier + self.abandoned_ms;
        let recent = over > self.clock.now();
        if let Some(outcome) = later(&error) {
            return Ok(outcome);
        }
        let taken = matches!(error, TrainingJobsError::NameTaken(_));
        // An earlier try may have succeeded although its answer was lost. A refusal frees the job's money, so it must
        // be certain that the job does not exist.
        if !taken && row.tries <= 1 {
            return Ok(refused(error.to_string(), false));
        }
        match self.jobs.tags(name).await {
            Ok(found) if tags.iter().all(|(key, value)| found.get(key) == Some(value)) => Ok(started()),
            // Tags may become visible later than the job. We have sent a create only if there was an earlier try.
            Ok(found) if earlier > Time::EPOCH && recent && !has_foreign_tag(&found, tags) => {
                let reason = "the job exists, but its tags are not visible yet".to_owned();
                Ok(Outcome::NameTaken(reason, Some(earlier)))
            }
            Ok(found) => Ok(refused(foreign(name, &found, tags), has_foreign_tag(&found, tags))),
            // The job is still invisible long after the previous try, so it was deleted. It counts as started and is
            // settled in full, like any job without a sign of life.
            Err(TrainingJobsError::NotFound(_)) if taken && earlier > Time::EPOCH && !recent => Ok(started()),
            // The taken name proves that the job exists, however stale this answer is.
            Err(TrainingJobsError::NotFound(_)) if taken => {
                let reason = "the job exists, but is not visible yet".to_owned();
                Ok(Outcome::NameTaken(reason, (earlier > Time::EPOCH).then_some(earlier)))
            }
            // The create of an earlier try, whose answer was lost, may still take effect.
            Err(TrainingJobsError::NotFound(_)) if recent => {
                Ok(Outcome::EarlierTryOpen(error.to_string(), earlier, over))
            }
            Err(TrainingJobsError::NotFound(_)) => Ok(refused(error.to_string(), false)),
            // It is unknown whether the job exists.
            Err(error) if recent => Ok(Outcome::EarlierTryOpen(error.to_string(), earlier, Time::EPOCH)),
            // Its job counts as started, so its money is settled in full once it should have ended.
            Err(error) if row.tries >= UNSURE_TRIES_MAX => {
                Ok(Outcome::DoneAs(Effect::AssumedStarted(error.to_string()), vec![self.started(job)]))
            }
            Err(error) => Ok(Outcome::Unsure(error.to_string())),
        }
    }

    fn started(&self, job: JobKey) -> Recorded {
        self.fact(format!("started#{job}"), Fact::JobStarted { job })
    }
}

/// Returns why a job with the tags `found` is not ours.
fn foreign(name: &str, found: &BTreeMap<String, String>, ours: &BTreeMap<String, String>) -> String {
    let only_decision = ours.iter().all(|(key, value)| key == TAG_DECISION || found.get(key) == Some(value));
    match (found.get(TAG_DECISION), ours.get(TAG_DECISION)) {
        (Some(found), Some(ours)) if only_decision => format!(
            "another decision of this tuning started the training job {name}: its tag {TAG_DECISION} is {found}, \
             expected {ours}. This happens after a restore of the table. A sweep stops the job"
        ),
        _ => format!("a training job named {name} exists and does not belong to this tuning"),
    }
}

/// Returns whether a job has one of our tags with another value.
fn has_foreign_tag(found: &BTreeMap<String, String>, ours: &BTreeMap<String, String>) -> bool {
    ours.iter().any(|(key, value)| found.get(key).is_some_and(|found| found != value))
}
