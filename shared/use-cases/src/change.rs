//! Changes the limits of a running tuning: its cap, the number of parallel jobs, or a pause.
//!
//! Stores a fact and returns; the decider applies it. Running jobs continue, even if a limit is lowered.

use thiserror::Error;
use tuning::log::fact::{Fact, Recorded};
use tuning::unit::limits::MAX_RANKED_LINES;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use wire::change::LimitsChange;
use wire::names::digest;
use wire::request::{RequestError, excess_lines, usd};
use wire::stored;

use crate::active::name_in;
use crate::lookup::{LookupError, find};
use crate::ports::table::Table;
use crate::record;
use crate::store::{Store, StoreError, Tuning};
use crate::submit::Guardrails;

const CHANGE: &str = "change#";

/// Why limits could not be changed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ChangeError {
    /// 400: the body is invalid, or the tuning does not allow the change.
    #[error(transparent)]
    Refused(#[from] RequestError),
    /// 403: the change raises the cap, and the caller may not.
    #[error(
        "this caller may not raise MaxCostUsd above {} USD: lower it, or ask an owner of the stack (OwnerPrincipals) to \
         raise it",
        usd(*.0)
    )]
    Raise(MicroUsd),
    /// The tuning does not exist or has ended.
    #[error(transparent)]
    Lookup(#[from] LookupError),
}

impl From<StoreError> for ChangeError {
    fn from(error: StoreError) -> Self {
        Self::Lookup(error.into())
    }
}

/// Stores a request to change the limits of the tuning named `name`, without guardrails. Equal bodies at the same
/// millisecond are one request.
pub async fn change<T: Table>(
    store: &Store<T>,
    name: &str,
    body: &[u8],
    now: Time,
) -> Result<(), ChangeError> {
    change_found(store, &Guardrails::default(), true, &find(store, name).await?.id, body, now).await
}

/// Like [`change`], but for tuning `id`, and within the guardrails of the stack. Unless `may_raise`, refuses a cap above
/// the present one.
pub async fn change_found<T: Table>(
    store: &Store<T>,
    guardrails: &Guardrails,
    may_raise: bool,
    id: &str,
    body: &[u8],
    now: Time,
) -> Result<(), ChangeError> {
    let asked = LimitsChange::parse(body)?;
    guardrails.check_change(&asked)?;
    let LimitsChange { cap, max_parallel, paused } = asked;
    let head = store.head(id).await?;
    let status = head.map_or_else(|| "InProgress".to_owned(), |head| head.status);
    if status != "InProgress" {
        return Err(LookupError::AlreadyEnded(status).into());
    }
    let missing = || LookupError::NotFound(name_in(id).to_owned());
    let tuning = store.tuning(id).await?.ok_or_else(missing)?;
    if let Some(cap) = cap {
        priced(&tuning)?;
        if !may_raise {
            let present = present_cap(store, id).await?.ok_or_else(missing)?;
            // A tuning without a cap accepts any.
            if let Some(present) = present.filter(|present| cap > *present) {
                return Err(ChangeError::Raise(present));
            }
        }
    }
    if let Some(most) = max_parallel {
        countable(&tuning, most)?;
    }
    let fact = Fact::LimitsChanged { cap, max_parallel, paused };
    let key = format!("{CHANGE}{now}#{}", digest(format!("{fact:?}").as_bytes()));
    let recorded = Recorded { key, at: now, fact };
    record::deliver(&*store.table, id, &[recorded], now).await.map_err(StoreError::from)?;
    Ok(())
}

/// Returns the cap of a tuning with its stored changes, also those that no step contains yet; `None` = the tuning does
/// not exist.
async fn present_cap<T: Table>(store: &Store<T>, id: &str) -> Result<Option<Option<MicroUsd>>, StoreError> {
    let Some(loaded) = store.load(id).await? else { return Ok(None) };
    let prefix = format!("{}{CHANGE}", stored::fact_prefix(None));
    let rows = store.all(&stored::fact_partition(id), &prefix).await?;
    let facts = rows.iter().map(stored::fact).collect::<Result<Vec<_>, _>>()?;
    let changes = facts.into_iter().filter_map(|recorded| match recorded.fact {
        Fact::LimitsChanged { cap: Some(cap), .. } => Some((recorded.at, recorded.key, cap)),
        _ => None,
    });
    // Facts expire, the oldest first. So the newest stored change is the newest of all.
    let newest =
        changes.max_by(|(at, key, _), (other_at, other_key, _)| (at, key).cmp(&(other_at, other_key)));
    Ok(Some(newest.map_or(loaded.state.money.ledger.cap, |(_, _, cap)| Some(cap))))
}

/// Rejects a cap for a tuning without a price.
fn priced(tuning: &Tuning) -> Result<(), RequestError> {
    let known = tuning.definition.least_cap().is_some();
    let unknown = || tuning.request.price_unknown(&tuning.definition, "MaxCostUsd");
    if known { Ok(()) } else { Err(unknown()) }
}

/// Rejects too many parallel jobs for a tuning that counts epochs.
fn countable(tuning: &Tuning, most: u32) -> Result<(), RequestError> {
    let Some(lines) = excess_lines(&tuning.definition, most) else { return Ok(()) };
    let message = format!(
        "without EpochPattern, MaxResource times MaxParallelTrainingJobs must be at most {MAX_RANKED_LINES}, not \
         {lines}"
    );
    Err(RequestError::field("MaxParallelTrainingJobs", &message))
}
