//! Processes the active tunings: performs or queues due actions, reports that time has passed, and rings for silent
//! tunings.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use tuning::job::Job;
use tuning::job::open_silence_check;
use tuning::log::fact::{Fact, JobKey, Recorded};
use tuning::state::State;
use tuning::trial::Trial;
use tuning::unit::time::Millis;
use tuning::unit::time::Time;
use wire::stored::{self, ActionRow, ActionStatus};

use super::limits::{CallKind, PerCallKind};
use super::round::Round;
use super::run::{DueAction, Run};
use super::{BILLS_SHARE, HEAL_SHARE, STARTS_SHARE, Sweeper, silence};
use crate::perform::{Due, Effect, LOG_PAGES_MAX, Performed};
use crate::ports::table::{Condition, Table, Write};
use crate::ports::training::TrainingService;
use crate::ports::{Bus, Timer};
use crate::record::{self, Put};
use crate::stops;
use crate::store::{Loaded, StoreError};

/// A tuning without a step for this long is rung.
const SILENT_TUNING: Millis = Millis::from_seconds(90);
/// Number of bills, logs and kept instances that are read at once.
pub(super) const READS_AT_ONCE: usize = 8;
/// Number of due starts that a sweep keeps to choose from.
const STARTS_QUEUED: usize = 1_000;
/// Wait for a turn to become free.
const NEXT_TURN: Millis = Millis::from_seconds(1);
/// Number of tunings after which the cursor is stored at the latest.
const SAVE_EVERY: usize = 20;

impl<T: Table, J: TrainingService, B: Bus, C: Timer + Clone> Sweeper<T, J, B, C> {
    /// Visits the active tunings, as far as time allows.
    pub(super) async fn heal(&self, run: &mut Run, was_abandoned: bool) {
        let mut round = Round::new(&run.first, &run.swept.cursor.heal);
        if was_abandoned && !self.visit_first_last(run, &mut round).await {
            return;
        }
        let (mut unsaved, mut calls) = (0, 0);
        while self.has_time(run, HEAL_SHARE) {
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

    /// After a sweep that died, perhaps because of the first tuning of this round, visits that tuning last. If this
    /// sweep dies too, the tuning is not the first one of the next sweep either. Returns `false` if there is no active
    /// tuning.
    async fn visit_first_last(&self, run: &mut Run, round: &mut Round) -> bool {
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
            return self.remove_from_active(id).await;
        };
        let since_step = now - loaded.head.at;
        run.since_step = since_step;
        if loaded.state.is_ended() {
            return self.heal_ended(run, id, &loaded.state).await;
        }
        let silent = since_step >= SILENT_TUNING;
        let mut ring = loaded.head.step == 0;
        ring |= stops::is_unfolded(&self.store, id, &loaded.state).await?;
        if loaded.head.deadline.is_some_and(|deadline| deadline <= now) {
            let key = format!("time#{}", loaded.head.deadline.unwrap_or(now));
            let fact = Recorded { key, at: now, fact: Fact::TimePassed };
            ring |= record::put(&*self.store.table, id, &fact).await? == Put::Known;
        }
        // An error of one action must not block the others. Jobs come first, because a job to be stopped costs money.
        let mut failed = None;
        let mut note = |settled: Result<bool, StoreError>| match settled {
            Ok(settled) => ring |= settled,
            Err(error) => failed = Some(error),
        };
        for (key, trial, job) in loaded.state.jobs() {
            if silence::is_silent(&loaded, trial, job, now, self.limits.silence) {
                run.silent += 1;
            }
            note(self.heal_job(run, &loaded, key, trial, job).await);
        }
        for (key, job) in &loaded.state.money.billing {
            if !job.is_closed() {
                note(self.queue_read_if_due(run, id, format!("bill-{key}")).await);
            }
        }
        self.queue_booked_bills(run, id, &loaded.state);
        for action in open_pool_actions(&loaded.state) {
            note(self.queue_read_if_due(run, id, action).await);
        }
        for action in open_tuning_actions(&loaded.state) {
            note(self.perform_if_due(run, id, &action).await);
        }
        if ring {
            run.count_if_stuck(id, since_step);
        }
        if ring || silent {
            record::ring(&*self.store.table, id, now).await?;
        }
        failed.map_or(Ok(()), Err)
    }

    /// Performs a due stop of a job, and queues its other due actions. Returns whether an action is settled although
    /// the state still waits for its outcome, which means that the stream record of the outcome may have been lost.
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
        if job.stop.is_some_and(|stop| !stop.accepted) && job.holds_slot() {
            ring |= self.stop_if_due(run, id, &format!("stop-{key}")).await?;
        }
        if !job.is_closed() && job.bill.read_at().is_some() {
            ring |= self.queue_read_if_due(run, id, format!("bill-{key}")).await?;
        }
        if job.final_log.ordered_at().is_some() {
            ring |= self.queue_read_if_due(run, id, format!("rest-{key}")).await?;
        }
        if let Some(streams) = trial.read.open() {
            ring |= self.queue_read_if_due(run, id, format!("read-{key}-{streams}")).await?;
        }
        if let Some(since) = open_silence_check(job) {
            ring |= self.queue_read_if_due(run, id, format!("look-{key}-{since}")).await?;
        }
        // The stop of a job cancels its start, so such a job is not started first.
        if job.stop.is_none() && job.awaits_start() {
            // Its row is read when its turn comes: reading the rows of a thousand starts takes longer than making some.
            let is_due = job.deferred.as_ref().is_none_or(|(until, _)| *until <= self.now());
            let after = run.swept.cursor.heal.clone();
            if is_due && run.starts.len() < STARTS_QUEUED {
                run.starts.push(DueAction { id: id.to_owned(), action: format!("start-{key}"), after });
            } else if is_due {
                run.leave_to_next_sweep(&after);
            }
        }
        Ok(ring)
    }

    async fn stop_if_due(&self, run: &mut Run, id: &str, action: &str) -> Result<bool, StoreError> {
        let row = match self.actuator.due(id, action).await? {
            Due::Settled => return Ok(true),
            Due::NotNow => return Ok(false),
            Due::Now(row) => row,
        };
        run.count_if_missed(&row);
        if !self.has_time(run, HEAL_SHARE) || !self.actuator.jobs.turn(CallKind::Stop).await {
            let after = run.swept.cursor.heal.clone();
            run.leave_to_next_sweep(&after);
        } else {
            let performed = self.actuator.claim_and_perform(id, *row, LOG_PAGES_MAX).await?;
            run.swept.settled.stops += usize::from(performed.is_done());
            run.record_result(id, action, &performed);
        }
        Ok(false)
    }

    /// Performs an action that makes no call of the training service. Returns whether it is settled.
    async fn perform_if_due(&self, run: &mut Run, id: &str, action: &str) -> Result<bool, StoreError> {
        let row = match self.actuator.due(id, action).await? {
            Due::Settled => return Ok(true),
            Due::NotNow => return Ok(false),
            Due::Now(row) => row,
        };
        run.count_if_missed(&row);
        let performed = self.actuator.claim_and_perform(id, *row, LOG_PAGES_MAX).await?;
        run.record_result(id, action, &performed);
        let settled = &mut run.swept.settled;
        let count = if action.starts_with("notice-") { &mut settled.notices } else { &mut settled.grants };
        *count += usize::from(performed.is_done());
        Ok(performed.is_done())
    }

    /// Queues a read if it is due. Returns whether it is settled.
    async fn queue_read_if_due(&self, run: &mut Run, id: &str, action: String) -> Result<bool, StoreError> {
        let calls = self.limits.calls;
        let room = calls.describe.per_sweep.saturating_add(calls.log.per_sweep);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        self.queue_if_due(run, id, action, room, |run| &mut run.bills).await
    }

    /// Queues an action if it is due, in a list of at most `room` entries. Returns whether it is settled.
    async fn queue_if_due(
        &self,
        run: &mut Run,
        id: &str,
        action: String,
        room: usize,
        list: fn(&mut Run) -> &mut Vec<DueAction>,
    ) -> Result<bool, StoreError> {
        match self.actuator.due(id, &action).await? {
            Due::Settled => return Ok(true),
            Due::NotNow => {}
            Due::Now(row) => {
                run.count_if_missed(&row);
                let after = run.swept.cursor.heal.clone();
                if list(run).len() < room {
                    list(run).push(DueAction { id: id.to_owned(), action, after });
                } else {
                    run.leave_to_next_sweep(&after);
                }
            }
        }
        Ok(false)
    }

    /// Reads the due bills, logs and kept instances.
    pub(super) async fn read_bills(&self, run: &mut Run) {
        let due = std::mem::take(&mut run.bills);
        // Answers take longer than the interval between two calls.
        for several in due.chunks(READS_AT_ONCE) {
            let has_time = self.has_time(run, BILLS_SHARE);
            let mut calls = self.actuator.jobs.left();
            let (reads, left): (Vec<_>, Vec<_>) =
                several.iter().partition(|due| has_time && take(&mut calls, calls_of(&due.action)));
            let performed =
                join_all(reads.iter().map(|due| self.actuator.perform(&due.id, &due.action))).await;
            for (DueAction { id, action, .. }, performed) in reads.into_iter().zip(performed) {
                match performed {
                    Ok(performed) => {
                        let settled = &mut run.swept.settled;
                        let is_bill = action.starts_with("bill-");
                        let count = if is_bill { &mut settled.bills } else { &mut settled.reads };
                        *count += usize::from(performed.is_done());
                        run.record_result(id, action, &performed);
                    }
                    Err(error) => run.failed_for(id, error),
                }
            }
            for due in left {
                run.leave_to_next_sweep(&due.after);
            }
        }
    }

    /// Makes the due starts, the first one of each tuning, then the second ones, and so on. Returns their results; `None` =
    /// left to the next sweep.
    pub(super) async fn make_starts(&self, begun: Time, lost: bool, starts: Vec<DueAction>) -> Vec<Start> {
        let until = begun + self.limits.time_ms.percent(STARTS_SHARE);
        let mut made = Vec::new();
        for due in in_turns(starts) {
            let mut result = None;
            while result.is_none()
                && !lost
                && self.now() < until
                && self.actuator.jobs.turn(CallKind::Create).await
            {
                let performed = async {
                    let row = self.actuator.due(&due.id, &due.action).await?;
                    self.actuator.perform_start(&due.id, row).await
                };
                result = match performed.await {
                    Ok(Some(performed)) => {
                        let is_unfolded = performed == Performed::Done(Effect::AlreadySettled);
                        let rung = if is_unfolded { self.ring(&due.id).await } else { Ok(()) };
                        Some(rung.map(|()| performed))
                    }
                    // The actuators have taken all turns of the next seconds.
                    Ok(None) => {
                        self.actuator.clock.pause(NEXT_TURN).await;
                        None
                    }
                    Err(error) => Some(Err(error)),
                };
            }
            made.push((due, result));
        }
        made
    }

    /// Removes an ended tuning from the active ones once its notices are published.
    async fn heal_ended(&self, run: &mut Run, id: &str, state: &State) -> Result<(), StoreError> {
        let mut published = true;
        let notices = state.notices.iter().map(String::as_str);
        for notice in notices.chain(["notice-ended"]) {
            self.perform_if_due(run, id, notice).await?;
            let row = self.store.table.get(&stored::action_key(id, notice)).await?;
            let row = row.as_ref().map(ActionRow::read).transpose()?;
            let open =
                |row: ActionRow| matches!(row.status, ActionStatus::Pending | ActionStatus::Performing);
            published &= !row.is_some_and(open);
        }
        if published { self.remove_from_active(id).await } else { Ok(()) }
    }

    async fn remove_from_active(&self, id: &str) -> Result<(), StoreError> {
        let key = stored::active_row(id).key;
        Ok(self.store.table.write(Write::Delete(key, Condition::Always)).await?)
    }

    /// Makes the decider read all facts of tuning `id`.
    async fn ring(&self, id: &str) -> Result<(), StoreError> {
        Ok(record::ring(&*self.store.table, id, self.now()).await?)
    }

    /// Stores a fact of tuning `id`. Returns whether it was known.
    pub(super) async fn put(&self, id: &str, fact: &Recorded) -> Result<bool, StoreError> {
        Ok(record::put(&*self.store.table, id, fact).await? == Put::Known)
    }

    pub(super) fn now(&self) -> Time {
        self.actuator.clock.now()
    }
}

pub(super) type Start = (DueAction, Option<Result<Performed, StoreError>>);

pub(super) fn record_starts(run: &mut Run, starts: Vec<Start>) {
    for (DueAction { id, action, after }, result) in starts {
        match result {
            None => run.leave_to_next_sweep(&after),
            Some(Ok(performed)) => {
                let made = performed.is_done() && performed != Performed::Done(Effect::AlreadySettled);
                run.swept.settled.starts += usize::from(made);
                run.record_result(&id, &action, &performed);
            }
            Some(Err(error)) => run.failed_for(&id, error),
        }
    }
}

fn in_turns(actions: Vec<DueAction>) -> Vec<DueAction> {
    let mut before: BTreeMap<String, usize> = BTreeMap::new();
    let numbered = actions.into_iter().map(|due| {
        let nth = before.entry(due.id.clone()).or_default();
        *nth += 1;
        (*nth, due)
    });
    let mut numbered: Vec<(usize, DueAction)> = numbered.collect();
    numbered.sort_by_key(|(nth, _)| *nth);
    numbered.into_iter().map(|(_, due)| due).collect()
}

/// Takes one call of each kind if there is one of each.
pub(super) fn take(calls: &mut PerCallKind<u32>, kinds: &[CallKind]) -> bool {
    let has_all = kinds.iter().all(|kind| *calls.of(*kind) > 0);
    if has_all {
        for kind in kinds {
            *calls.of(*kind) -= 1;
        }
    }
    has_all
}

/// Returns the calls of the training service that a reading action may make.
fn calls_of(action: &str) -> &'static [CallKind] {
    match action.split('-').next().unwrap_or_default() {
        "read" | "rest" => &[CallKind::Log],
        "bill" | "pool" => &[CallKind::Describe],
        "release" => &[CallKind::Describe, CallKind::Stop],
        _ => &[CallKind::Describe, CallKind::Log],
    }
}

/// Returns the reads and releases of kept instances whose outcome the state waits for.
fn open_pool_actions(state: &State) -> Vec<String> {
    let open = state.money.pools.iter().filter(|pool| pool.over.is_none());
    let actions = open.flat_map(|pool| {
        let reading = pool.reading.then(|| format!("pool-{}-{}", pool.job, pool.read));
        reading.into_iter().chain(pool.released.then(|| format!("release-{}", pool.job)))
    });
    actions.collect()
}

/// Returns the actions of a tuning as a whole whose outcome its state waits for.
fn open_tuning_actions(state: &State) -> Vec<String> {
    let grants = &state.money.grants;
    let asking = grants.open.map(|n| format!("grant-{n}"));
    let returns = grants.returns.iter().map(|n| format!("return-{n}"));
    asking.into_iter().chain(returns).chain(state.notices.iter().cloned()).collect()
}
