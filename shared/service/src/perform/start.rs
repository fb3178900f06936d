//! Starts a training job under its computed name, or adopts it if it is ours already.

use std::collections::BTreeMap;

use tuning::definition::Strategy;
use tuning::fact::{Fact, JobKey, Recorded};
use tuning::ruling::Ruling;
use wire::events::job_state::cut_message;
use wire::names::{TAG_DECISION, TAG_STACK, TAG_TUNING, training_job_name};
use wire::request::TrainingJob;
use wire::stored::ActionRow;

use super::{Actuator, Outcome, later};
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, TrainingJobs, TrainingJobsError};
use crate::ports::{Bus, Clock, Millis};
use crate::store::StoreError;

impl<T, J, B, C> Actuator<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs,
    B: Bus,
    C: Clock,
{
    /// `earlier` = until when the claim of the try before this one was good.
    pub(super) async fn start(
        &self,
        id: &str,
        row: &ActionRow,
        earlier: Millis,
    ) -> Result<Outcome, StoreError> {
        let Ruling::StartOrdered { job, configuration, limits, launch, .. } = &row.ruling else {
            return Ok(Outcome::Done(Vec::new()));
        };
        let Some(tuning) = self.store.tuning(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let name = training_job_name(id, *job);
        let tags = self.tags(id, &job.to_string());
        let max_resource = match tuning.definition.strategy {
            Strategy::Hyperband { max_resource, .. } => Some(max_resource),
            Strategy::Random => None,
        };
        let request = tuning.request.create_training_job(&TrainingJob {
            name: &name,
            tuning_id: id,
            trial: job.trial,
            configuration: &configuration.0,
            limits: *limits,
            tags: &tags,
            resource: tuning.request.resource_hyperparameter().zip(launch.resource.or(max_resource)),
            launch: *launch,
        });
        // The last thing before the call: an actuator that was frozen must not start what was called off meanwhile.
        if !self.claim_is_good(row) {
            return Ok(Outcome::Later("the claim ran out".to_owned()));
        }
        match self.jobs.create(&request).await {
            Ok(()) => Ok(Outcome::Done(vec![self.started(*job)])),
            Err(error) => self.not_created(row, (*job, &name), &tags, earlier, error).await,
        }
    }

    /// What follows from a create that was not accepted.
    async fn not_created(
        &self,
        row: &ActionRow,
        (job, name): (JobKey, &str),
        tags: &BTreeMap<String, String>,
        earlier: Millis,
        error: TrainingJobsError,
    ) -> Result<Outcome, StoreError> {
        let refused = |message: String| {
            // Of any length: uncut it might not fit a row, and the outcome be refused for ever.
            let fact = Fact::StartRefused { job, message: cut_message(&message) };
            Outcome::Refused(self.fact(format!("refused#{job}"), fact))
        };
        let started = || Outcome::Done(vec![self.started(job)]);
        // What an earlier try has sent may still take effect.
        let over = earlier.saturating_add(self.abandoned_ms);
        let recent = over > self.clock.now();
        if let Some(outcome) = later(&error) {
            return Ok(outcome);
        }
        let taken = matches!(error, TrainingJobsError::NameTaken(_));
        // An earlier try may have been accepted although its answer was lost: a refusal frees the job's money, so it must
        // be certain that the job does not exist.
        if !taken && (row.tries <= 1 || tuning::planted!(RefusalBelieved)) {
            return Ok(refused(error.to_string()));
        }
        match self.jobs.tags(name).await {
            Ok(found)
                if tags.iter().all(|(key, value)| found.get(key) == Some(value))
                    || tuning::planted!(ForeignJobAdopted) =>
            {
                Ok(started())
            }
            // Tags may show later than the job. Ours was sent only if there was a try before this one.
            Ok(found) if earlier > 0 && recent && !is_marked_by_another(&found, tags) => {
                Ok(Outcome::Open("the job exists, its tags do not show yet".to_owned(), earlier, 0))
            }
            Ok(_) => Ok(refused(format!("a training job named {name} exists and is not of this tuning"))),
            // It does not show although the try before this one is long over: somebody has deleted it. It counts as started,
            // and is settled in full like any job that shows no sign of life.
            Err(TrainingJobsError::NotFound(_)) if taken && earlier > 0 && !recent => Ok(started()),
            // The name proves that the job exists, however far behind this answer is. The claim of the try before stays, so that
            // looking again does not put off the end of looking.
            Err(TrainingJobsError::NotFound(_)) if taken => {
                let reason = "the job exists but does not show yet".to_owned();
                Ok(if earlier > 0 { Outcome::Open(reason, earlier, 0) } else { Outcome::Unsure(reason) })
            }
            // A create of an earlier try that never got its answer may still be on its way.
            Err(TrainingJobsError::NotFound(_)) if recent => {
                Ok(Outcome::Open(error.to_string(), earlier, over))
            }
            Err(TrainingJobsError::NotFound(_)) => Ok(refused(error.to_string())),
            // Whether there is a job is not known, whatever kept the answer away.
            Err(error) if recent => Ok(Outcome::Open(error.to_string(), earlier, 0)),
            Err(error) => Ok(Outcome::Unsure(error.to_string())),
        }
    }

    fn started(&self, job: JobKey) -> Recorded {
        self.fact(format!("started#{job}"), Fact::JobStarted { job })
    }

    fn tags(&self, id: &str, decision: &str) -> BTreeMap<String, String> {
        let tag = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        [tag(TAG_STACK, &self.stack), tag(TAG_TUNING, id), tag(TAG_DECISION, decision)].into()
    }
}

/// Whether a job has one of our tags with another value.
fn is_marked_by_another(found: &BTreeMap<String, String>, ours: &BTreeMap<String, String>) -> bool {
    ours.iter().any(|(key, value)| found.get(key).is_some_and(|found| found != value))
}
