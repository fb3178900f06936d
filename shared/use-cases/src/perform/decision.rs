//! Publishes events when a tuning starts or is being stopped, and when a trial is stopped at a rung or promoted. Each
//! event is published only after a job was actually stopped or started.
//!
//! These events are best effort. No row orders them: a failure to publish is returned to the caller and not retried, so
//! the event bus never delays a stop. Call this only after all work that costs money while it waits.

use serde_json::{Value, json};
use tuning::job::Job;
use tuning::log::fact::JobKey;
use tuning::log::reasons::StopWhy;
use tuning::log::ruling::{Order, Ruling, SearchRuling, Verdict};
use tuning::step::Step;
use tuning::unit::ids::{BracketId, RungId};
use wire::names::{parse_job_key, training_job_name};
use wire::stored::{self, ActionRow, ActionStatus};

use super::{Actuator, Effect, Performed, TUNING_STATE_CHANGE};
use crate::describe::state_change;
use crate::ports::table::{Query, Table};
use crate::ports::training::{JobLogs, TrainingJobs};
use crate::ports::{Bus, Timer};
use crate::store::{Loaded, StoreError};

/// Detail type of the events about trials.
pub const TRIAL_DECISION: &str = "Tuning Trial Decision";

/// Number of steps searched for the ruling, latest first. Without faults the ruling is never older.
const STEPS_MAX: usize = 64;
/// Steps read per page. Most decisions are carried out before many more steps follow.
const STEPS_PAGE: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Announcement {
    /// The first job of the tuning was started.
    Begun,
    /// This job was stopped because the tuning is ending.
    Ending(JobKey),
    /// A decision about a trial was carried out.
    Trial(Decision),
}

/// A decision about a trial that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The trial's job was stopped at this rung.
    Stopped(JobKey, RungId),
    /// The trial was promoted from the rung below that of this job, which was started.
    Promoted(JobKey),
}

#[derive(Debug, Clone, Copy)]
struct Numbers {
    value: Option<f64>,
    verdict: Verdict,
}

impl Announcement {
    /// Returns the event to publish after `action`, if any.
    pub(crate) fn of(action: &str, performed: &Performed) -> Option<Self> {
        let job = || parse_job_key(action.split_once('-')?.1);
        match performed {
            Performed::Done(Effect::Stopped { why: Some(StopWhy::Rung { rung }) }) => {
                Some(Self::Trial(Decision::Stopped(job()?, *rung)))
            }
            Performed::Done(Effect::Stopped { why: Some(StopWhy::TuningEnding) }) => {
                Some(Self::Ending(job()?))
            }
            Performed::Done(Effect::Started) => {
                let job = job()?;
                if job == JobKey::new(0, 0, 1) {
                    return Some(Self::Begun);
                }
                (job.rung > RungId(0) && job.attempt > 1).then_some(Self::Trial(Decision::Promoted(job)))
            }
            Performed::Done(_) | Performed::NotNow | Performed::Deferred(_) => None,
        }
    }
}

impl Decision {
    fn job(self) -> JobKey {
        match self {
            Self::Stopped(job, _) | Self::Promoted(job) => job,
        }
    }

    fn rung(self) -> RungId {
        match self {
            Self::Stopped(_, rung) => rung,
            Self::Promoted(job) => job.rung.below().unwrap_or_default(),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Stopped(..) => "Stopped",
            Self::Promoted(_) => "Promoted",
        }
    }

    /// Returns the numbers in `ruling` if it made this decision.
    fn numbers(self, ruling: &Ruling) -> Option<Numbers> {
        let (stopped, trial, rung, value, verdict) = match ruling {
            Ruling::Search(SearchRuling::TrialJudged { trial, rung, value, verdict, .. }) => {
                (true, *trial, *rung, *value, *verdict)
            }
            Ruling::Search(SearchRuling::TrialPromoted { trial, rung, value, verdict, .. }) => {
                (false, *trial, *rung, *value, *verdict)
            }
            Ruling::Search(SearchRuling::RungReached { .. })
            | Ruling::Attempt(_)
            | Ruling::Booking(_)
            | Ruling::TuningEnding { .. }
            | Ruling::Order(_) => return None,
        };
        let is_ours =
            matches!(self, Self::Stopped(..)) == stopped && (trial, rung) == (self.job().trial, self.rung());
        is_ours.then_some(Numbers { value, verdict })
    }
}

impl<T, J, B, C> Actuator<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs,
    B: Bus,
    C: Timer,
{
    /// Publishes an event. The error is the reason why it was not published.
    pub(crate) async fn publish(&self, id: &str, announcement: Announcement) -> Result<(), String> {
        let (detail_type, detail) = match announcement {
            Announcement::Begun => (TUNING_STATE_CHANGE, self.begun(id).await),
            Announcement::Ending(job) => (TUNING_STATE_CHANGE, self.stopping(id, job).await),
            Announcement::Trial(decision) => (TRIAL_DECISION, self.detail(id, decision).await),
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

    /// Returns `None` if there is nothing to publish: a further attempt at a rung is not a promotion.
    async fn detail(&self, id: &str, decision: Decision) -> Result<Option<Value>, StoreError> {
        let job = decision.job();
        if let Decision::Promoted(job) = decision {
            let before = JobKey { attempt: job.attempt.saturating_sub(1), ..job };
            if self.start_of(id, before).await?.is_some() {
                return Ok(None);
            }
        }
        let Some(tuning) = self.store.tuning(id).await? else { return Ok(None) };
        let Some(bracket) = self.start_of(id, job).await? else { return Ok(None) };
        let rung = decision.rung();
        let mut detail = json!({
            "HyperParameterTuningJobName": tuning.definition.name,
            "TuningId": id,
            "TrainingJobName": training_job_name(id, job),
            "Decision": decision.word(),
            "Trial": job.trial,
            "Bracket": bracket,
            "Rung": rung,
            "Resource": tuning.definition.level(bracket, rung),
            "Time": self.clock.now(),
        });
        if let Some(Numbers { value, verdict }) = self.numbers(id, decision).await? {
            // JSON has no representation of a NaN value, so it becomes null.
            detail["ObjectiveValue"] = json!(value);
            detail["Rank"] = json!(verdict.rank.saturating_add(1));
            detail["Compared"] = json!(verdict.seen);
            detail["MayGoOn"] = json!(verdict.allowed);
        }
        Ok(Some(detail))
    }

    /// Returns the bracket in the order to start a job, unless the start was cancelled.
    async fn start_of(&self, id: &str, job: JobKey) -> Result<Option<BracketId>, StoreError> {
        let item = self.store.table.get(&stored::action_key(id, &format!("start-{job}"))).await?;
        let row = item.as_ref().map(ActionRow::read).transpose()?;
        let order = row.filter(|row| row.status != ActionStatus::Cancelled).map(|row| row.order);
        let Some(Order::Start { bracket, .. }) = order else { return Ok(None) };
        Ok(Some(bracket))
    }

    /// Returns the numbers of the ruling if it is among the last steps.
    async fn numbers(&self, id: &str, decision: Decision) -> Result<Option<Numbers>, StoreError> {
        let latest = Query::prefix(stored::tuning_partition(id), "STEP#", STEPS_PAGE);
        let mut query = Query { descending: true, ..latest };
        for _ in 0..STEPS_MAX / STEPS_PAGE {
            let page = self.store.table.query(&query).await?;
            for item in &page.items {
                let Step { rulings, .. } = stored::step(item)?;
                if let Some(numbers) = rulings.iter().rev().find_map(|ruling| decision.numbers(ruling)) {
                    return Ok(Some(numbers));
                }
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        Ok(None)
    }
}
