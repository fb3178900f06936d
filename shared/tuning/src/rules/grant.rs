//! Requests money from the month's cap and returns what the tuning does not use.
//!
//! At most one request and one return are open at a time. A request asks for what all free slots can use, so that
//! requests are few. A tuning returns unused money when it ends, when it can start nothing for long, or when it holds
//! far more than it needs.

use crate::definition::Definition;
use crate::log::ruling::{GrantOrder, Order, Ruling};
use crate::money::grants::{month_end, month_of};
use crate::quote::Quote;
use crate::state::{State, Status};
use crate::unit::limits::{GRANT_PATIENCE, IDLE};
use crate::unit::money::MicroUsd;
use crate::unit::time::Time;

/// Requests the money without which a job that costs at most `reservation` cannot start.
///
/// Returns `None` while another request is open, or until the next retry after a denial. The request also covers the
/// other free slots, unless the search is over (`at_end`).
pub(crate) fn ask(
    definition: &Definition,
    state: &State,
    reservation: MicroUsd,
    at_end: bool,
) -> Option<Ruling> {
    let grants = &state.grants;
    state.ledger.granted?;
    if grants.open.is_some() || grants.denied.is_some_and(|denied| denied.retry_at > state.now) {
        return None;
    }
    let slots = state.max_parallel(definition).saturating_sub(state.running());
    // Only the refit starts after the search.
    let left = if at_end { 0 } else { state.jobs_left(definition) };
    let jobs = slots.min(left.max(1));
    let all = MicroUsd(reservation.0.saturating_mul(u64::from(jobs)));
    let allowed = state.ledger.available().map_or(all, |available| all.min(available));
    let least = state.ledger.missing(reservation);
    let wanted = state.ledger.missing(allowed).max(least);
    Some(Ruling::Order(Order::Grant(GrantOrder::Request {
        n: grants.asked.saturating_add(1),
        least,
        wanted,
    })))
}

/// Moves the unspent part of earlier months' grants on to the present month, in which it is spent.
///
/// This may exceed the present month's cap if other tunings were faster. Then the month grants nothing more. Money of the
/// earliest month is spent first.
pub(crate) fn moved_on(state: &State) -> Option<Ruling> {
    let unspent = state.ledger.granted?.minus(state.ledger.spent);
    if !state.grants.is_settled() {
        return None;
    }
    // The time of a line may be wrong, so only the sweeper's time ends a month.
    let present = month_of(state.clock);
    let (month, amount) = state.grants.unspent_before(&present, unspent)?;
    let n = state.grants.returned.saturating_add(1);
    Some(Ruling::Order(Order::Grant(GrantOrder::Return {
        n,
        month: month.clone(),
        amount,
        moved_to: Some(present),
    })))
}

/// Returns unused money above `kept` to the month it came from.
pub(crate) fn return_unused(state: &State, kept: MicroUsd) -> Option<Ruling> {
    let unused = state.ledger.unused()?;
    if !state.grants.is_settled() {
        return None;
    }
    let (month, held) = state.grants.by_month.iter().rev().find(|(_, held)| **held > MicroUsd::ZERO)?;
    let amount = unused.minus(kept).min(*held);
    let n = state.grants.returned.saturating_add(1);
    (amount > MicroUsd::ZERO).then(|| {
        Ruling::Order(Order::Grant(GrantOrder::Return { n, month: month.clone(), amount, moved_to: None }))
    })
}

/// Returns how much unused money a tuning keeps whose search is not over.
pub(crate) fn kept(definition: &Definition, state: &State) -> MicroUsd {
    let Some(unused) = state.ledger.unused() else { return MicroUsd::ZERO };
    if is_idle(state) {
        return MicroUsd::ZERO;
    }
    if state.status != Status::Active || state.jobs_left(definition) == 0 {
        return crate::quote::reserve(definition, state);
    }
    let one = Quote::of_longest(definition, state).worst_case;
    let need = MicroUsd(one.0.saturating_mul(u64::from(state.max_parallel(definition))));
    if unused.0 > need.0.saturating_mul(2) { need } else { unused }
}

/// Returns whether nothing can start for long, so that other tunings should have the money.
fn is_idle(state: &State) -> bool {
    let idle_from = state.now + IDLE;
    let mut waiting = state.trials.values().peekable();
    let all_wait = waiting.peek().is_some()
        && waiting.all(|trial| trial.job.is_none() && trial.retry_at.is_some_and(|at| at > idle_from));
    state.is_held_long() || state.lacks_capacity_long() || all_wait || state.is_paused()
}

/// Returns whether a tuning without running jobs has waited long enough for the month's cap.
pub(crate) fn has_expired(state: &State) -> bool {
    let waited = |since: Time| state.now - since >= GRANT_PATIENCE;
    state.grants.denied.is_some_and(|denied| waited(denied.since))
        && state.jobs().next().is_none()
        && !state.awaits_bills()
        && !state.is_paused()
}

/// Returns when the month's cap is asked again, and when the wait for it expires.
pub(crate) fn deadlines(state: &State) -> impl Iterator<Item = Time> {
    // A tuning that is ending asks only for its refit.
    let asks = state.status == Status::Active || state.refit.is_some();
    let denied = state.grants.denied.filter(|_| asks);
    let patience = denied.map(|denied| denied.since + GRANT_PATIENCE);
    denied.map(|denied| denied.retry_at).into_iter().chain(patience)
}

/// Returns when the month ends, so that unspent grants move on.
pub(crate) fn turn_of_month(state: &State) -> Option<Time> {
    state.ledger.granted.map(|_| month_end(state.clock))
}
