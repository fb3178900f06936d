//! Planted bugs in the rulings: the decider sees another definition or state, or its ruling is altered.

use super::list::Part::{Forgets, Makes};
use super::list::{Mutation, altered_view, is_on};
use tuning::decide;
use tuning::definition::Definition;
use tuning::log::ruling::{Order, Ruling, SearchRuling};
use tuning::state::State;
use tuning::unit::money::MicroUsd;

/// Returns the next ruling like [`decide::next`], with the bug that is on.
pub(super) fn next(definition: &Definition, state: &State) -> Option<Ruling> {
    let usual = || decide::next(definition, state);
    let Some((alter, part)) = altered_view() else {
        return usual().map(|ruling| altered(definition, ruling));
    };
    let altered = || {
        let (mut definition, mut state) = (definition.clone(), state.clone());
        alter(&mut definition, &mut state);
        decide::next(&definition, &state)
    };
    match part {
        Makes(is_made) => altered().filter(is_made).or_else(usual),
        Forgets(is_forgotten) => {
            usual().and_then(|ruling| if is_forgotten(&ruling) { altered() } else { Some(ruling) })
        }
    }
}

/// Returns a ruling as the bug that is on alters it.
fn altered(definition: &Definition, mut ruling: Ruling) -> Ruling {
    if let Ruling::Search(SearchRuling::TrialJudged { value, verdict, .. }) = &mut ruling {
        if is_on(Mutation::OneMoreGoesOn) {
            verdict.allowed = verdict.allowed.saturating_add(1);
            verdict.continues = verdict.rank < verdict.allowed && value.is_some();
        }
        if is_on(Mutation::OneMoreStopped) {
            verdict.continues &= verdict.rank.saturating_add(1) < verdict.allowed;
        }
        if is_on(Mutation::PromoteDiverged) {
            verdict.continues = verdict.rank < verdict.allowed;
        }
    }
    if let Ruling::Order(Order::Start { job, bracket, limits, reservation, launch, .. }) = &mut ruling {
        if launch.on_demand && is_on(Mutation::OnDemandAtSpotLimits) {
            *limits =
                definition.limits_for(limits.max_runtime_seconds, definition.job.size(launch.instances));
            *reservation = definition.worst_case(*limits, launch.instances).unwrap_or(MicroUsd::ZERO);
        }
        if job.attempt > 1 && is_on(Mutation::ReuseName) {
            job.attempt = job.attempt.saturating_sub(1);
        }
        if job.attempt > 1 && is_on(Mutation::SizeForgotten) {
            launch.instances.0 -= definition.job.size(launch.instances).0;
        }
        if !launch.refit && definition.promotes().is_some() && is_on(Mutation::WrongLevel) {
            launch.resource = Some(definition.level(*bracket, job.rung.below().unwrap_or_default()));
        }
    }
    ruling
}
