//! Stores each fact once. Ingest does only this: it makes no decisions.

use tuning::log::fact::Recorded;
use tuning::unit::time::{Millis, Time};
use wire::stored;

use crate::ports::table::{Condition, Table, TableError, Write};

/// Whether a fact was new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// The fact was stored now.
    New,
    /// The fact was already stored.
    Known,
}

/// Stores a fact of tuning `id` unless it is known.
pub async fn put<T: Table>(table: &T, id: &str, fact: &Recorded) -> Result<Put, TableError> {
    match table.write(Write::Put(stored::fact_row(id, fact), Condition::NotExists)).await {
        Ok(()) => Ok(Put::New),
        Err(TableError::Conflict(_)) => Ok(Put::Known),
        Err(error) => Err(error),
    }
}

/// Maximum tolerated clock skew: how far a fact's time may be ahead of our clock. An event whose time is cut to
/// our clock loses its order among the events of its sender. If our clock is seconds behind, an older event would
/// follow it.
const AHEAD: Millis = Millis::from_seconds(30);

/// Stores facts of an outside delivery. Returns how many were new. A repeated delivery may mean that the stream record
/// of the first one was lost, so it rings: the decider then reads the facts from the table.
pub async fn deliver<T: Table>(
    table: &T,
    id: &str,
    facts: &[Recorded],
    now: Time,
) -> Result<usize, TableError> {
    let mut new = 0;
    for fact in facts {
        // A clock far ahead of ours must not advance the decider's time, which deadlines depend on.
        let fact = Recorded { at: fact.at.min(now + AHEAD), ..fact.clone() };
        new += usize::from(put(table, id, &fact).await? == Put::New);
    }
    if new < facts.len() {
        ring(table, id, now).await?;
    }
    Ok(new)
}

/// Rings: makes the decider read all facts of tuning `id` and of its live jobs.
pub async fn ring<T: Table>(table: &T, id: &str, now: Time) -> Result<(), TableError> {
    table.write(Write::Put(stored::ring_row(id, now), Condition::Always)).await
}
