//! Lack of capacity: when a trial continues on demand or on other instances, and which of the request's instance
//! choices the next job runs on.

use crate::definition::Definition;
use crate::fact::JobKey;
use crate::ruling::StopWhy;
use crate::runtime::{epochs_of, runtime_seconds};
use crate::state::{Job, State, Trial};

/// Returns the stop reason of a spot job that was interrupted too often, if the cap lets its trial continue on demand.
pub(super) fn interrupted(
    definition: &Definition,
    state: &State,
    trial: &Trial,
    job: &Job,
) -> Option<StopWhy> {
    let spot = definition.job.spot && definition.spot_fallback && !job.on_demand;
    if !spot || job.interruptions <= definition.max_interruptions {
        return None;
    }
    let epochs = epochs_of(definition, trial.bracket, job.rung);
    let limits = definition.limits_of(runtime_seconds(definition, state, trial.full_limit, epochs), true);
    let worst = definition.worst_case_on(limits, choice(definition, state)).unwrap_or_default();
    // The reservation of the job is free once the job has ended.
    let left = state.ledger.available().map(|available| available.plus(job.reservation));
    left.is_none_or(|left| worst <= left).then_some(StopWhy::Interruptions { count: job.interruptions })
}

/// Returns the instance choice for the next job: the first that does not lack capacity, else the one that is asked
/// again soonest.
pub(crate) fn choice(definition: &Definition, state: &State) -> u32 {
    let until = |choice: u32| {
        let index = usize::try_from(choice).unwrap_or(usize::MAX);
        state.no_capacity_until.get(index).copied().unwrap_or(i64::MIN)
    };
    let mut choices = 0..definition.job.choices();
    choices
        .clone()
        .find(|choice| until(*choice) <= state.now)
        .or_else(|| choices.by_ref().min_by_key(|choice| until(*choice)))
        .unwrap_or(0)
}

/// Returns whether there are several instance choices and `choice` is not known to lack capacity.
pub(crate) fn is_available(definition: &Definition, state: &State, choice: u32) -> bool {
    let index = usize::try_from(choice).unwrap_or(usize::MAX);
    definition.job.choices() > 1 && state.no_capacity_until.get(index).is_none_or(|until| *until <= state.now)
}

/// Returns the reason to cancel a job that a quota blocks, if its trial can continue on other instances.
pub(super) fn next_instances(
    definition: &Definition,
    state: &State,
    trial: &Trial,
    job: &Job,
) -> Option<StopWhy> {
    (job.quota_exceeded && !job.accepted && can_switch_instances(definition, state, trial, job))
        .then_some(StopWhy::NextInstances)
}

/// Returns the reason to cancel a job that a quota blocks while nothing runs for long: one ordered job is enough to
/// notice when the quota has room again.
pub(super) fn blocked_by_quota(state: &State, key: JobKey, job: &Job) -> Option<StopWhy> {
    let probe = state.jobs().find(|(_, _, job)| job.holds_slot() && job.stop.is_none());
    let other = probe.is_some_and(|(probe, _, _)| probe != key);
    (job.quota_exceeded && !job.accepted && other && state.is_held_long()).then_some(StopWhy::Quota)
}

/// Returns whether the trial of a job without capacity continues at once on other instances: some are not known to
/// lack capacity, and the trial has not tried all since it last waited.
pub(crate) fn can_switch_instances(definition: &Definition, state: &State, trial: &Trial, job: &Job) -> bool {
    let short = |choice: u32| {
        let index = usize::try_from(choice).unwrap_or(usize::MAX);
        state.no_capacity_until.get(index).is_some_and(|until| *until > state.now)
    };
    let choices = definition.job.choices();
    trial.instance_switches.saturating_add(1) < choices
        && (0..choices).any(|choice| choice != job.instances && !short(choice))
}
