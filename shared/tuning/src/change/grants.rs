//! Folds the answers of the month's cap. An answer counts once, and only for the request that is open.

use crate::log::fact::Fact;
use crate::money::grants::Denied;
use crate::state::State;
use crate::unit::limits::GRANT_RETRY;
use crate::unit::money::MicroUsd;
use crate::unit::time::Time;

/// Folds a grant or a denial; returns whether the state changed.
pub(crate) fn granted(state: &mut State, fact: &Fact, at: Time) -> bool {
    let Fact::BudgetGranted { n, month, amount, reached } = fact else { return false };
    let grants = &mut state.money.grants;
    if grants.open != Some(*n) {
        return false;
    }
    grants.open = None;
    let level = reached.map(|percent| (month.clone(), percent));
    grants.unpublished.extend(level.filter(|level| !grants.published.contains(level)));
    if *amount == MicroUsd::ZERO {
        let since = grants.denied.map_or(at, |denied| denied.since);
        grants.denied = Some(Denied { since, retry_at: at + GRANT_RETRY });
        return true;
    }
    grants.denied = None;
    let held = grants.by_month.entry(month.clone()).or_default();
    *held = held.plus(*amount);
    state.money.ledger.granted = state.money.ledger.granted.map(|granted| granted.plus(*amount));
    true
}
