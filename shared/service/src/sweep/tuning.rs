//! Sweeps one tuning.

use tuning::fact::{Fact, JobKey, Recorded};
use tuning::fold::fold;
use tuning::state::{Job, Status, Trial};
use wire::names::training_job_name;
use wire::stored::{self, ActionRow, ActionStatus};

use super::{Sweeper, skip};
use crate::describe;
use crate::perform::{Performed, bill};
use crate::ports::table::{Condition, Table, Write};
use crate::ports::training::{JobLogs, TrainingJobListing, TrainingJobs};
use crate::ports::{Bus, Clock, Millis};
use crate::record::{self, Put};
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
        let mut ring = now.saturating_sub(loaded.head.at) >= SILENT_TUNING_MS || loaded.head.step == 0;
        ring &= !tuning::planted!(SilentTuningIgnored);
        ring |= loaded.state.status == Status::Active && describe::stop_is_stored(&self.store, id).await?;
        if loaded.head.deadline.is_some_and(|deadline| deadline <= now)
            && !tuning::planted!(DeadlineNeverTold)
        {
            let key = format!("time#{}", loaded.head.deadline.unwrap_or(now));
            ring |= self.put(id, &Recorded { key, at: now, fact: Fact::TimePassed }).await? == Put::Known;
        }
        // One job that cannot be helped now must not keep the others from it.
        let mut failed = None;
        for (key, trial, job) in loaded.state.jobs() {
            match self.sweep_job(&loaded, key, trial, job, now).await {
                Ok(known) => ring |= known,
                Err(error) => failed = Some(error),
            }
        }
        if ring {
            record::ring(&*self.store.table, id, now).await?;
        }
        failed.map_or(Ok(()), Err)
    }

    /// Whether something is stored of the job that the decider seems not to have heard of.
    async fn sweep_job(
        &self,
        loaded: &Loaded,
        key: JobKey,
        trial: &Trial,
        job: &Job,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let id = &loaded.tuning.id;
        let owed = [
            (job.stop.is_some() && !job.stop_accepted && job.holds_slot()).then(|| format!("stop-{key}")),
            // A job that is to be stopped is called off by its stop, not started first.
            (job.stop.is_none() && !job.accepted && !job.is_closed()).then(|| format!("start-{key}")),
            (job.bill_ordered && !job.is_closed()).then(|| format!("bill-{key}")),
            (trial.read_ordered > trial.streams_read).then(|| format!("read-{key}-{}", trial.read_ordered)),
        ];
        let mut ring = false;
        for action in owed.iter().flatten().filter(|action| !left_undone(action)) {
            // Performed, and the state still waits for its outcome: its stream record may have been lost.
            ring |= self.actuator.perform(id, action).await? == Performed::Done;
        }
        let last_line = trial.last_line.as_ref().map_or(i64::MIN, |(at, _, _)| *at);
        let silent = now.saturating_sub(job.seen_at.max(last_line)) >= self.silence_ms;
        if silent && job.accepted && job.end.is_none() && !tuning::planted!(SilentJobIgnored) {
            ring |= self.look_at(loaded, key, job, last_line).await?;
        }
        Ok(ring)
    }

    /// A job that has been silent is looked at: its state, and the lines of its log that may have been lost. Puts only
    /// what would change something.
    async fn look_at(
        &self,
        loaded: &Loaded,
        key: JobKey,
        job: &Job,
        last_line: Millis,
    ) -> Result<bool, StoreError> {
        let Loaded { tuning, state, .. } = loaded;
        let name = training_job_name(&tuning.id, key);
        let jobs = &self.actuator.jobs;
        let Some(description) = skip(jobs.describe(&name).await) else { return Ok(false) };
        let from = last_line.max(description.created);
        let mut facts =
            skip(bill::read_log(jobs, tuning, &name, key, from).await).map(|read| read.0).unwrap_or_default();
        let phase = bill::phase(&description);
        if phase != job.phase {
            let at = description.modified;
            let (started, ended) = (description.started, description.ended);
            let message = description.failure_reason.clone();
            let fact = Fact::JobStateChanged { job: key, phase, started, ended, message };
            let key = format!("described-state#{}#{at}", description.secondary_status);
            facts.push(Recorded { key, at, fact });
        }
        let mut scratch = state.clone();
        facts.retain(|fact| fold(&tuning.definition, &mut scratch, fact));
        let mut known = false;
        for fact in &facts {
            known |= self.put(&tuning.id, fact).await? == Put::Known;
        }
        Ok(known)
    }

    async fn put(&self, id: &str, fact: &Recorded) -> Result<Put, StoreError> {
        Ok(record::put(&*self.store.table, id, fact).await?)
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
        if tuning::planted!(EndedStaysActive) {
            return Ok(());
        }
        let key = stored::active_row(id).key;
        Ok(self.store.table.write(Write::Delete(key, Condition::Always)).await?)
    }
}

/// Whether a planted mutation leaves this action undone.
fn left_undone(action: &str) -> bool {
    let left = [
        ("stop-", tuning::planted!(SweeperStopsNothing)),
        ("start-", tuning::planted!(SweeperStartsNothing)),
        ("bill-", tuning::planted!(SweeperBillsNothing)),
        ("read-", tuning::planted!(SweeperReadsNothing)),
    ];
    left.iter().any(|(kind, left)| *left && action.starts_with(kind))
}
