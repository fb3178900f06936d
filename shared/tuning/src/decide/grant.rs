//! Asks the month's cap for money, and gives back what is not used.
//!
//! One asking and one return are open at a time. Asked is what all free slots could use, so that grants are few; given
//! back is what a tuning at its end, or one that can start nothing for long, does not use, and what it holds far above
//! its need.

use crate::definition::Definition;
use crate::limits::{GRANT_PATIENCE_MS, IDLE_MS};
use crate::money::MicroUsd;
use crate::ruling::Ruling;
use crate::runtime::{most_epochs, runtime_seconds};
use crate::state::{State, Status};

/// The asking without which a job that costs `reservation` at most cannot start; `None` while none may be made.
/// What it asks for besides is for the other free slots, unless the search is over (`at_end`).
pub(super) fn ask(
    definition: &Definition,
    state: &State,
    reservation: MicroUsd,
    at_end: bool,
) -> Option<Ruling> {
    let grants = &state.grants;
    if grants.open.is_some() || grants.denied.is_some_and(|denied| denied.retry_at > state.now) {
        return None;
    }
    let unused = state.ledger.unused()?;
    let slots = state.max_parallel(definition).saturating_sub(state.running());
    // After the search there is one job more.
    let left = if at_end { 0 } else { state.jobs_left(definition) };
    let jobs = slots.min(left.max(1));
    let all = MicroUsd(reservation.0.saturating_mul(u64::from(jobs)));
    let allowed = state.ledger.available().map_or(all, |available| all.min(available));
    let least = reservation.minus(unused);
    let wanted = allowed.minus(unused).max(least);
    Some(Ruling::GrantOrdered { n: grants.asked.saturating_add(1), least, wanted })
}

/// What is to be given back now.
pub(super) fn give_back(definition: &Definition, state: &State, at_end: bool) -> Option<Ruling> {
    let unused = state.ledger.unused()?;
    if !state.grants.is_settled() || unused == MicroUsd::ZERO || crate::planted!(ReturnForgotten) {
        return None;
    }
    let kept = kept(definition, state, unused, at_end);
    let (month, held) = state.grants.by_month.iter().rev().find(|(_, held)| **held > MicroUsd::ZERO)?;
    let amount = unused.minus(kept).min(*held);
    let n = state.grants.returned.saturating_add(1);
    (amount > MicroUsd::ZERO).then(|| Ruling::ReturnOrdered { n, month: month.clone(), amount })
}

/// How much of `unused` is still of use.
fn kept(definition: &Definition, state: &State, unused: MicroUsd, at_end: bool) -> MicroUsd {
    let over =
        state.status != Status::Active || state.jobs_left(definition) == 0 || state.ledger.overrun || at_end;
    if is_idle(state) || (over && at_end) {
        return MicroUsd::ZERO;
    }
    if over {
        return super::refit::kept(definition, state);
    }
    let longest = runtime_seconds(definition, state, false, most_epochs(definition));
    let limits = definition.limits_for(longest);
    let one = definition.worst_case(limits).unwrap_or(MicroUsd::ZERO);
    let need = MicroUsd(one.0.saturating_mul(u64::from(state.max_parallel(definition))));
    if unused.0 > need.0.saturating_mul(2) { need } else { unused }
}

/// Whether nothing can be started for long: then others may use the money.
fn is_idle(state: &State) -> bool {
    let idle_from = state.now.saturating_add(IDLE_MS);
    let mut waiting = state.trials.values().peekable();
    let all_wait = waiting.peek().is_some()
        && waiting.all(|trial| trial.job.is_none() && trial.retry_at.is_some_and(|at| at > idle_from));
    state.is_held_long() || all_wait || state.is_paused()
}

/// Whether a tuning of which nothing runs has waited long enough for the month's cap.
pub(crate) fn is_in_vain(state: &State) -> bool {
    let waited = |since: i64| state.now.saturating_sub(since) >= GRANT_PATIENCE_MS;
    state.grants.denied.is_some_and(|denied| waited(denied.since))
        && state.jobs().next().is_none()
        && !state.is_paused()
}

/// When the month's cap is asked again, or no longer waited for.
pub(super) fn deadlines(state: &State) -> impl Iterator<Item = i64> {
    // While it ends it asks only for the job that trains the best configuration once more.
    let asks = state.status == Status::Active || state.refit.is_some();
    let denied = state.grants.denied.filter(|_| asks);
    let patience = denied.map(|denied| denied.since.saturating_add(GRANT_PATIENCE_MS));
    denied.map(|denied| denied.retry_at).into_iter().chain(patience)
}
