//! Puts facts, once each. Ingest ends here: it decides nothing.

use tuning::fact::Recorded;
use wire::stored;

use crate::ports::table::{Condition, Table, TableError, Write};

/// Whether a fact was new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It was put now.
    New,
    /// It was known.
    Known,
}

/// Puts a fact of tuning `id` unless it is known.
pub async fn put<T: Table>(table: &T, id: &str, fact: &Recorded) -> Result<Put, TableError> {
    let new = if tuning::planted!(FactWithoutCondition) { Condition::Always } else { Condition::NotExists };
    match table.write(Write::Put(stored::fact_row(id, fact), new)).await {
        Ok(()) => Ok(Put::New),
        Err(TableError::Conflict(_)) => Ok(Put::Known),
        Err(error) => Err(error),
    }
}

/// So far the time of a fact may be ahead of our clock, ms. Cut to ours, an event's time loses its place among others of its
/// sender: where our clock is seconds behind, an older one would come after it.
const AHEAD_MS: i64 = 30_000;

/// Puts facts as a delivery from outside brought them. A delivery that comes again may mean that the stream record of
/// the first was lost: then the ring makes the decider look at the table.
/// Returns how many were new.
pub async fn deliver<T: Table>(
    table: &T,
    id: &str,
    facts: &[Recorded],
    now: i64,
) -> Result<usize, TableError> {
    let mut new = 0;
    for fact in facts {
        // A clock far ahead of ours must not move the decider's time, which deadlines hang on.
        let fact = Recorded { at: fact.at.min(now.saturating_add(AHEAD_MS)), ..fact.clone() };
        new += usize::from(put(table, id, &fact).await? == Put::New);
    }
    if new < facts.len() {
        ring(table, id, now).await?;
    }
    Ok(new)
}

/// Rings: the decider reads all facts of tuning `id` and of its live jobs.
pub async fn ring<T: Table>(table: &T, id: &str, now: i64) -> Result<(), TableError> {
    table.write(Write::Put(stored::ring_row(id, now), Condition::Always)).await
}
