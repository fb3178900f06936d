//! Spot capacity and its alternatives: when a job whose instances are taken away too often goes on on demand, and which of
//! the request's choices of instances the next job runs on.

use crate::definition::Definition;
use crate::fact::JobKey;
use crate::ruling::StopWhy;
use crate::runtime::{epochs_of, runtime_seconds};
use crate::state::{Job, State, Trial};

/// Why a job is stopped that was interrupted too often, if its trial can go on on demand within the cap.
pub(super) fn interrupted(
    definition: &Definition,
    state: &State,
    trial: &Trial,
    job: &Job,
) -> Option<StopWhy> {
    let spot = definition.job.spot && definition.spot_fallback && !job.on_demand;
    let early = u32::from(crate::planted!(OnDemandTooSoon));
    if !spot || job.interruptions.saturating_add(early) <= definition.max_interruptions {
        return None;
    }
    let epochs = epochs_of(definition, trial.bracket, job.rung);
    let limits = definition.limits_of(runtime_seconds(definition, state, trial.full_limit, epochs), true);
    let worst = definition.worst_case_on(limits, choice(definition, state)).unwrap_or_default();
    // Its own reservation is free when it has ended.
    let left = state.ledger.available().map(|available| available.plus(job.reservation));
    left.is_none_or(|left| worst <= left).then_some(StopWhy::Interruptions { count: job.interruptions })
}

/// The choice of instances for the next job: the first that does not lack capacity, or the one that is soonest asked for
/// again.
pub(crate) fn choice(definition: &Definition, state: &State) -> u32 {
    let until = |choice: u32| {
        let index = usize::try_from(choice).unwrap_or(usize::MAX);
        state.short_until.get(index).copied().unwrap_or(i64::MIN)
    };
    let mut choices = 0..definition.job.choices();
    choices
        .clone()
        .find(|choice| until(*choice) <= state.now)
        .or_else(|| choices.by_ref().min_by_key(|choice| until(*choice)))
        .unwrap_or(0)
}

/// Whether there are several choices of instances, and this one is not known to be lacking.
pub(crate) fn is_to_be_had(definition: &Definition, state: &State, choice: u32) -> bool {
    let index = usize::try_from(choice).unwrap_or(usize::MAX);
    definition.job.choices() > 1 && state.short_until.get(index).is_none_or(|until| *until <= state.now)
}

/// Why a job that a quota keeps from starting is called off: there are other instances to be had.
pub(super) fn limited(definition: &Definition, state: &State, trial: &Trial, job: &Job) -> Option<StopWhy> {
    (job.limited && !job.accepted && moves_on(definition, state, trial, job))
        .then_some(StopWhy::NextInstances)
}

/// Why a job that a quota keeps from starting is called off: nothing runs for long, and one job that stays ordered is enough
/// to see when there is room again.
pub(super) fn called_off(state: &State, key: JobKey, job: &Job) -> Option<StopWhy> {
    let probe = state.jobs().find(|(_, _, job)| job.holds_slot() && job.stop.is_none());
    let other = probe.is_some_and(|(probe, _, _)| probe != key);
    (job.limited && !job.accepted && other && state.is_held_long()).then_some(StopWhy::Quota)
}

/// Whether the trial of a job for which there was no capacity goes on at once with other instances: there are some that are
/// not known to lack it, and not all were tried since it last waited.
pub(crate) fn moves_on(definition: &Definition, state: &State, trial: &Trial, job: &Job) -> bool {
    let short = |choice: u32| {
        let index = usize::try_from(choice).unwrap_or(usize::MAX);
        state.short_until.get(index).is_some_and(|until| *until > state.now)
    };
    let choices = definition.job.choices();
    trial.moves.saturating_add(1) < choices
        && (0..choices).any(|choice| choice != job.instances && !short(choice))
}
