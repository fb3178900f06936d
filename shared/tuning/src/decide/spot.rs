//! Lack of capacity: when a trial continues on demand or on other instances, and which of the request's instance
//! choices the next job runs on.

use crate::definition::Definition;
use crate::fact::JobKey;
use crate::ids::{ChoiceId, count};
use crate::quote::Quote;
use crate::ruling::StopWhy;
use crate::state::{Job, State, Trial};
use crate::time::Time;

/// Returns the stop reason of a spot job that was interrupted too often, if the cap lets its trial continue on demand.
pub(super) fn interrupted(
    definition: &Definition,
    state: &State,
    trial: &Trial,
    job: &Job,
) -> Option<StopWhy> {
    if !falls_back(definition, job) || job.interruptions <= definition.max_interruptions {
        return None;
    }
    let worst = Quote::of_fallback(definition, state, trial, job.rung).worst_case;
    // The reservation of the job is free once the job has ended.
    let left = state.ledger.available().map(|available| available.plus(job.reservation));
    left.is_none_or(|left| worst <= left).then_some(StopWhy::Interruptions { count: job.interruptions })
}

/// Returns whether the trial of a job continues on demand when spot capacity fails.
pub(crate) fn falls_back(definition: &Definition, job: &Job) -> bool {
    definition.job.spot && definition.spot_fallback && !job.on_demand
}

/// Returns the instance choice for the next job: the first that does not lack capacity, else the one that is asked
/// again soonest.
pub(crate) fn choice(definition: &Definition, state: &State) -> ChoiceId {
    let until = |choice: &ChoiceId| state.no_capacity_until.get(choice.index()).copied().unwrap_or(Time::MIN);
    let mut choices = definition.job.choices();
    let available = choices.find(|choice| until(choice) <= state.now);
    available.or_else(|| definition.job.choices().min_by_key(until)).unwrap_or_default()
}

/// Returns whether there are several instance choices and `choice` is not known to lack capacity.
pub(crate) fn is_available(definition: &Definition, state: &State, choice: ChoiceId) -> bool {
    !definition.job.fallbacks.is_empty() && !lacks_capacity(state, choice)
}

fn lacks_capacity(state: &State, choice: ChoiceId) -> bool {
    state.no_capacity_until.get(choice.index()).is_some_and(|until| *until > state.now)
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
    let mut others = definition.job.choices().filter(|choice| *choice != job.instances);
    trial.instance_switches < count(definition.job.fallbacks.len())
        && others.any(|choice| !lacks_capacity(state, choice))
}
