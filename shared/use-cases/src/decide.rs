//! The decider's use case: takes facts from the stream, folds them, decides, and writes the step, the head and the
//! actions in one transaction.
//!
//! When two deciders run at once, one commits. The condition on the head fails for the other, which reads the table and
//! decides again. After a lost answer, the next session reads the head. Facts are idempotent, so a second decision
//! about the same facts changes nothing. The table, never the stream, is the truth: a ring makes the decider read all
//! stored facts of the tuning and its live jobs.

mod session;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tuning::log::fact::{JobKey, Recorded};
use tuning::log::ruling::{Booking, Ruling};
use tuning::state::State;
use tuning::step::{Advance, Step, advance, missing};
use tuning::trial::summary::JobSummary;
use wire::events::stream::{self, BadRecord, RecordKind, StreamRecord};
use wire::item::Item;
use wire::names::incarnation;
use wire::stored::{self, ActionRow, FACT_PREFIX, Head, RING_PREFIX, STEP_NUMBER, StoredError};

use self::session::{Interrupted, Session};
use crate::batch::{Batch, Part, Progress, Unreadable};
use crate::ports::table::{Condition, Query, Table, TableError, Write};
use crate::store::{Loaded, Store, StoreError};

/// Number of steps between two snapshots. It bounds the steps that a cold start reads.
pub const SNAPSHOT_EVERY: u64 = 64;
/// Races that a decider may lose without a step of its own. A pass on a state that was not the present one counts too.
/// Then the batch returns to the stream.
const RACES_MAX: usize = 8;
/// Facts per page when a ring makes the decider read all of them.
const FACT_ROWS: usize = 500;

/// The decider and its dependencies.
#[derive(Debug)]
pub struct Decider<T> {
    /// Reads tunings.
    pub store: Arc<Store<T>>,
}

/// The facts and rings of one tuning in a batch.
#[derive(Debug, Default)]
struct Arrivals {
    facts: Vec<Recorded>,
    ring: bool,
    /// The error of a record that only a newer release can read.
    newer: Option<StoredError>,
}

/// A batch of facts and rings. Each part is one tuning, with the steps written for it.
pub type Decided = Batch<Vec<Step>>;

impl<T: Table> Decider<T> {
    /// Processes a batch of stream records, tuning by tuning, while `has_time` returns true. `decided` receives the
    /// results and the records to deliver again.
    pub async fn handle(&self, event: &Value, has_time: impl Fn() -> bool + Send, decided: &mut Decided) {
        let arrivals = sort(event, decided);
        for (part, arrived) in decided.parts.iter_mut().zip(arrivals) {
            if !has_time() {
                return;
            }
            // All records of the tuning are delivered again: folded without this fact, they might decide too early.
            if let Some(newer) = arrived.newer {
                part.progress = Progress::Failed(newer.into());
                continue;
            }
            let steps = &mut part.done;
            part.progress = match self.take(&part.tuning, &arrived.facts, arrived.ring, steps).await {
                Ok(()) => Progress::Done,
                Err(error) => Progress::Failed(error),
            };
        }
    }

    /// Folds `facts` into tuning `id` and decides. With `ring`, also folds all stored facts of the tuning and of its
    /// jobs whose bill is not final. Returns the steps written.
    pub async fn decide(&self, id: &str, facts: &[Recorded], ring: bool) -> Result<Vec<Step>, StoreError> {
        let mut steps = Vec::new();
        self.take(id, facts, ring, &mut steps).await?;
        Ok(steps)
    }

    /// Like [`Self::decide`], but appends the written steps to `steps`, also those before an error.
    async fn take(
        &self,
        id: &str,
        facts: &[Recorded],
        ring: bool,
        steps: &mut Vec<Step>,
    ) -> Result<(), StoreError> {
        let known = self.store.cached(id);
        let mut is_read = known.is_none();
        let mut loaded = match known {
            Some(known) => known,
            None => match self.store.load(id).await? {
                Some(loaded) => loaded,
                None => return Ok(()),
            },
        };
        let mut races = 0;
        loop {
            let mut session =
                Session { decider: self, loaded, steps, is_current: is_read, is_settled: false, races };
            let before = match session.fold_all(facts, ring).await {
                Ok(()) if session.is_current => return Ok(()),
                // A stale state ignores lines of an attempt that it does not know.
                Ok(()) => Some(session.loaded.head.step),
                // A stale state may name rows of a tuning that was deleted.
                Err(Interrupted::Store(StoreError::Stored(_))) if !session.is_current => None,
                Err(Interrupted::Store(error)) => return Err(error),
                Err(Interrupted::Race) => None,
            };
            let Some(read) = self.store.load(id).await? else {
                self.store.forget_state(id);
                return Ok(());
            };
            if before == Some(read.head.step) {
                return Ok(());
            }
            races = session.races + 1;
            if races >= RACES_MAX {
                return Err(StoreError::Table(TableError::Conflict(vec![0])));
            }
            (loaded, is_read) = (read, true);
        }
    }

    /// Returns all stored facts of the tuning itself, without those of its jobs.
    async fn stored_facts(&self, id: &str) -> Result<Vec<Recorded>, StoreError> {
        let mut query = Query::prefix(stored::fact_partition(id), stored::fact_prefix(None), FACT_ROWS);
        let mut facts = Vec::new();
        loop {
            let page = self.store.table.query(&query).await?;
            facts.extend(readable(&page.items)?);
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(facts),
            }
        }
    }

    /// Writes a step. Returns `false` if another decider has written this step number first.
    async fn commit(&self, loaded: &mut Loaded, step: &Step, advanced: &Advance) -> Result<bool, StoreError> {
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
        let Some(mut loaded) = self.store.load(id).await? else { return Ok(()) };
        if loaded.head.step != before {
            return Ok(());
        }
        let key = stored::step_key(id, before.saturating_add(1));
        let Some(row) = self.store.table.get(&key).await? else { return Ok(()) };
        let step = stored::step(&row)?;
        let state = Arc::make_mut(&mut loaded.state);
        for job in missing(state, &step) {
            state.bring(job.trial, self.store.parked(id, job).await?);
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
            if !is_stored || self.store.table.get(&row.key).await?.is_none() {
                writes.push(Write::Put(row, Condition::NotExists));
            }
        }
        let summaries = self.summaries(&id, step, advanced, &loaded.state).await?;
        let rows = summaries.iter().map(|job| stored::job_row(&id, job));
        writes.extend(rows.map(|row| Write::Put(row, Condition::Always)));
        let token = token(&id, step, &self.store.nonce());
        // If the answer is lost, or the invocation ends before it, only the table shows the present state.
        self.store.forget_state(&id);
        match self.store.table.transact(writes, &token).await {
            Ok(()) => {
                self.store.remember(loaded);
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
        for (job, parked) in step.rulings.iter().filter_map(|ruling| state.parked_late(ruling)) {
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
        let Some(item) = self.store.table.get(&stored::job_key(id, job)).await? else { return Ok(()) };
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
            if self.store.table.write(Write::Put(chunk, Condition::Always)).await.is_err() {
                return;
            }
        }
        loaded.head.snapshot = step;
        self.store.remember(loaded);
        self.remove_snapshot(&loaded.tuning.id, snapshot).await;
    }

    /// Removes all snapshots older than `newer`, the previous one. The previous one stays, because the stored head may
    /// still point to it. A reader that finds chunks missing reads the head again.
    async fn remove_snapshot(&self, id: &str, newer: u64) {
        let pk = stored::tuning_partition(id);
        let Ok(rows) = self.store.all(&pk, "SNAP#").await else { return };
        let keep_from = stored::snapshot_key_prefix(newer);
        for Item { key, .. } in rows.into_iter().filter(|row| row.key.sk < keep_from) {
            if self.store.table.write(Write::Delete(key, Condition::Always)).await.is_err() {
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

fn readable(rows: &[Item]) -> Result<Vec<Recorded>, StoreError> {
    let mut facts = Vec::new();
    for row in rows {
        match stored::fact(row) {
            Ok(fact) => facts.push(fact),
            Err(error @ (StoredError::Newer { .. } | StoredError::NewerFact { .. })) => {
                return Err(error.into());
            }
            // A damaged row must not hide the other facts. It stays in the table for inspection.
            Err(StoredError::Unreadable { .. }) => {}
        }
    }
    Ok(facts)
}

/// Sorts a batch by tuning. Returns the facts and rings of each, in the order of the parts of `decided`.
fn sort(event: &Value, decided: &mut Decided) -> Vec<Arrivals> {
    let mut sorted: BTreeMap<String, (Part<Vec<Step>>, Arrivals)> = BTreeMap::new();
    for record in stream::parse(event) {
        let record = match record {
            Ok(record) => record,
            Err(BadRecord { sequence_number: sequence, reason }) => {
                decided.unreadable.push(Unreadable { sequence, tuning: None, reason });
                continue;
            }
        };
        let Some((id, fact)) = fact_or_ring(&record) else { continue };
        let (fact, newer) = match fact.transpose() {
            Ok(fact) => (fact, None),
            Err(error @ StoredError::NewerFact { .. }) => (None, Some(error)),
            Err(error) => {
                let (sequence, tuning) = (Some(record.sequence_number.clone()), Some(id.to_owned()));
                decided.unreadable.push(Unreadable { sequence, tuning, reason: error.to_string() });
                continue;
            }
        };
        let (part, arrived) =
            sorted.entry(id.to_owned()).or_insert_with(|| (Part::new(id), Arrivals::default()));
        arrived.ring |= fact.is_none();
        arrived.facts.extend(fact);
        arrived.newer = newer.or(arrived.newer.take());
        part.sequences.push(record.sequence_number.clone());
    }
    let (parts, arrivals) = sorted.into_values().unzip();
    decided.parts = parts;
    arrivals
}

/// Returns the tuning of a record and its fact, or `None` in place of the fact if the record is a ring.
fn fact_or_ring(record: &StreamRecord) -> Option<(&str, Option<Result<Recorded, StoredError>>)> {
    let new = record.new.as_ref().filter(|_| record.kind != RecordKind::Remove)?;
    let fact = stored::id_of(&record.key, FACT_PREFIX).map(|id| (id, Some(stored::fact(new))));
    fact.or_else(|| stored::id_of(&record.key, RING_PREFIX).map(|id| (id, None)))
}
