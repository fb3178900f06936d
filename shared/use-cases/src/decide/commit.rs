//! Writes a step, with everything that belongs to it: the head, the actions, the summaries and, when due, a snapshot.

use std::sync::Arc;

use tuning::log::fact::JobKey;
use tuning::log::ruling::{Booking, Ruling};
use tuning::state::State;
use tuning::step::{Advance, Step, advance, missing};
use tuning::trial::summary::JobSummary;
use wire::item::Item;
use wire::names::incarnation;
use wire::stored::{self, ActionRow, Head, STEP_NUMBER, StoredError};

use crate::ports::table::{Condition, Table, TableError, Write};
use crate::store::{Loaded, Store, StoreError};

/// Number of steps between two snapshots. It bounds the steps that a cold start reads.
pub const SNAPSHOT_EVERY: u64 = 64;

impl<T: Table> Store<T> {
    /// Writes a step. Returns `false` if another decider has written this step number first.
    pub(super) async fn commit(
        &self,
        loaded: &mut Loaded,
        step: &Step,
        advanced: &Advance,
    ) -> Result<bool, StoreError> {
        let before = loaded.head.step;
        let id = loaded.tuning.id.clone();
        let committed = self.write(loaded, step, advanced, false).await?;
        if !committed {
            self.roll_forward(&id, before).await?;
        }
        Ok(committed)
    }

    /// Takes the step after `before` as committed if it is stored although the head is still at `before`: a restore of
    /// single rows has such a result. Otherwise this step would block the tuning forever.
    ///
    /// Does nothing after a lost race: the other decider has written its step and the head in one transaction.
    async fn roll_forward(&self, id: &str, before: u64) -> Result<(), StoreError> {
        let Some(mut loaded) = self.load(id).await? else { return Ok(()) };
        if loaded.head.step != before {
            return Ok(());
        }
        let key = stored::step_key(id, before.saturating_add(1));
        let Some(row) = self.table.get(&key).await? else { return Ok(()) };
        let step = stored::step(&row)?;
        let state = Arc::make_mut(&mut loaded.state);
        for job in missing(state, &step) {
            state.search.bring(job.trial, self.parked(id, job).await?);
        }
        // Decided again only for the summaries of the concluded jobs.
        let advanced = advance(&loaded.tuning.definition, &mut state.clone(), step.n, &step.facts);
        tuning::step::load(&loaded.tuning.definition, state, &step);
        self.write(&mut loaded, &step, &advanced, true).await.map(|_| ())
    }

    /// Writes a step, with the head, the actions and the summaries. With `is_stored`, the step row exists, and perhaps
    /// some of the actions. Returns `false` if the head has another step meanwhile.
    async fn write(
        &self,
        loaded: &mut Loaded,
        step: &Step,
        advanced: &Advance,
        is_stored: bool,
    ) -> Result<bool, StoreError> {
        let id = loaded.tuning.id.clone();
        let previous = loaded.head.clone();
        loaded.head = Head {
            step: step.n,
            status: stored::status_word(&loaded.state).to_owned(),
            at: step.at,
            deadline: tuning::decide::deadline(&loaded.tuning.definition, &loaded.state),
            ..previous.clone()
        };
        let before = i64::try_from(previous.step).unwrap_or(i64::MAX);
        let mut writes = vec![Write::Put(loaded.head.row(&id), Condition::equals(STEP_NUMBER, before))];
        if !is_stored {
            writes.push(Write::Put(stored::step_row(&id, step), Condition::NotExists));
        }
        for order in step.rulings.iter().filter_map(Ruling::order) {
            let row = ActionRow::pending(order.clone()).row(&id);
            if !is_stored || self.table.get(&row.key).await?.is_none() {
                writes.push(Write::Put(row, Condition::NotExists));
            }
        }
        let summaries = self.summaries(&id, step, advanced, &loaded.state).await?;
        let rows = summaries.iter().map(|job| stored::job_row(&id, job));
        writes.extend(rows.map(|row| Write::Put(row, Condition::Always)));
        let token = token(&id, step, &self.nonce());
        // If the answer is lost, or the invocation ends before it, only the table shows the present state.
        self.forget_state(&id);
        match self.table.transact(writes, &token).await {
            Ok(()) => {
                self.remember(loaded);
                self.snapshot(loaded).await;
                Ok(true)
            }
            Err(TableError::Conflict(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the summaries of jobs that a step changes: concluded jobs, and jobs of which a later bill or the cost of
    /// kept instances is booked. Only deciders write summaries, and only one decider writes a given step.
    async fn summaries(
        &self,
        id: &str,
        step: &Step,
        advanced: &Advance,
        state: &State,
    ) -> Result<Vec<JobSummary>, StoreError> {
        let mut summaries = advanced.concluded.clone();
        for (job, parked) in step.rulings.iter().filter_map(|ruling| state.search.parked_late(ruling)) {
            self.add_summary(id, job, &mut summaries).await?;
            // Its row was made before the last lines of the trial arrived.
            for summary in summaries.iter_mut().filter(|summary| summary.job == job) {
                summary.curve = parked.curve.iter().map(|(epoch, value)| (*epoch, *value)).collect();
            }
        }
        for ruling in &step.rulings {
            let Ruling::Booking(
                Booking::PoolClosed { job, .. }
                | Booking::BillBooked { job, .. }
                | Booking::SettledInFull { job, .. },
            ) = ruling
            else {
                continue;
            };
            self.add_summary(id, *job, &mut summaries).await?;
            for summary in summaries.iter_mut().filter(|summary| summary.job == *job) {
                summary.book(ruling);
            }
        }
        Ok(summaries)
    }

    /// Adds the stored summary of a job, unless `summaries` has the job.
    async fn add_summary(
        &self,
        id: &str,
        job: JobKey,
        summaries: &mut Vec<JobSummary>,
    ) -> Result<(), StoreError> {
        if summaries.iter().any(|summary| summary.job == job) {
            return Ok(());
        }
        let Some(item) = self.table.get(&stored::job_key(id, job)).await? else { return Ok(()) };
        match stored::job(&item) {
            Ok(summary) => summaries.push(summary),
            Err(error @ StoredError::Newer { .. }) => return Err(error.into()),
            // The ledger has all amounts. A damaged row must not block the tuning.
            Err(StoredError::NewerFact { .. } | StoredError::Unreadable { .. }) => {}
        }
        Ok(())
    }

    /// Takes a snapshot when one is due. The head of the next step points to it. Until then the previous snapshot is
    /// used, so a failure here only means that readers read more steps.
    async fn snapshot(&self, loaded: &mut Loaded) {
        let Head { step, snapshot, .. } = loaded.head;
        if step.saturating_sub(snapshot) < SNAPSHOT_EVERY {
            return;
        }
        let Ok(chunks) = stored::snapshot_chunks(&loaded.tuning.id, step, &loaded.state) else { return };
        for chunk in chunks {
            if self.table.write(Write::Put(chunk, Condition::Always)).await.is_err() {
                return;
            }
        }
        loaded.head.snapshot = step;
        self.remember(loaded);
        self.remove_snapshot(&loaded.tuning.id, snapshot).await;
    }

    /// Removes all snapshots older than `newer`, the previous one. The previous one stays, because the stored head may
    /// still point to it. A reader that finds chunks missing reads the head again.
    async fn remove_snapshot(&self, id: &str, newer: u64) {
        let pk = stored::tuning_partition(id);
        let Ok(rows) = self.all(&pk, "SNAP#").await else { return };
        let keep_from = stored::snapshot_key_prefix(newer);
        for Item { key, .. } in rows.into_iter().filter(|row| row.key.sk < keep_from) {
            if self.table.write(Write::Delete(key, Condition::Always)).await.is_err() {
                return;
            }
        }
    }
}

/// Returns a transaction token. Only a retry of the same call has the same one: a repeated write succeeds whatever was
/// written since, which would make an old state look current.
fn token(id: &str, step: &Step, nonce: &str) -> String {
    let reversed: String = id.chars().rev().take(12).collect();
    format!("{reversed}-{}-{}", incarnation(nonce.as_bytes()), step.n)
}
