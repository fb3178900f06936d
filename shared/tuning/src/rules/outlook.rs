//! The outlook of a tuning: whether a job can still start, and which results the tuning waits for. Computed once for
//! each call of [`next`](crate::decide::next) that reaches these rules.

use crate::definition::Definition;
use crate::log::reasons::EndReason;
use crate::rules::{Outlook, start};
use crate::state::{State, Status};

/// Returns what can still happen.
pub(crate) fn outlook(definition: &Definition, state: &State) -> Outlook {
    if let Some(start) = start::start(definition, state) {
        return Outlook::Start(Box::new(start));
    }
    if !state.trials.is_empty() || state.money.awaits_bills() || !state.money.pools.is_empty() {
        return Outlook::Busy;
    }
    let awaits_grant = state.money.grants.open.is_some() || state.money.grants.denied.is_some();
    match &state.status {
        Status::Ending(why) | Status::Ended { why, .. } => Outlook::Over(why.clone()),
        // One job may be left: too few for a trial and its promotion.
        Status::Active if state.search.waiting.is_empty() && !start::has_jobs(definition, state) => {
            Outlook::Over(EndReason::MaxJobs)
        }
        Status::Active if state.is_paused() => Outlook::Deferred,
        Status::Active if is_deferred(definition, state) && start::has_next(definition, state) => {
            Outlook::Deferred
        }
        Status::Active if awaits_grant => Outlook::Deferred,
        Status::Active => Outlook::Over(EndReason::CostCap),
    }
}

/// Returns whether starts are deferred for now.
pub(crate) fn is_deferred(definition: &Definition, state: &State) -> bool {
    state.is_paused()
        || state.capacity.lacks.iter().any(|lack| state.awaits_capacity(definition, lack.size))
        || state.capacity.no_start_before.is_some_and(|until| until > state.now)
}
