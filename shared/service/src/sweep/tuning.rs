//! Sweeps one tuning.

use tuning::fact::{Fact, JobKey, JobPhase, Recorded};
use tuning::state::{Job, Trial};
use wire::names::training_job_name;
use wire::stored::{self, ActionRow, ActionStatus};

use super::{Sweeper, skip};
use crate::perform::bill;
use crate::ports::table::{Condition, Table, Write};
use crate::ports::training::{JobLogs, TrainingJobListing, TrainingJobs};
use crate::ports::{Bus, Clock, Millis};
use crate::record;
use crate::store::{Loaded, StoreError};

/// A tuning without a step for so long is rung.
const SILENT_TUNING_MS: i64 = 90_000;

impl<T, J, B, C> Sweeper<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs + TrainingJobListing,
    B: Bus,
    C: Clock,
{
    pub(super) async fn sweep_tuning(&self, id: &str, now: Millis) -> Result<(), StoreError> {
        let Some(loaded) = self.store.load(id).await? else {
            return self.at_rest(id).await;
        };
        if loaded.state.is_ended() {
            return self.sweep_ended(id).await;
        }
        if loaded.head.deadline.is_some_and(|deadline| deadline <= now) || loaded.head.step == 0 {
            // One fact for one deadline: put again, it rings.
            let key = format!("time#{}", loaded.head.deadline.unwrap_or(loaded.head.at));
            self.put(id, Recorded { key, at: now, fact: Fact::TimePassed }).await?;
        }
        for (key, trial, job) in loaded.state.jobs() {
            self.sweep_job(&loaded, key, trial, job, now).await?;
        }
        if now.saturating_sub(loaded.head.at) >= SILENT_TUNING_MS {
            record::ring(&*self.store.table, id, now).await?;
        }
        Ok(())
    }

    async fn sweep_job(
        &self,
        loaded: &Loaded,
        key: JobKey,
        trial: &Trial,
        job: &Job,
        now: Millis,
    ) -> Result<(), StoreError> {
        let id = &loaded.tuning.id;
        if !job.accepted && !job.is_closed() {
            self.actuator.perform(id, &format!("start-{key}")).await?;
        }
        if job.stop.is_some() && !job.stop_accepted && job.holds_slot() {
            self.actuator.perform(id, &format!("stop-{key}")).await?;
        }
        if job.bill_ordered && !job.is_closed() {
            self.actuator.perform(id, &format!("bill-{key}")).await?;
        }
        if trial.read_ordered > trial.streams_read {
            self.actuator.perform(id, &format!("read-{key}-{}", trial.read_ordered)).await?;
        }
        let last_line = trial.last_line.as_ref().map_or(i64::MIN, |(at, _, _)| *at);
        let silent = now.saturating_sub(job.seen_at.max(last_line)) >= self.silence_ms;
        if silent && job.accepted && job.end.is_none() {
            self.look_at(loaded, key, job, now).await?;
        }
        Ok(())
    }

    /// A job that has been silent is looked at: its state, and the lines of its log that may have been lost.
    async fn look_at(&self, loaded: &Loaded, key: JobKey, job: &Job, now: Millis) -> Result<(), StoreError> {
        let id = &loaded.tuning.id;
        let name = training_job_name(id, key);
        let jobs = &self.actuator.jobs;
        let Some(description) = skip(jobs.describe(&name).await) else { return Ok(()) };
        let read = bill::read_log(jobs, &loaded.tuning, &name, key, description.created).await;
        for fact in skip(read).unwrap_or_default() {
            self.put(id, fact).await?;
        }
        let phase = bill::phase(&description);
        if phase == job.phase && !matches!(phase, JobPhase::Ended(_)) {
            return Ok(());
        }
        let fact = Fact::JobStateChanged {
            job: key,
            phase,
            started: description.started,
            ended: description.ended,
            message: description.failure_reason.clone(),
        };
        let at = description.modified;
        let key = format!("described-state#{}#{at}", description.secondary_status);
        let known = record::put(&*self.store.table, id, &Recorded { key, at, fact }).await?;
        // It was put before and the decider has not heard of it: its stream record was lost.
        if known == record::Put::Known {
            Ok(record::ring(&*self.store.table, id, now).await?)
        } else {
            Ok(())
        }
    }

    async fn put(&self, id: &str, fact: Recorded) -> Result<(), StoreError> {
        let put = record::put(&*self.store.table, id, &fact).await?;
        if put == record::Put::Known {
            record::ring(&*self.store.table, id, self.now()).await?;
        }
        Ok(())
    }

    /// A tuning that has ended comes to rest when its notice is out.
    async fn sweep_ended(&self, id: &str) -> Result<(), StoreError> {
        let action = "notice-ended";
        self.actuator.perform(id, action).await?;
        let row = self.store.table.get(&stored::action_key(id, action)).await?;
        let row = row.as_ref().map(ActionRow::read).transpose()?;
        match row.map(|row| row.status) {
            Some(ActionStatus::Pending | ActionStatus::Performing) => Ok(()),
            Some(ActionStatus::Done | ActionStatus::Cancelled) | None => self.at_rest(id).await,
        }
    }

    async fn at_rest(&self, id: &str) -> Result<(), StoreError> {
        let key = stored::active_row(id).key;
        Ok(self.store.table.write(Write::Delete(key, Condition::Always)).await?)
    }
}
