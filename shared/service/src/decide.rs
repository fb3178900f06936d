//! The decider's use case: takes facts from the stream, folds, decides, and writes step, head and actions in one
//! transaction.
//!
//! Two deciders at once: one commits, the other's condition on the head fails and it decides anew from the table. After
//! an answer that never came it reads the head again; facts are idempotent, so deciding twice is deciding once. The
//! table, never the stream, is the truth: a ring makes it read all facts of the tuning and its live jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use tuning::decide::settled_by;
use tuning::fact::{Fact, JobKey, Recorded};
use tuning::ruling::Ruling;
use tuning::step::{Advance, Step, advance};
use tuning::summary::JobSummary;
use wire::events::stream::{self, BadRecord, RecordKind, StreamRecord};
use wire::item::Item;
use wire::names::incarnation;
use wire::stored::{self, ActionRow, FACT_PREFIX, Head, RING_PREFIX, STEP_NUMBER, StoredError};

use crate::batch::{Batch, Part, Progress, Unreadable};
use crate::ports::table::{Condition, Query, Table, TableError, Write};
use crate::store::{Loaded, Store, StoreError};

/// Steps after which a new snapshot is taken, so that a cold start reads a bounded number of steps.
pub const SNAPSHOT_EVERY: u64 = 64;
/// How often a lost race is run again before the batch is given back to the stream.
const RACES_MAX: usize = 8;
/// Facts read at once when a ring asks for all.
const FACT_ROWS: usize = 500;

/// The use case with what it needs.
#[derive(Debug)]
pub struct Decider<T> {
    /// Reads tunings.
    pub store: Arc<Store<T>>,
}

/// The news of one tuning in a batch.
#[derive(Debug, Default)]
struct News {
    facts: Vec<Recorded>,
    ring: bool,
}

/// A batch of facts and rings: each part is a tuning, with the steps that were written.
pub type Decided = Batch<Vec<Step>>;

impl<T: Table> Decider<T> {
    /// Takes a batch of stream records, tuning by tuning, as long as `goes_on` says so; `decided` tells what became of it
    /// and what is to be delivered again.
    pub async fn handle(&self, event: &Value, goes_on: impl Fn() -> bool + Send, decided: &mut Decided) {
        let news = sort(event, decided);
        for (part, news) in decided.parts.iter_mut().zip(news) {
            if !goes_on() {
                return;
            }
            let steps = &mut part.done;
            part.progress = match self.take(&part.tuning, &news.facts, news.ring, steps).await {
                Ok(()) => Progress::Done,
                Err(error) => Progress::Failed(error),
            };
        }
    }

    /// Folds `facts` into tuning `id` and decides. With `ring`, all stored facts of the tuning and of its live jobs are
    /// taken as well. Returns the steps written.
    pub async fn decide(&self, id: &str, facts: &[Recorded], ring: bool) -> Result<Vec<Step>, StoreError> {
        let mut steps = Vec::new();
        self.take(id, facts, ring, &mut steps).await?;
        Ok(steps)
    }

    /// The same; `steps` has those that were written, also if a later one failed.
    async fn take(
        &self,
        id: &str,
        facts: &[Recorded],
        ring: bool,
        steps: &mut Vec<Step>,
    ) -> Result<(), StoreError> {
        let Some(loaded) = self.store.load(id).await? else { return Ok(()) };
        let state = &loaded.state;
        let (last, first): (Vec<_>, Vec<_>) = facts.iter().cloned().partition(comes_last);
        // Before a job is concluded, and before time may pass judgement on it, all that was stored of it is folded:
        // nothing else orders its log against its bill, or the two against the clock.
        let time = last.iter().filter(|fact| matches!(fact.fact, Fact::TimePassed)).map(|fact| fact.at).max();
        let mut jobs: BTreeSet<JobKey> = last.iter().filter_map(|fact| fact.fact.job()).collect();
        if tuning::planted!(BillBeforeFacts) {
            jobs.clear();
        }
        jobs.extend(time.map(|at| settled_by(state, at)).unwrap_or_default());
        if ring {
            jobs.extend(state.jobs().map(|(key, _, _)| key));
            jobs.extend(state.pools.iter().map(|pool| pool.job));
        }
        let mut first = first;
        if first.iter().any(is_change) {
            // Of a user's changes the latest stands: a lower cap that another has overtaken must end nothing before.
            let mut changes = self.stored_changes(id).await?;
            first.retain(|fact| !is_change(fact));
            changes.append(&mut first);
            first = changes;
        }
        self.absorb(id, &first, steps).await?;
        for job in jobs {
            self.absorb_stored(id, Some(job), steps).await?;
        }
        if ring {
            self.absorb_stored(id, None, steps).await?;
        }
        self.absorb(id, &last, steps).await
    }

    /// All changes of limits that were stored.
    async fn stored_changes(&self, id: &str) -> Result<Vec<Recorded>, StoreError> {
        let rows = self.store.all(&stored::fact_partition(id), &stored::fact_prefix(None)).await?;
        // A damaged row is told of by whoever takes up all facts.
        Ok(rows.iter().filter_map(|row| stored::fact(row).ok()).filter(is_change).collect())
    }

    async fn absorb_stored(
        &self,
        id: &str,
        job: Option<JobKey>,
        steps: &mut Vec<Step>,
    ) -> Result<(), StoreError> {
        let mut query = Query::prefix(stored::fact_partition(id), stored::fact_prefix(job), FACT_ROWS);
        let mut bills = Vec::new();
        loop {
            let page = self.store.table.query(&query).await?;
            let mut facts = Vec::new();
            for item in &page.items {
                match stored::fact(item) {
                    Ok(fact) => facts.push(fact),
                    Err(error @ StoredError::Newer { .. }) => return Err(error.into()),
                    // A damaged row must not hide the others; it stays where it is for whoever looks into it.
                    Err(StoredError::Unreadable { .. }) => {}
                }
            }
            let (last, first): (Vec<_>, Vec<_>) = facts.into_iter().partition(comes_last);
            bills.extend(last);
            self.absorb(id, &first, steps).await?;
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        self.absorb(id, &bills, steps).await
    }

    /// Folds `facts` in as many steps as they need, racing other deciders if there are any.
    async fn absorb(&self, id: &str, facts: &[Recorded], steps: &mut Vec<Step>) -> Result<(), StoreError> {
        let mut races = 0;
        let mut taken = 0_usize;
        loop {
            let Some(mut loaded) = self.store.load(id).await? else { return Ok(()) };
            let lost = loop {
                let rest = facts.get(taken..).unwrap_or_default();
                let n = loaded.head.step.saturating_add(1);
                let mut state = loaded.state.clone();
                let advanced = advance(&loaded.tuning.definition, &mut state, n, rest);
                if let Some(step) = &advanced.step {
                    loaded.state = state;
                    if !self.commit(&mut loaded, step, &advanced).await? {
                        break true;
                    }
                    steps.push(step.clone());
                }
                taken = taken.saturating_add(advanced.taken);
                if taken >= facts.len() && !advanced.owed {
                    break false;
                }
            };
            if !lost {
                return Ok(());
            }
            races += 1;
            if races >= RACES_MAX {
                return Err(StoreError::Table(TableError::Conflict(vec![0])));
            }
        }
    }

    /// Writes a step; `false` if another decider was first.
    async fn commit(&self, loaded: &mut Loaded, step: &Step, advanced: &Advance) -> Result<bool, StoreError> {
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
        let mut writes = vec![
            Write::Put(loaded.head.row(&id), Condition::equals(STEP_NUMBER, before)),
            Write::Put(stored::step_row(&id, step), Condition::NotExists),
        ];
        if tuning::planted!(SkipConditionOnSave) {
            writes = vec![
                Write::Put(loaded.head.row(&id), Condition::Always),
                Write::Put(stored::step_row(&id, step), Condition::Always),
            ];
        }
        for ruling in &step.rulings {
            if let Some(action) = ruling.action() {
                let row = ActionRow::pending(action, ruling.clone()).row(&id);
                if tuning::planted!(DropOutbox) {
                    continue;
                }
                if tuning::planted!(RowsBeforeStep) {
                    self.store.table.write(Write::Put(row, Condition::NotExists)).await?;
                    continue;
                }
                writes.push(Write::Put(row, Condition::NotExists));
            }
        }
        let summaries = self.summaries(&id, step, advanced).await?;
        writes.extend(summaries.iter().map(|job| Write::Put(stored::job_row(&id, job), Condition::Always)));
        let token = token(&loaded.head, &id, step);
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

    /// The summaries of jobs that a step changes: those that left the state, and those whose kept instances were settled.
    /// Nobody else writes them, and no two deciders the same step.
    async fn summaries(
        &self,
        id: &str,
        step: &Step,
        advanced: &Advance,
    ) -> Result<Vec<JobSummary>, StoreError> {
        let mut summaries = advanced.concluded.clone();
        for ruling in &step.rulings {
            let Ruling::PoolClosed { job, seconds, amount } = ruling else { continue };
            if !summaries.iter().any(|summary| summary.job == *job) {
                let Some(item) = self.store.table.get(&stored::job_key(id, *job)).await? else { continue };
                match stored::job(&item) {
                    Ok(summary) => summaries.push(summary),
                    Err(error @ StoredError::Newer { .. }) => return Err(error.into()),
                    // The ledger has the amount; a damaged row must not hold up the tuning.
                    Err(StoredError::Unreadable { .. }) => continue,
                }
            }
            for summary in summaries.iter_mut().filter(|summary| summary.job == *job) {
                (summary.retained_seconds, summary.retained_cost) = (*seconds, Some(*amount));
            }
        }
        Ok(summaries)
    }

    /// Takes a snapshot when it is time. The next step's head points to it; until then the former one serves, so a
    /// failure here costs nothing but reading more steps.
    async fn snapshot(&self, loaded: &mut Loaded) {
        let Head { step, snapshot, .. } = loaded.head;
        if step.saturating_sub(snapshot) < SNAPSHOT_EVERY {
            return;
        }
        let mut state = loaded.state.clone();
        let mut step = step;
        if tuning::planted!(SnapshotLosesField) {
            state.timings.epoch_ms.clear();
        }
        if tuning::planted!(SnapshotOffByOne) {
            step = step.saturating_add(1);
        }
        let Ok(chunks) = stored::snapshot_chunks(&loaded.tuning.id, step, &state) else { return };
        for chunk in chunks {
            if self.store.table.write(Write::Put(chunk, Condition::Always)).await.is_err() {
                return;
            }
        }
        loaded.head.snapshot = step;
        self.store.remember(loaded);
        self.remove_snapshot(&loaded.tuning.id, snapshot).await;
    }

    /// Removes the chunks of the snapshot before the last one. The last but one stays until then, since the head may
    /// still point to it; a reader that finds chunks missing reads the head again.
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

/// Names the transaction by what it writes. Two deciders may write different steps of one number: with the same token the
/// table would refuse the loser's as a misuse of the token, and not tell it that it lost.
fn token(head: &Head, id: &str, step: &Step) -> String {
    if tuning::planted!(TokenOfStepNumber) {
        return format!("{}-{}", incarnation(id.as_bytes()), step.n);
    }
    let written = format!("{id} {} {:?}", head.snapshot, stored::step_row(id, step).text(stored::DATA));
    let reversed: String = id.chars().rev().take(12).collect();
    format!("{reversed}-{}-{}", incarnation(written.as_bytes()), step.n)
}

fn is_change(fact: &Recorded) -> bool {
    matches!(fact.fact, Fact::LimitsChanged { .. })
}

/// What says that all there is was put before it, or that time has passed, is folded after all else.
fn comes_last(fact: &Recorded) -> bool {
    fact.fact.completes() || matches!(fact.fact, Fact::TimePassed)
}

/// Sorts a batch by tuning: the news of each, in the order of the parts of `decided`.
fn sort(event: &Value, decided: &mut Decided) -> Vec<News> {
    let mut sorted: BTreeMap<String, (Part<Vec<Step>>, News)> = BTreeMap::new();
    for record in stream::parse(event) {
        let record = match record {
            Ok(record) => record,
            Err(BadRecord { sequence_number: sequence, reason }) => {
                decided.unreadable.push(Unreadable { sequence, tuning: None, reason });
                continue;
            }
        };
        let Some((id, fact)) = news_in(&record) else { continue };
        let fact = match fact.transpose() {
            Ok(fact) => fact,
            Err(error) => {
                let (sequence, tuning) = (Some(record.sequence_number.clone()), Some(id.to_owned()));
                decided.unreadable.push(Unreadable { sequence, tuning, reason: error.to_string() });
                continue;
            }
        };
        let (part, news) = sorted.entry(id.to_owned()).or_insert_with(|| (Part::new(id), News::default()));
        news.ring |= fact.is_none() && !tuning::planted!(RingIgnored);
        news.facts.extend(fact);
        part.sequences.push(record.sequence_number.clone());
    }
    let (parts, news) = sorted.into_values().unzip();
    decided.parts = parts;
    news
}

/// The tuning of a record with news, and its fact; `None` instead of a fact if it is a ring.
fn news_in(record: &StreamRecord) -> Option<(&str, Option<Result<Recorded, StoredError>>)> {
    let new = record.new.as_ref().filter(|_| record.kind != RecordKind::Remove)?;
    let fact = stored::id_of(&record.key, FACT_PREFIX).map(|id| (id, Some(stored::fact(new))));
    fact.or_else(|| stored::id_of(&record.key, RING_PREFIX).map(|id| (id, None)))
}
