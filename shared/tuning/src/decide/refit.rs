//! Trains the best configuration once more when the search is over, to its best resource: jobs that were stopped may have
//! left no model. Its job is one of the tuning's number of jobs, and money for it is kept back from the beginning.

use crate::definition::Definition;
use crate::fact::JobKey;
use crate::money::MicroUsd;
use crate::ruling::{EndReason, Launch, Ruling};
use crate::runtime::{most_epochs, runtime_seconds};
use crate::state::{State, Status, Trial};

/// Whether the best configuration is to be trained once more before the tuning ends for the reason `why`, as soon as starts
/// are not put off any more.
pub(super) fn is_put_off(definition: &Definition, state: &State, why: &EndReason) -> bool {
    super::finish::is_held(state) && due(definition, state, why).is_some()
}

/// The job that trains the best configuration once more, now that the tuning would end for the reason `why`.
pub(super) fn order(definition: &Definition, state: &State, why: Option<EndReason>) -> Option<Ruling> {
    if super::finish::is_held(state) { None } else { due(definition, state, &why?) }
}

fn due(definition: &Definition, state: &State, why: &EndReason) -> Option<Ruling> {
    if !is_followed(why)
        || !definition.refit
        || (state.refit.is_some() && !crate::planted!(RefitTwice))
        || state.launched >= definition.limits.max_jobs
    {
        return None;
    }
    let best = state.incumbent.as_ref()?;
    let limits = definition.limits_for(runtime_seconds(definition, state, false, best.resource));
    let instances = super::spot::choice(definition, state);
    let reservation = definition.worst_case_on(limits, instances).unwrap_or(MicroUsd::ZERO);
    if state.ledger.overrun || !state.ledger.fits_cap(reservation) {
        return None;
    }
    if !state.ledger.fits(reservation) {
        return super::grant::ask(definition, state, reservation, true);
    }
    Some(Ruling::StartOrdered {
        job: JobKey { trial: state.next_trial, rung: 0, attempt: 1 },
        // Of no bracket: it is compared with nobody.
        bracket: u32::try_from(definition.plan().brackets().len()).unwrap_or(u32::MAX),
        configuration: best.configuration.clone()?,
        limits,
        reservation,
        round: 0,
        launch: Launch { resource: Some(best.resource), on_demand: false, instances, refit: true },
    })
}

/// Whether the best configuration is trained once more after a search that ended for the reason `why`.
pub(crate) fn is_followed(why: &EndReason) -> bool {
    matches!(why, EndReason::MaxJobs | EndReason::CostCap | EndReason::Target | EndReason::NotImproving)
}

/// What is kept back for it: what it may cost at most, as far as is known by now.
pub(crate) fn kept(definition: &Definition, state: &State) -> MicroUsd {
    if !definition.refit || state.refit.is_some() || crate::planted!(RefitMoneySpent) {
        return MicroUsd::ZERO;
    }
    let limits = definition.limits_for(runtime_seconds(definition, state, false, most_epochs(definition)));
    definition.worst_case_on(limits, super::spot::choice(definition, state)).unwrap_or(MicroUsd::ZERO)
}

/// Whether the cap allows `amount` more besides what is kept back.
pub(crate) fn fits_cap(definition: &Definition, state: &State, amount: MicroUsd) -> bool {
    state.ledger.fits_cap(amount.plus(kept(definition, state)))
}

/// Whether a trial may go on and be tried again: its tuning goes on, or it is the one that trains the best configuration
/// once more.
pub(crate) fn goes_on(state: &State, trial: &Trial) -> bool {
    match &state.status {
        Status::Active => true,
        Status::Ending(why) => trial.refit.is_some() && is_followed(why) && !state.quota_is_in_vain(),
        Status::Ended { .. } => false,
    }
}
