//! The decider's own limits on the running time of jobs, by the time that their reservations pay for.
//!
//! The service bills a job from before its download until after its upload, bounds neither, and has exceeded short
//! limits. Therefore, the limits that it enforces do not bound a bill. Where money is limited, three rules complete
//! them:
//!
//! 1. A job is stopped early enough that its reservation still pays for the stop and its upload ([`stop`]).
//! 2. A job that nevertheless lasts longer reserves the additional time ([`extended`]). The sweeper reports the job
//!    whenever it has used up this time.
//! 3. If the cap does not pay for that, the youngest other jobs are stopped as long as that saves money
//!    ([`stop_other`]).

use std::cmp::Reverse;

use crate::definition::Definition;
use crate::job::Job;
use crate::log::fact::JobPhase;
use crate::log::reasons::StopWhy;
use crate::log::ruling::{Booking, Order, Ruling};
use crate::rules::{Rule, never, nothing};
use crate::state::State;
use crate::unit::limits::{EXTENSION_DIVISOR, EXTENSION_SECONDS, SWEEP_INTERVAL_SECONDS};
use crate::unit::money::MicroUsd;
use crate::unit::time::{Millis, Time};

/// Reserves more for a job past its reservation.
pub(crate) const EXTENDED: Rule =
    Rule { next: |view| extended(view.definition, view.state), wakes: never, folds_first: nothing };

/// Stops another job to pay for one past its reservation.
pub(crate) const STOP_OTHER: Rule =
    Rule { next: |view| stop_other(view.definition, view.state), wakes: never, folds_first: nothing };

/// Returns the stop reason of a job that has nearly used up what its reservation pays for.
///
/// The time on any fact counts, so a missing sweep delays no stop while events or log lines arrive.
pub(crate) fn stop(definition: &Definition, state: &State, job: &Job) -> Option<StopWhy> {
    let due = stop_at(definition, state, job).is_some_and(|at| at <= state.now);
    due.then_some(StopWhy::ReservationUsed { seconds: stop_seconds(definition, job) })
}

/// Reserves more for the next job that is seen to last longer than its reservation pays for.
///
/// Only a sign of life counts, not the time: a job that was deleted, or whose end is on its way, costs no more.
pub(crate) fn extended(definition: &Definition, state: &State) -> Option<Ruling> {
    state.jobs().find_map(|(key, _, job)| {
        if used_at(definition, state, job)? > job.seen_at() {
            return None;
        }
        let billed = billed_seconds(job, job.seen_at());
        let ahead = billed.checked_div(EXTENSION_DIVISOR).unwrap_or(0).max(EXTENSION_SECONDS);
        let seconds = billed.saturating_add(ahead);
        let amount = definition
            .cost(job.order.instances, seconds)
            .plus(kept(definition, job))
            .minus(job.bill.reservation);
        Some(Ruling::Booking(Booking::ReservationExtended { job: key, seconds, amount }))
    })
}

/// Stops the youngest job whose stop saves money, if the cap does not pay for what a job past its reservation takes.
///
/// The amounts of jobs that stop count as if their stop took as long as a reservation allows.
pub(crate) fn stop_other(definition: &Definition, state: &State) -> Option<Ruling> {
    let by =
        state.jobs().find(|(_, _, job)| job.bill.extension.amount > MicroUsd::ZERO).map(|(key, _, _)| key)?;
    if shortfall(definition, state) == MicroUsd::ZERO {
        return None;
    }
    let others = state.jobs().filter(|(_, _, job)| {
        let runs =
            job.stop.is_none() && job.holds_slot() && !job.is_closed() && job.bill.extension.seconds == 0;
        // A stop ends no upload.
        runs && job.phase() != JobPhase::Uploading && saved(definition, state, job) > MicroUsd::ZERO
    });
    // The refit starts last, but its model is the result.
    let youngest =
        others.min_by_key(|(key, trial, job)| (trial.refit().is_some(), Reverse((job.order.at, *key))));
    youngest.map(|(job, _, _)| {
        Ruling::Order(Order::Stop { job, why: StopWhy::CapExceeded { by }, because: None })
    })
}

/// Returns when the next job has to stop.
pub(crate) fn deadlines(definition: &Definition, state: &State) -> impl Iterator<Item = Time> {
    state.jobs().filter_map(|(_, _, job)| stop_at(definition, state, job))
}

/// Returns when a running job has used up what its reservation pays for; `None` if nothing limits the money of the tuning.
pub(crate) fn used_at(definition: &Definition, state: &State, job: &Job) -> Option<Time> {
    started(state, job).map(|started| started + Millis::from_seconds(paid_seconds(definition, job)))
}

/// Returns the billed time at which a job has to stop: what its first reservation pays for, without the stop itself and
/// without the time by which the order may be late.
fn stop_seconds(definition: &Definition, job: &Job) -> u64 {
    let late = definition.job.allowances.stop_seconds().saturating_add(SWEEP_INTERVAL_SECONDS);
    definition.reserved_seconds(job.order.limits).saturating_sub(late)
}

/// Returns when a job has to stop; `None` while its start is not known, and once it stops or uploads its model: a stop
/// changes neither.
fn stop_at(definition: &Definition, state: &State, job: &Job) -> Option<Time> {
    let ends = matches!(job.phase(), JobPhase::Stopping | JobPhase::Uploading);
    let started = started(state, job).filter(|_| job.stop.is_none() && !ends)?;
    Some(started + Millis::from_seconds(stop_seconds(definition, job)))
}

/// Returns when a running job began to cost money, moved by the time of its interruptions. `None` while it is interrupted,
/// as far as events and sweeps show, and if nothing limits the money of the tuning.
fn started(state: &State, job: &Job) -> Option<Time> {
    let is_limited = state.money.ledger.cap.is_some() || state.money.ledger.granted.is_some();
    let runs = is_limited && job.holds_slot() && !job.is_closed() && job.phase() != JobPhase::Interrupted;
    Some(job.started().filter(|_| runs)? + job.idle())
}

/// Returns the seconds that a job is billed for up to `now`, without its interruptions.
fn billed_seconds(job: &Job, now: Time) -> u64 {
    let now = job.entered(JobPhase::Interrupted).map_or(now, |since| now.min(since));
    job.started().map_or(0, |started| (now - started - job.idle()).or_zero().seconds_rounded_up())
}

/// Returns the seconds that the reservation of a job pays for, without the margin.
fn paid_seconds(definition: &Definition, job: &Job) -> u64 {
    definition.reserved_seconds(job.order.limits).max(job.bill.extension.seconds)
}

/// Returns the worst case of the instances that a job keeps.
fn kept(definition: &Definition, job: &Job) -> MicroUsd {
    definition.pool_worst_case(job.order.limits, job.order.instances).unwrap_or(MicroUsd::ZERO)
}

/// Returns the part of its reservation that a running job does not use if it is stopped now.
fn saved(definition: &Definition, state: &State, job: &Job) -> MicroUsd {
    let stopped = billed_seconds(job, state.now).saturating_add(definition.job.allowances.stop_seconds());
    let used =
        if job.started().is_some() { definition.cost(job.order.instances, stopped) } else { MicroUsd::ZERO };
    definition.cost(job.order.instances, paid_seconds(definition, job)).minus(used)
}

/// Returns how much of what jobs past their reservations take the cap does not pay for, once all jobs that stop have
/// stopped.
///
/// Margins do not count: they are a precaution. Nor does what is above the cap for another reason, such as a cap that the
/// user lowered.
fn shortfall(definition: &Definition, state: &State) -> MicroUsd {
    let Some(cap) = state.money.ledger.cap else { return MicroUsd::ZERO };
    let pools = state.money.pools.iter().fold(MicroUsd::ZERO, |sum, pool| sum.plus(pool.reservation));
    let mut needed = state.money.ledger.spent.plus(pools);
    let (mut extended, mut savings) = (MicroUsd::ZERO, MicroUsd::ZERO);
    for (_, job) in state.billed_jobs().filter(|(_, job)| !job.is_closed()) {
        needed = needed
            .plus(definition.cost(job.order.instances, paid_seconds(definition, job)))
            .plus(kept(definition, job));
        extended = extended.plus(job.bill.extension.amount);
        if job.stop.is_some() && job.holds_slot() {
            savings = savings.plus(saved(definition, state, job));
        }
    }
    needed.minus(cap).min(extended).minus(savings)
}
