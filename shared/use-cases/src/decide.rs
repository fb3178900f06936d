//! The decider's use case: takes facts from the stream, folds them, decides, and writes the step, the head and the
//! actions in one transaction.
//!
//! When two deciders run at once, one commits. The condition on the head fails for the other, which reads the table and
//! decides again. After a lost answer, the next session reads the head. Facts are idempotent, so a second decision
//! about the same facts changes nothing. The table, never the stream, is the source of truth: a ring makes the decider
//! read all stored facts of the tuning and its live jobs.

mod commit;
mod session;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tuning::log::fact::Recorded;
use tuning::step::Step;
use wire::events::stream::{self, BadRecord, RecordKind, StreamRecord};
use wire::stored::{self, FACT_PREFIX, RING_PREFIX, StoredError};

pub use self::commit::SNAPSHOT_EVERY;
use self::session::{Interrupted, RACES_MAX, Session};
use crate::batch::{Batch, Part, Progress, Unreadable};
use crate::ports::table::{Table, TableError};
use crate::store::{Store, StoreError};

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
                Session { store: &self.store, loaded, steps, is_current: is_read, is_settled: false, races };
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
