//! The decider's own clock over the time that a reservation pays for.
//!
//! The service bills a job from before its download until after its upload, bounds neither, and has exceeded short limits.
//! So the limits that it enforces do not bound a bill. Where money is limited, three rules complete them:
//!
//! 1. A job is stopped so early that the stop and its upload are still paid for ([`stop`]).
//! 2. A job that is seen to last longer all the same reserves the time to come ([`extended`]). While it lasts, the sweeper
//!    reports it in every sweep.
//! 3. If the cap does not pay for that, the youngest other jobs are stopped as long as that saves money ([`stop_other`]).

use std::cmp::Reverse;

use crate::definition::Definition;
use crate::fact::JobPhase;
use crate::ids::ChoiceId;
use crate::limits::{EXTENSION_DIVISOR, EXTENSION_SECONDS, SWEEP_INTERVAL_SECONDS};
use crate::money::MicroUsd;
use crate::ruling::{Order, Ruling, StopWhy};
use crate::state::{Job, State};
use crate::time::{Millis, Time};

/// Returns the stop reason of a job that has nearly used up what its reservation pays for.
pub(super) fn stop(definition: &Definition, state: &State, job: &Job) -> Option<StopWhy> {
    let seconds = stop_seconds(definition, job);
    let due = stop_at(definition, state, job).is_some_and(|at| at <= state.clock);
    due.then_some(StopWhy::ReservationUsed { seconds })
}

/// Reserves more for the next job that is seen to last longer than its reservation pays for.
///
/// Only a sign of life counts, not the time: a job that was deleted, or whose end is on its way, costs no more.
pub(super) fn extended(definition: &Definition, state: &State) -> Option<Ruling> {
    state.jobs().find_map(|(key, _, job)| {
        started(state, job)?;
        if used_at(definition, job)? > job.seen_at {
            return None;
        }
        let billed = billed_seconds(job, job.seen_at);
        let ahead = billed.checked_div(EXTENSION_DIVISOR).unwrap_or(0).max(EXTENSION_SECONDS);
        let seconds = billed.saturating_add(ahead);
        let pool = definition.pool_worst_case(job.limits, job.instances).unwrap_or(MicroUsd::ZERO);
        let amount = cost(definition, job.instances, seconds).plus(pool).minus(job.reservation);
        Some(Ruling::ReservationExtended { job: key, seconds, amount })
    })
}

/// Stops the youngest job whose stop saves money, if the cap does not pay for what a job past its reservation takes.
///
/// The amounts of jobs that stop count as if their stop took as long as a reservation allows.
pub(super) fn stop_other(definition: &Definition, state: &State) -> Option<Ruling> {
    let by = state.jobs().find(|(_, _, job)| job.extension.amount > MicroUsd::ZERO).map(|(key, _, _)| key)?;
    if shortfall(definition, state) == MicroUsd::ZERO {
        return None;
    }
    let others = state.jobs().filter(|(_, _, job)| {
        let runs = job.stop.is_none() && job.holds_slot() && !job.is_closed();
        // Nothing ends an upload early.
        runs && job.phase != JobPhase::Uploading && saved(definition, state, job) > MicroUsd::ZERO
    });
    // The refit starts last, but its model is the result.
    let youngest =
        others.min_by_key(|(key, trial, job)| (trial.refit.is_some(), Reverse((job.ordered, *key))));
    youngest.map(|(job, _, _)| Ruling::Order(Order::Stop { job, why: StopWhy::CapExceeded { by } }))
}

/// Returns when the next job has to stop.
pub(super) fn deadline(definition: &Definition, state: &State) -> Option<Time> {
    let times = state.jobs().filter_map(|(_, _, job)| stop_at(definition, state, job));
    times.filter(|at| *at > state.clock).min()
}

/// Returns the billed time at which a job has to stop: what its first reservation pays for, without the stop itself and
/// without the time by which the order may be late.
fn stop_seconds(definition: &Definition, job: &Job) -> u64 {
    let late = definition.job.allowances.stop_seconds().saturating_add(SWEEP_INTERVAL_SECONDS);
    definition.reserved_seconds(job.limits).saturating_sub(late)
}

/// Returns when a job has to stop; `None` while its start is not known, and while it uploads its model: a stop would only
/// lose the model.
fn stop_at(definition: &Definition, state: &State, job: &Job) -> Option<Time> {
    let started = started(state, job).filter(|_| job.stop.is_none() && job.phase != JobPhase::Uploading)?;
    Some(started + Millis::from_seconds(stop_seconds(definition, job)))
}

/// Returns when a job that began to run has used up what its reservation pays for.
pub(super) fn used_at(definition: &Definition, job: &Job) -> Option<Time> {
    let seconds = definition.reserved_seconds(job.limits).max(job.extension.seconds);
    job.started.map(|started| started + Millis::from_seconds(seconds))
}

/// Returns when a running job began to cost money; `None` if nothing limits the money of the tuning.
fn started(state: &State, job: &Job) -> Option<Time> {
    let is_limited = state.ledger.cap.is_some() || state.ledger.granted.is_some();
    job.started.filter(|_| is_limited && job.holds_slot() && !job.is_closed())
}

/// Returns the seconds that a job is billed for up to `now`, if it bills from its start without a gap.
fn billed_seconds(job: &Job, now: Time) -> u64 {
    job.started.map_or(0, |started| (now - started).or_zero().seconds_rounded_up())
}

fn cost(definition: &Definition, instances: ChoiceId, seconds: u64) -> MicroUsd {
    definition.job.instances(instances).cost(seconds).unwrap_or(MicroUsd::ZERO)
}

/// Returns the part of its reservation that a running job does not use if it is stopped now.
fn saved(definition: &Definition, state: &State, job: &Job) -> MicroUsd {
    let stopped = billed_seconds(job, state.now).saturating_add(definition.job.allowances.stop_seconds());
    let kept = definition.pool_worst_case(job.limits, job.instances).unwrap_or(MicroUsd::ZERO);
    let used = if job.started.is_some() { cost(definition, job.instances, stopped) } else { MicroUsd::ZERO };
    job.reservation.minus(state.ledger.margin).minus(used).minus(kept)
}

/// Returns how much of what jobs past their reservations take the cap does not pay for, once all jobs that stop have
/// stopped. Margins do not count: they are a precaution. Nor does a cap that the user lowered.
fn shortfall(definition: &Definition, state: &State) -> MicroUsd {
    let Some(cap) = state.ledger.cap else { return MicroUsd::ZERO };
    let mut total = state.ledger.spent.plus(state.ledger.reserved);
    let mut extended = MicroUsd::ZERO;
    for (_, job) in state.billed_jobs().filter(|(_, job)| !job.is_closed()) {
        total = total.minus(state.ledger.margin);
        extended = extended.plus(job.extension.amount);
        if job.stop.is_some() && job.holds_slot() {
            total = total.minus(saved(definition, state, job));
        }
    }
    total.minus(cap).min(extended)
}
