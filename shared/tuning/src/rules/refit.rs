//! The refit: after the search, trains the best configuration once more to the epoch of its best value, since stopped
//! jobs may have left no model. Its job counts towards the tuning's number of jobs, and its money is reserved from the
//! beginning.

use crate::definition::Definition;
use crate::log::fact::JobKey;
use crate::log::reasons::EndReason;
use crate::log::ruling::{Launch, Order, Ruling};
use crate::quote::Quote;
use crate::rules::grant;
use crate::state::front::FrontPoint;
use crate::state::results::Results;
use crate::state::{State, Status};
use crate::trial::Trial;
use crate::unit::ids::RungId;

/// Returns the order of the refit of a search that ends for the reason `why`, or the request for its money.
pub(crate) fn order(definition: &Definition, state: &State, why: &EndReason) -> Option<Ruling> {
    if !why.allows_refit()
        || !definition.refit
        || state.refit.is_some()
        || state.results.launched >= definition.limits.max_jobs
    {
        return None;
    }
    let best = refitted(definition, state)?;
    let of = definition.definition_of(best.job.trial);
    let Quote { limits, instances, worst_case: reservation } =
        Quote::of_epochs(definition, state, best.resource, best.size(definition));
    if !state.money.ledger.fits_cap(reservation) {
        return None;
    }
    if !state.money.ledger.fits(reservation) {
        return grant::ask(definition, state, reservation, true);
    }
    Some(Ruling::Order(Order::Start {
        job: JobKey {
            trial: definition.trial_from(state.search.next_trial, of),
            rung: RungId(0),
            attempt: 1,
        },
        bracket: definition.refit_bracket(of),
        configuration: best.configuration.clone(),
        origin: None,
        limits,
        reservation,
        round: 0,
        launch: Launch { resource: Some(best.resource), on_demand: false, instances, refit: true },
        promoted: None,
    }))
}

/// Returns the trial whose configuration the refit trains; `None` while no job counts.
fn refitted<'a>(definition: &Definition, state: &'a State) -> Option<&'a FrontPoint> {
    let Results { front, timings, .. } = &state.results;
    match definition.best_buy.filter(|best_buy| best_buy.is_refitted) {
        Some(best_buy) => front.best_buy(definition, timings, best_buy.tolerance),
        None => front.best(),
    }
}

/// Returns whether a trial may continue and be retried: the tuning is active, or the trial is the refit of a search
/// that has ended.
pub(crate) fn can_continue(definition: &Definition, state: &State, trial: &Trial) -> bool {
    let expired = || state.quota_has_expired() || state.capacity_wait_has_expired(definition);
    match &state.status {
        Status::Active => true,
        Status::Ending(why) => trial.refit().is_some() && why.allows_refit() && !expired(),
        Status::Ended { .. } => false,
    }
}
