//! Publishes events when a tuning starts or is being stopped, and when a trial is stopped at a rung or promoted. Each
//! event is published only after a job was actually stopped or started.
//!
//! These events are best effort. No row orders them: a failure to publish is returned to the caller and not retried, so
//! the event bus never delays a stop. Call this only after all work that costs money while it waits.

use serde_json::{Value, json};
use tuning::job::Job;
use tuning::log::fact::JobKey;
use tuning::log::reasons::StopWhy;
use tuning::log::ruling::Judged;
use tuning::unit::ids::RungId;
use wire::names::{parse_job_key, training_job_name};

use super::{Actuator, Effect, Performed, TUNING_STATE_CHANGE};
use crate::active::name_in;
use crate::describe::state_change;
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, TrainingJobs};
use crate::ports::{Bus, Timer};
use crate::store::{Loaded, StoreError};

/// Detail type of the events about trials.
pub const TRIAL_DECISION: &str = "Tuning Trial Decision";

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Announcement {
    /// The first job of the tuning was started.
    Begun,
    /// This job was stopped because the tuning is ending.
    Ending(JobKey),
    /// A decision about a trial was carried out.
    Trial(Decision),
}

/// A decision about a trial that was carried out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Decision {
    word: &'static str,
    /// The job that was stopped or started.
    job: JobKey,
    /// The rung where the trial was compared.
    rung: RungId,
    /// `None`: an earlier release made the order.
    judged: Option<Judged>,
}

impl Announcement {
    /// Returns the event to publish after `action`, if any.
    pub(crate) fn of(action: &str, performed: &Performed) -> Option<Self> {
        let job = parse_job_key(action.split_once('-')?.1);
        match performed {
            Performed::Done(Effect::Stopped { why: StopWhy::Rung { rung }, because: judged }) => {
                Some(Self::Trial(Decision { word: "Stopped", job: job?, rung: *rung, judged: *judged }))
            }
            Performed::Done(Effect::Stopped { why: StopWhy::TuningEnding, .. }) => Some(Self::Ending(job?)),
            Performed::Done(Effect::Started { promoted: Some(judged) }) => {
                let (rung, judged) = (judged.rung, Some(*judged));
                Some(Self::Trial(Decision { word: "Promoted", job: job?, rung, judged }))
            }
            Performed::Done(Effect::Started { promoted: None }) => {
                (job? == JobKey::new(0, 0, 1)).then_some(Self::Begun)
            }
            Performed::Done(_) | Performed::NotNow | Performed::Deferred(_) => None,
        }
    }
}

impl<T: Table, J: TrainingJobs + JobLogs, B: Bus, C: Timer> Actuator<T, J, B, C> {
    /// Publishes an event. The error is the reason why it was not published.
    pub(crate) async fn publish(&self, id: &str, announcement: Announcement) -> Result<(), String> {
        let (detail_type, detail) = match announcement {
            Announcement::Begun => (TUNING_STATE_CHANGE, self.begun(id).await),
            Announcement::Ending(job) => (TUNING_STATE_CHANGE, self.stopping(id, job).await),
            Announcement::Trial(decision) => (TRIAL_DECISION, Ok(Some(self.detail(id, decision)))),
        };
        match detail {
            Ok(Some(detail)) => {
                self.bus.publish(detail_type, &detail).await.map_err(|error| error.to_string())
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns `None` if the tuning is no longer in progress: a later event reports its present status.
    async fn begun(&self, id: &str) -> Result<Option<Value>, StoreError> {
        let loaded = self.store.load(id).await?;
        let loaded = loaded.filter(|loaded| loaded.head.status == "InProgress");
        Ok(loaded.map(|loaded| state_change(&loaded, &self.place)))
    }

    /// Returns `None` if the tuning ends by itself, or if another job is the first that still runs and is stopped because
    /// the tuning is ending: that one triggers the event.
    async fn stopping(&self, id: &str, stopped: JobKey) -> Result<Option<Value>, StoreError> {
        const STOPPING: &str = "Stopping";
        if self.store.head(id).await?.is_none_or(|head| head.status != STOPPING) {
            return Ok(None);
        }
        let loaded = self.store.load(id).await?;
        let loaded = loaded.filter(|Loaded { head, state, .. }| {
            let ends = |job: &Job| job.holds_slot() && job.stop_why() == Some(StopWhy::TuningEnding);
            let first = state.jobs().find(|(_, _, job)| ends(job)).map(|(key, _, _)| key);
            head.status == STOPPING && first == Some(stopped)
        });
        Ok(loaded.map(|loaded| state_change(&loaded, &self.place)))
    }

    /// Reads nothing: the order has the numbers.
    fn detail(&self, id: &str, decision: Decision) -> Value {
        let Decision { word, job, rung, judged } = decision;
        let mut detail = json!({
            "HyperParameterTuningJobName": name_in(id),
            "TuningId": id,
            "TrainingJobName": training_job_name(id, job),
            "Decision": word,
            "Trial": job.trial,
            "Rung": rung,
            "Time": self.clock.now(),
        });
        if let Some(Judged { bracket, level, value, verdict, .. }) = judged {
            detail["Bracket"] = json!(bracket);
            detail["Resource"] = json!(level);
            // JSON has no representation of a NaN value, so it becomes null.
            detail["ObjectiveValue"] = json!(value);
            detail["Rank"] = json!(verdict.rank.saturating_add(1));
            detail["Compared"] = json!(verdict.seen);
            detail["MayGoOn"] = json!(verdict.allowed);
        }
        detail
    }
}
