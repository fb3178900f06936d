//! Stored requests to stop a tuning or one of its training jobs, as the sweeper finds them.
//!
//! The stop of a job is stored among the facts of this job, which the decider reads before it concludes the job. A
//! second row of the same fact is stored beside the stop of the tuning, so one query per tuning finds all requests.

use tuning::log::fact::Recorded;
use tuning::state::{State, Status};
use wire::stored;

use crate::ports::table::{Condition, Table, TableError, Write};
use crate::store::{Store, StoreError};

/// The key of a request to stop a tuning, and the beginning of the key of a request to stop one of its jobs.
pub(crate) const STOP: &str = "stop-requested";

/// Stores the second row of `fact`, a request to stop one job, unless it is known.
pub(crate) async fn list<T: Table>(table: &T, id: &str, fact: &Recorded) -> Result<(), TableError> {
    let mut row = stored::fact_row(id, fact);
    row.key.sk = format!("{}{}", stored::fact_prefix(None), fact.key);
    match table.write(Write::Put(row, Condition::NotExists)).await {
        Ok(()) | Err(TableError::Conflict(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns whether a stored request to stop the tuning or one of its live jobs is not folded into `state`.
pub(crate) async fn is_unfolded<T: Table>(
    store: &Store<T>,
    id: &str,
    state: &State,
) -> Result<bool, StoreError> {
    let is_active = state.status == Status::Active;
    // A stop of the user also counts if the job stops already: its trial then gets no further attempt.
    let open = state.jobs().filter(|(_, trial, _)| !trial.stop_requested);
    let mut awaited: Vec<String> = open.map(|(job, _, _)| format!("{STOP}#{job}")).collect();
    awaited.extend(is_active.then(|| STOP.to_owned()));
    if awaited.is_empty() {
        return Ok(false);
    }
    let prefix = stored::fact_prefix(None);
    let rows = store.all(&stored::fact_partition(id), &format!("{prefix}{STOP}")).await?;
    let mut keys = rows.iter().filter_map(|row| row.key.sk.strip_prefix(&prefix));
    Ok(keys.any(|key| awaited.iter().any(|awaited| awaited == key)))
}
