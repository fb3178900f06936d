//! The round of the active tunings: what is owed is performed or taken note of, the time is told, the silent are rung.

use tuning::decide::open_look;
use tuning::fact::{Fact, JobKey, Recorded};
use tuning::state::{Job, State, Status, Trial};
use wire::stored::{self, ActionRow, ActionStatus};

use super::limits::Sort;
use super::round::Round;
use super::run::{Owed, Run};
use super::{BILLS_SHARE, HEAL_SHARE, STARTS_SHARE, Sweeper, look};
use crate::describe;
use crate::perform::Due;
use crate::ports::table::{Condition, Table, Write};
use crate::ports::training::{JobLogs, TrainingJobListing, TrainingJobs};
use crate::ports::{Bus, Millis, Timer};
use crate::record::{self, Put};
use crate::store::{Loaded, StoreError};

/// A tuning without a step for so long is rung.
const SILENT_TUNING_MS: i64 = 90_000;
/// The place is stored at least after so many tunings.
const SAVE_EVERY: usize = 20;

impl<T, J, B, C> Sweeper<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs + TrainingJobListing,
    B: Bus,
    C: Timer + Clone,
{
    /// Once round the active tunings, as far as there is time.
    pub(super) async fn heal(&self, run: &mut Run, was_left: bool) {
        let mut round = Round::new(&run.first, &run.swept.cursor.heal);
        if was_left && !self.pass_over_first(run, &mut round).await {
            return;
        }
        let (mut unsaved, mut calls) = (0, 0);
        while self.goes_on(run, HEAL_SHARE) {
            let id = match round.next(&self.store).await {
                Ok(Some(id)) => id,
                Ok(None) => {
                    run.whole = true;
                    break;
                }
                Err(error) => {
                    run.failed(error);
                    break;
                }
            };
            run.swept.tunings += 1;
            if let Err(error) = self.heal_tuning(run, &id).await {
                run.failed_for(&id, error);
            }
            run.swept.cursor.heal = id;
            unsaved += 1;
            if unsaved >= SAVE_EVERY || run.swept.settled.stops > calls {
                self.save(run).await;
                (unsaved, calls) = (0, run.swept.settled.stops);
            }
        }
        if run.whole
            && let Some(after) = &run.left_after
        {
            run.swept.cursor.heal.clone_from(after);
        }
    }

    /// The last sweep died, perhaps of the first tuning of this round: it comes last this time, and it will not be the first
    /// again if this sweep dies too. `false` if there is none.
    async fn pass_over_first(&self, run: &mut Run, round: &mut Round) -> bool {
        match round.next(&self.store).await {
            Ok(Some(id)) => {
                run.swept.cursor.heal.clone_from(&id);
                round.put_last(id);
                self.save(run).await;
                true
            }
            Ok(None) => {
                run.whole = true;
                false
            }
            Err(error) => {
                run.failed(error);
                false
            }
        }
    }

    async fn heal_tuning(&self, run: &mut Run, id: &str) -> Result<(), StoreError> {
        let now = self.actuator.clock.now();
        let Some(loaded) = self.store.load(id).await? else {
            return self.at_rest(id).await;
        };
        let since_step = now.saturating_sub(loaded.head.at);
        run.since_step = since_step;
        if loaded.state.is_ended() {
            return self.heal_ended(run, id, &loaded.state).await;
        }
        let silent = since_step >= SILENT_TUNING_MS && !tuning::planted!(SilentTuningIgnored);
        let mut ring = loaded.head.step == 0 && !tuning::planted!(SilentTuningIgnored);
        ring |= loaded.state.status == Status::Active && describe::stop_is_stored(&self.store, id).await?;
        if loaded.head.deadline.is_some_and(|deadline| deadline <= now)
            && !tuning::planted!(DeadlineNeverTold)
        {
            let key = format!("time#{}", loaded.head.deadline.unwrap_or(now));
            let fact = Recorded { key, at: now, fact: Fact::TimePassed };
            ring |= record::put(&*self.store.table, id, &fact).await? == Put::Known;
        }
        // What cannot be helped now must not keep the rest from it. Jobs come first, since what is to be stopped costs money.
        let mut failed = None;
        for (key, trial, job) in loaded.state.jobs() {
            if look::is_silent(trial, job, now, self.limits.silence_ms) {
                run.silent += 1;
            }
            match self.heal_job(run, &loaded, key, trial, job).await {
                Ok(settled) => ring |= settled,
                Err(error) => failed = Some(error),
            }
        }
        for action in owed_of_pools(&loaded.state) {
            match self.note_read(run, id, action).await {
                Ok(settled) => ring |= settled,
                Err(error) => failed = Some(error),
            }
        }
        for action in owed_of_tuning(&loaded.state) {
            match self.heal_now(run, id, &action).await {
                Ok(settled) => ring |= settled,
                Err(error) => failed = Some(error),
            }
        }
        if ring {
            run.waits(id, since_step);
        }
        if ring || silent {
            record::ring(&*self.store.table, id, now).await?;
        }
        failed.map_or(Ok(()), Err)
    }

    /// Performs the stop that is owed, and takes note of what else is. Whether something was performed although the state
    /// still waits for its outcome: its stream record may have been lost.
    async fn heal_job(
        &self,
        run: &mut Run,
        loaded: &Loaded,
        key: JobKey,
        trial: &Trial,
        job: &Job,
    ) -> Result<bool, StoreError> {
        let id = loaded.tuning.id.as_str();
        let mut ring = false;
        if job.stop.is_some()
            && !job.stop_accepted
            && job.holds_slot()
            && !tuning::planted!(SweeperStopsNothing)
        {
            ring |= self.heal_stop(run, id, &format!("stop-{key}")).await?;
        }
        if job.bill_ordered && !job.is_closed() && !tuning::planted!(SweeperBillsNothing) {
            ring |= self.note_read(run, id, format!("bill-{key}")).await?;
        }
        if trial.read_ordered > trial.streams_read && !tuning::planted!(SweeperReadsNothing) {
            ring |= self.note_read(run, id, format!("read-{key}-{}", trial.read_ordered)).await?;
        }
        if let Some(since) = open_look(job) {
            ring |= self.note_read(run, id, format!("look-{key}-{since}")).await?;
        }
        // A job that is to be stopped is called off by its stop, not started first.
        if job.stop.is_none() && !job.accepted && !job.is_closed() && !tuning::planted!(SweeperStartsNothing)
        {
            let starts = usize::try_from(self.limits.calls.create.per_sweep).unwrap_or(usize::MAX);
            ring |= self.note(run, id, format!("start-{key}"), (starts, |run| &mut run.starts)).await?;
        }
        Ok(ring)
    }

    async fn heal_stop(&self, run: &mut Run, id: &str, action: &str) -> Result<bool, StoreError> {
        let row = match self.actuator.due(id, action).await? {
            Due::Settled => return Ok(true),
            Due::NotNow => return Ok(false),
            Due::Now(row) => row,
        };
        run.found(&row);
        if !self.goes_on(run, HEAL_SHARE) || !self.actuator.jobs.turn(Sort::Stop).await {
            let after = run.swept.cursor.heal.clone();
            run.left(&after);
        } else {
            let performed = self.actuator.take_up(id, *row).await?;
            run.swept.settled.stops += usize::from(performed.is_done());
            run.performed(id, action, &performed);
        }
        Ok(false)
    }

    /// Performs an action that asks nothing of the training service; whether it is settled.
    async fn heal_now(&self, run: &mut Run, id: &str, action: &str) -> Result<bool, StoreError> {
        let row = match self.actuator.due(id, action).await? {
            Due::Settled => return Ok(true),
            Due::NotNow => return Ok(false),
            Due::Now(row) => row,
        };
        run.found(&row);
        let performed = self.actuator.take_up(id, *row).await?;
        run.performed(id, action, &performed);
        let settled = &mut run.swept.settled;
        let count = if action.starts_with("notice-") { &mut settled.notices } else { &mut settled.grants };
        *count += usize::from(performed.is_done());
        Ok(performed.is_done())
    }

    /// Takes note of an action that reads, if it is due; whether it is settled.
    async fn note_read(&self, run: &mut Run, id: &str, action: String) -> Result<bool, StoreError> {
        let room = usize::try_from(self.limits.calls.describe.per_sweep).unwrap_or(usize::MAX);
        self.note(run, id, action, (room, |run| &mut run.bills)).await
    }

    /// Takes note of an action if it is due, in a list of at most `room` entries; whether it is settled.
    async fn note(
        &self,
        run: &mut Run,
        id: &str,
        action: String,
        (room, list): (usize, fn(&mut Run) -> &mut Vec<Owed>),
    ) -> Result<bool, StoreError> {
        match self.actuator.due(id, &action).await? {
            Due::Settled => return Ok(true),
            Due::NotNow => {}
            Due::Now(row) => {
                run.found(&row);
                let after = run.swept.cursor.heal.clone();
                if list(run).len() < room {
                    list(run).push(Owed { id: id.to_owned(), action, after });
                } else {
                    run.left(&after);
                }
            }
        }
        Ok(false)
    }

    /// Reads the bills and logs that are due, and what became of instances that were kept.
    pub(super) async fn read_bills(&self, run: &mut Run) {
        for Owed { id, action, after } in std::mem::take(&mut run.bills) {
            let jobs = &self.actuator.jobs;
            let is_bill = action.starts_with("bill-");
            if !calls_of(&action).iter().all(|sort| jobs.has(*sort)) || !self.goes_on(run, BILLS_SHARE) {
                run.left(&after);
                continue;
            }
            match self.actuator.perform(&id, &action).await {
                Ok(performed) => {
                    let settled = &mut run.swept.settled;
                    let count = if is_bill { &mut settled.bills } else { &mut settled.reads };
                    *count += usize::from(performed.is_done());
                    run.performed(&id, &action, &performed);
                }
                Err(error) => run.failed_for(&id, error),
            }
        }
    }

    /// Makes the starts that are due, at their pace. The turn comes before the claim, so that no claim is spent on waiting.
    pub(super) async fn make_starts(&self, run: &mut Run) {
        for Owed { id, action, after } in std::mem::take(&mut run.starts) {
            if !self.goes_on(run, STARTS_SHARE) || !self.actuator.jobs.turn(Sort::Create).await {
                run.left(&after);
                continue;
            }
            match self.actuator.perform(&id, &action).await {
                Ok(performed) => {
                    run.swept.settled.starts += usize::from(performed.is_done());
                    run.performed(&id, &action, &performed);
                }
                Err(error) => run.failed_for(&id, error),
            }
        }
    }

    /// A tuning that has ended comes to rest when its notices are out.
    async fn heal_ended(&self, run: &mut Run, id: &str, state: &State) -> Result<(), StoreError> {
        let mut out = true;
        let notices = state.notices.iter().map(String::as_str).filter(|_| !tuning::planted!(NoticeForgotten));
        for notice in notices.chain(["notice-ended"]) {
            self.heal_now(run, id, notice).await?;
            let row = self.store.table.get(&stored::action_key(id, notice)).await?;
            let row = row.as_ref().map(ActionRow::read).transpose()?;
            let open =
                |row: ActionRow| matches!(row.status, ActionStatus::Pending | ActionStatus::Performing);
            out &= !row.is_some_and(open);
        }
        if out { self.at_rest(id).await } else { Ok(()) }
    }

    async fn at_rest(&self, id: &str) -> Result<(), StoreError> {
        if tuning::planted!(EndedStaysActive) {
            return Ok(());
        }
        let key = stored::active_row(id).key;
        Ok(self.store.table.write(Write::Delete(key, Condition::Always)).await?)
    }

    /// Puts a fact of tuning `id`; whether it was known.
    pub(super) async fn put(&self, id: &str, fact: &Recorded) -> Result<bool, StoreError> {
        Ok(record::put(&*self.store.table, id, fact).await? == Put::Known)
    }

    /// Now.
    pub(super) fn now(&self) -> Millis {
        self.actuator.clock.now()
    }
}

/// The calls of the training service that an action which reads may make.
fn calls_of(action: &str) -> &'static [Sort] {
    match action.split('-').next().unwrap_or_default() {
        "read" => &[Sort::Log],
        "pool" => &[Sort::Describe],
        "release" => &[Sort::Describe, Sort::Stop],
        _ => &[Sort::Describe, Sort::Log],
    }
}

/// The readings and releases of instances kept after jobs whose outcome the state still waits for.
fn owed_of_pools(state: &State) -> Vec<String> {
    let open = state.pools.iter().filter(|pool| pool.over.is_none());
    let owed = open.flat_map(|pool| {
        let reading = pool.reading.then(|| format!("pool-{}-{}", pool.job, pool.read));
        reading.into_iter().chain(pool.released.then(|| format!("release-{}", pool.job)))
    });
    owed.collect()
}

/// The actions of a tuning, not of one job, whose outcome its state still waits for.
fn owed_of_tuning(state: &State) -> Vec<String> {
    if tuning::planted!(NoticeForgotten) {
        return Vec::new();
    }
    let grants = &state.grants;
    let asking = grants.open.map(|n| format!("grant-{n}"));
    let returns = grants.returns.iter().map(|n| format!("return-{n}"));
    asking.into_iter().chain(returns).chain(state.notices.iter().cloned()).collect()
}
