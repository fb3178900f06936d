//! Requests money from the month's cap and returns what the tuning does not use.
//!
//! At most one request and one return are open at a time. A request asks for the amount that all free slots can use, so
//! that requests are few. A tuning returns unused money when it ends, cannot start a job for a long time, or holds far
//! more than it needs.

use crate::definition::Definition;
use crate::log::ruling::{GrantOrder, Order, Ruling};
use crate::money::grants::{Denied, month_end, month_of};
use crate::quote::Quote;
use crate::rules::Outlook;
use crate::rules::{Rule, never, nothing};
use crate::state::{State, Status};
use crate::unit::limits::{GRANT_WAIT_MAX, IDLE};
use crate::unit::money::MicroUsd;
use crate::unit::time::Time;

/// Moves unspent money on to the present month.
pub(crate) const MOVED_ON: Rule = Rule {
    next: |view| moved_on(view.state),
    wakes: |view| view.by_clock(turn_of_month(view.state)),
    folds_first: nothing,
};

/// Returns unused money while no job can start.
pub(crate) const RETURN_UNUSED: Rule = Rule {
    next: |view| match view.outlook() {
        Outlook::Busy | Outlook::Deferred => return_unused(view.state, kept(view.definition, view.state)),
        Outlook::Start(_) | Outlook::Over(_) => None,
    },
    wakes: never,
    folds_first: nothing,
};

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
    let grants = &state.money.grants;
    state.money.ledger.granted?;
    if grants.open.is_some() || grants.denied.is_some_and(|denied| denied.retry_at > state.now) {
        return None;
    }
    let slots = state.max_parallel(definition).saturating_sub(state.running());
    // Only the refit starts after the search.
    let left = if at_end { 0 } else { state.jobs_left(definition) };
    let jobs = slots.min(left.max(1));
    let all = MicroUsd(reservation.0.saturating_mul(u64::from(jobs)));
    let allowed = state.money.ledger.available().map_or(all, |available| all.min(available));
    let least = state.money.ledger.missing(reservation);
    let wanted = state.money.ledger.missing(allowed).max(least);
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
    let unspent = state.money.ledger.granted?.minus(state.money.ledger.spent);
    if !state.money.grants.is_settled() {
        return None;
    }
    // The time of a line may be wrong, so only the sweeper's time ends a month.
    let present = month_of(state.clock);
    let (month, amount) = state.money.grants.unspent_before(&present, unspent)?;
    let n = state.money.grants.returned.saturating_add(1);
    Some(Ruling::Order(Order::Grant(GrantOrder::Return {
        n,
        month: month.clone(),
        amount,
        moved_to: Some(present),
    })))
}

/// Returns unused money above `kept` to the month it came from.
pub(crate) fn return_unused(state: &State, kept: MicroUsd) -> Option<Ruling> {
    let unused = state.money.ledger.unused()?;
    if !state.money.grants.is_settled() {
        return None;
    }
    let (month, granted) =
        state.money.grants.by_month.iter().rev().find(|(_, granted)| **granted > MicroUsd::ZERO)?;
    let amount = unused.minus(kept).min(*granted);
    let n = state.money.grants.returned.saturating_add(1);
    (amount > MicroUsd::ZERO).then(|| {
        Ruling::Order(Order::Grant(GrantOrder::Return { n, month: month.clone(), amount, moved_to: None }))
    })
}

/// Returns how much unused money a tuning keeps whose search is not over.
pub(crate) fn kept(definition: &Definition, state: &State) -> MicroUsd {
    let Some(unused) = state.money.ledger.unused() else { return MicroUsd::ZERO };
    if is_idle(definition, state) {
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
fn is_idle(definition: &Definition, state: &State) -> bool {
    let idle_from = state.now + IDLE;
    let mut waiting = state.trials.values().peekable();
    let all_wait =
        waiting.peek().is_some() && waiting.all(|trial| trial.not_before().is_some_and(|at| at > idle_from));
    state.is_deferred_long() || state.lacks_capacity_long(definition) || all_wait || state.is_paused()
}

/// Returns whether a tuning without running jobs has waited long enough for the month's cap.
pub(crate) fn has_expired(state: &State) -> bool {
    let waited = |since: Time| state.now - since >= GRANT_WAIT_MAX;
    state.money.grants.denied.is_some_and(|denied| waited(denied.since))
        && state.jobs().next().is_none()
        && !state.money.awaits_bills()
        && !state.is_paused()
}

/// Returns when the month's cap is asked again.
pub(crate) fn retry_at(state: &State) -> Option<Time> {
    denied(state).map(|denied| denied.retry_at)
}

/// Returns when the wait for the month's cap expires.
pub(crate) fn expires_at(state: &State) -> Option<Time> {
    denied(state).map(|denied| denied.since + GRANT_WAIT_MAX)
}

/// Returns the denial of a tuning that asks again. One that is ending asks only for its refit.
fn denied(state: &State) -> Option<Denied> {
    let asks = state.status == Status::Active || state.refit.is_some();
    state.money.grants.denied.filter(|_| asks)
}

/// Returns when the month ends, so that unspent grants move on.
pub(crate) fn turn_of_month(state: &State) -> Option<Time> {
    state.money.ledger.granted.map(|_| month_end(state.clock))
}
