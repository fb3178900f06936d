//! The outlook of a tuning: whether a job can still start, and which results the tuning waits for. Computed once for
//! each call of [`next`](crate::decide::next) that reaches these rules.

use crate::definition::Definition;
use crate::log::reasons::EndReason;
use crate::log::ruling::Ruling;
use crate::rules::start;
use crate::state::{State, Status};

/// What can still happen.
pub(crate) enum Outlook {
    /// A job can start now; holds its order, or the request for its money.
    Start(Ruling),
    /// No job can start now, but a trial is live, or an open bill or a warm pool may free money for another job.
    Busy,
    /// Nothing is live. A start is deferred or waits for a grant.
    Deferred,
    /// Nothing is live or awaited: the search ends for this reason, and trials that wait at a rung are eliminated.
    Over(EndReason),
}

impl Outlook {
    pub(crate) fn of(definition: &Definition, state: &State) -> Self {
        if let Some(start) = start::start(definition, state) {
            return Self::Start(start);
        }
        if !state.trials.is_empty() || state.awaits_bills() || !state.pools.is_empty() {
            return Self::Busy;
        }
        let awaits_grant = state.grants.open.is_some() || state.grants.denied.is_some();
        match &state.status {
            Status::Ending(why) | Status::Ended { why, .. } => Self::Over(why.clone()),
            // One job may be left: too few for a trial and its promotion.
            Status::Active if state.waiting.is_empty() && !start::has_jobs(definition, state) => {
                Self::Over(EndReason::MaxJobs)
            }
            Status::Active if state.is_paused() => Self::Deferred,
            Status::Active if is_deferred(state) && start::has_next(definition, state) => Self::Deferred,
            Status::Active if awaits_grant => Self::Deferred,
            Status::Active => Self::Over(EndReason::CostCap),
        }
    }
}

/// Returns whether starts are deferred for now.
pub(crate) fn is_deferred(state: &State) -> bool {
    state.is_paused()
        || state.awaits_capacity()
        || state.no_start_before.is_some_and(|until| until > state.now)
}
