//! Warm pools: which jobs keep their instances, when a pool is read, released and settled.
//!
//! A pool is worth its money only while another job may take it. So it is released as soon as none will, or when what is
//! reserved for it keeps a job from starting.

use super::{finish, refit, spot, start};
use crate::definition::{Definition, JobLimits};
use crate::limits::SETTLE_DEADLINE_MS;
use crate::money::MicroUsd;
use crate::pool::Pool;
use crate::ruling::Ruling;
use crate::runtime::{most_epochs, runtime_seconds};
use crate::state::{State, Status};

/// Lets the instances of an ordered job be kept after it, if the request asks for that, another job may come to take them,
/// and the cap allows it.
pub(super) fn keep_after(definition: &Definition, state: &State, start: &mut Ruling) {
    let seconds = definition.job.keep_alive_seconds;
    let Ruling::StartOrdered { limits, reservation, launch, .. } = start else { return };
    if seconds == 0 || launch.refit || state.jobs_left(definition) <= 1 || state.grants.denied.is_some() {
        return;
    }
    let kept = JobLimits { keep_alive_seconds: seconds, ..*limits };
    let amount = definition.worst_case_on(kept, launch.instances).unwrap_or(MicroUsd::ZERO);
    // Money that was granted for the job alone is not asked for again.
    let granted = state.ledger.fits(amount) || !state.ledger.fits(*reservation);
    if granted && refit::fits_cap(definition, state, amount) {
        (*limits, *reservation) = (kept, amount);
    }
}

/// The next pool to be settled: its end was read, or an hour after its time nobody knows of it.
pub(super) fn settled(definition: &Definition, state: &State) -> Option<Ruling> {
    state.pools.iter().find_map(|pool| {
        let overdue = state.clock >= settle_at(pool);
        let (seconds, amount) =
            pool.bill(definition).or_else(|| overdue.then_some((None, pool.reservation)))?;
        Some(Ruling::PoolClosed { job: pool.job, seconds, amount })
    })
}

fn settle_at(pool: &Pool) -> i64 {
    pool.until.saturating_add(SETTLE_DEADLINE_MS)
}

/// The next pool to be read: its time is over, or a job has started since that may have taken its instances.
pub(super) fn read(state: &State) -> Option<Ruling> {
    let latest_start = latest_start(state);
    state.pools.iter().find_map(|pool| {
        if pool.reading || pool.released || pool.over.is_some() {
            return None;
        }
        let last = state.clock >= pool.until;
        let taken = latest_start.is_some_and(|start| start > pool.read_at.max(pool.since));
        let n = pool.read.saturating_add(1);
        (last || taken).then_some(Ruling::PoolReadOrdered { job: pool.job, n, last })
    })
}

/// When the last of the jobs that run began to.
pub(crate) fn latest_start(state: &State) -> Option<i64> {
    state.jobs().filter_map(|(_, _, job)| job.started).max()
}

/// The next pool to be released: no job will take it, or the money reserved for it is what a job lacks. (Asked when no job
/// can be started.)
pub(super) fn release(definition: &Definition, state: &State) -> Option<Ruling> {
    let held = || state.pools.iter().filter(|pool| !pool.released && pool.over.is_none());
    let oldest = held().min_by_key(|pool| (pool.since, pool.job))?;
    let useful = if state.status == Status::Active && !state.is_paused() && !state.ledger.overrun {
        state.jobs_left(definition).min(state.max_parallel(definition))
    } else {
        0
    };
    let many = u32::try_from(held().count()).unwrap_or(u32::MAX) > useful;
    let release = many || idle(state) || lacks_money(definition, state);
    release.then_some(Ruling::PoolReleaseOrdered { job: oldest.job })
}

/// Whether nothing runs and nothing is waited for.
fn idle(state: &State) -> bool {
    let waits = |at: Option<i64>| at.is_some_and(|at| at > state.now);
    state.trials.values().all(|trial| trial.job.is_none() && !waits(trial.retry_at))
        && !finish::is_held(state)
        && state.grants.open.is_none()
}

/// Whether a slot is free, and only the money is wanting.
fn lacks_money(definition: &Definition, state: &State) -> bool {
    let limits = definition.limits_for(runtime_seconds(definition, state, false, most_epochs(definition)));
    let worst = definition.worst_case_on(limits, spot::choice(definition, state)).unwrap_or(MicroUsd::ZERO);
    start::may_start(definition, state) && !refit::fits_cap(definition, state, worst)
}

/// The pools that would be settled without having been read at time `at`.
pub(super) fn settled_by(state: &State, at: i64) -> impl Iterator<Item = &Pool> {
    state.pools.iter().filter(move |pool| settle_at(pool) <= at)
}

/// When pools are to be read, or no longer waited for.
pub(super) fn deadlines(state: &State) -> impl Iterator<Item = i64> {
    let waits = |pool: &&Pool| pool.over.is_none();
    state.pools.iter().filter(waits).map(|pool| {
        let read = pool.reading || pool.released || state.clock >= pool.until;
        if read { settle_at(pool) } else { pool.until }
    })
}
