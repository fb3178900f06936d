//! Lack of capacity: when a trial continues on demand or on other instances, and which instance choice of the request
//! the next job uses.

use crate::definition::Definition;
use crate::job::Job;
use crate::log::fact::JobKey;
use crate::log::reasons::StopWhy;
use crate::quote::Quote;
use crate::state::State;
use crate::state::capacity::{can_switch_instances, falls_back, must_leave_small_quota};
use crate::trial::Trial;
use crate::unit::time::Time;

/// Returns the stop reason of a spot job that was interrupted too often, if the cap lets its trial continue on demand.
pub(crate) fn interrupted(
    definition: &Definition,
    state: &State,
    trial: &Trial,
    job: &Job,
) -> Option<StopWhy> {
    if !falls_back(definition, job) || job.interruptions() <= definition.settings.max_interruptions {
        return None;
    }
    let worst = Quote::of_fallback(definition, state, trial, job.order.rung).worst_case;
    // The reservation of the job is free once the job has ended.
    let left = state.money.ledger.available().map(|available| available.plus(job.bill.reservation));
    left.is_none_or(|left| worst <= left).then_some(StopWhy::Interruptions { count: job.interruptions() })
}

/// Returns the reason to cancel a job whose cluster size no quota of the account allows, if smaller ones may start.
pub(crate) fn out_of_reach(definition: &Definition, state: &State, job: &Job) -> Option<StopWhy> {
    let size = definition.job.size(job.order.instances);
    (job.is_blocked_by_quota() && state.capacity.is_out_of_reach(definition, size))
        .then_some(StopWhy::OutOfReach)
}

/// Returns the reason to cancel a job that a quota blocks, if its trial can continue on other instances.
pub(crate) fn next_instances(
    definition: &Definition,
    state: &State,
    trial: &Trial,
    job: &Job,
) -> Option<StopWhy> {
    let moves = || {
        can_switch_instances(definition, state, trial, job) || must_leave_small_quota(definition, state, job)
    };
    (job.is_blocked_by_quota() && moves()).then_some(StopWhy::NextInstances)
}

/// Returns when instances count as having capacity again, for jobs that a quota blocks.
pub(crate) fn next_instances_at(state: &State) -> impl Iterator<Item = Time> {
    let is_blocked = state.jobs().any(|(_, _, job)| job.is_blocked_by_quota());
    state.capacity.no_capacity_until.iter().copied().filter(move |_| is_blocked)
}

/// Returns the reason to cancel a job that a quota blocks while nothing runs for long: one ordered job is enough to
/// notice when the quota has room again.
pub(crate) fn blocked_by_quota(state: &State, key: JobKey, job: &Job) -> Option<StopWhy> {
    let probe = state.jobs().find(|(_, _, job)| job.holds_slot() && job.stop.is_none());
    let other = probe.is_some_and(|(probe, _, _)| probe != key);
    (job.is_blocked_by_quota() && other && state.is_deferred_long()).then_some(StopWhy::Quota)
}
