//! Warm pools: which jobs keep their instances, and when a pool is read, released and settled.
//!
//! A pool is worth its money only while another job may take it. It is released as soon as no job will take it, or when
//! the money reserved for it blocks the start of a job.

use crate::definition::{Definition, JobLimits};
use crate::job::Job;
use crate::job::pool::Pool;
use crate::log::ruling::{Booking, Order, PoolOrder, Ruling};
use crate::quote::{Quote, fits_cap};
use crate::rules::Outlook;
use crate::rules::outlook::is_deferred;
use crate::rules::{Rule, never, nothing, start};
use crate::state::{State, Status, latest_start};
use crate::unit::ids::count;
use crate::unit::limits::SETTLE_DEADLINE;
use crate::unit::time::Time;

pub(crate) const SETTLED: Rule = Rule {
    next: |view| settled(view.definition, view.state),
    wakes: |view| view.by_clock(deadlines(view.state)),
    folds_first: |view, at| settled_by(view.state, at).map(|pool| pool.job).collect(),
};

/// Orders warm pools to be read.
pub(crate) const READ: Rule = Rule { next: |view| read(view.state), wakes: never, folds_first: nothing };

/// Releases warm pools while no job can start.
pub(crate) const RELEASE: Rule = Rule {
    next: |view| match view.outlook() {
        Outlook::Busy | Outlook::Deferred => release(view.definition, view.state),
        Outlook::Start(_) | Outlook::Over(_) => None,
    },
    wakes: never,
    folds_first: nothing,
};

/// Keeps the instances of an ordered job after its end, if the request asks for it, another job may take them, and the
/// cap allows it.
pub(crate) fn keep_instances(definition: &Definition, state: &State, start: &mut Ruling) {
    let Ruling::Order(Order::Start { limits, reservation, launch, .. }) = start else { return };
    let seconds = definition.terms_on(launch.instances).keep_alive_seconds;
    if seconds == 0
        || launch.refit
        || starts_left(definition, state) <= 1
        || state.money.grants.denied.is_some()
    {
        return;
    }
    let kept = JobLimits { keep_alive_seconds: seconds, ..*limits };
    let amount = crate::quote::worst_case(definition, state, kept, launch.instances);
    // Money granted for the job alone is not requested again.
    let granted = state.money.ledger.fits(amount) || !state.money.ledger.fits(*reservation);
    if granted && fits_cap(definition, state, amount) {
        (*limits, *reservation) = (kept, amount);
    }
}

/// Returns how many jobs can still take kept instances. The last combinations of a grid need no further job, unless one
/// of them is retried.
fn starts_left(definition: &Definition, state: &State) -> u32 {
    let left = state.jobs_left(definition);
    if definition.promotes().is_some() {
        return left;
    }
    let new = definition.max_trials().saturating_sub(state.search.all_started());
    let waiting = count(state.trials.values().filter(|trial| trial.job().is_none()).count());
    left.min(new.saturating_add(waiting))
}

/// Settles the next pool: one whose end is known, or in full one whose end is still unknown an hour after its time.
///
/// The pool of a live job waits: the cost is added to the row of the job, which is written when the job is concluded.
pub(crate) fn settled(definition: &Definition, state: &State) -> Option<Ruling> {
    let is_live =
        |pool: &Pool| !crate::planted!(PoolClosedFirst) && state.jobs().any(|(key, _, _)| key == pool.job);
    state.money.pools.iter().filter(|pool| !is_live(pool)).find_map(|pool| {
        let overdue = state.clock >= settle_at(pool);
        let (seconds, amount) =
            pool.bill(definition).or_else(|| overdue.then_some((None, pool.reservation)))?;
        Some(Ruling::Booking(Booking::PoolClosed { job: pool.job, seconds, amount }))
    })
}

fn settle_at(pool: &Pool) -> Time {
    pool.until + SETTLE_DEADLINE
}

/// Orders the next pool to be read: its time is over, or a job that started since may have taken its instances.
pub(crate) fn read(state: &State) -> Option<Ruling> {
    let latest_start = latest_start(state);
    state.money.pools.iter().find_map(|pool| {
        if pool.reading || pool.released || pool.over.is_some() {
            return None;
        }
        let last = state.clock >= pool.until;
        let taken = latest_start.is_some_and(|start| start > pool.read_at.max(pool.since));
        let n = pool.read.saturating_add(1);
        (last || taken).then_some(Ruling::Order(Order::Pool(PoolOrder::Read { job: pool.job, n, last })))
    })
}

/// Orders the oldest pool to be released: no job will take it, or its money would pay for a job that cannot start. A job
/// that has just been ordered may take it. The caller asks only when no job can start.
pub(crate) fn release(definition: &Definition, state: &State) -> Option<Ruling> {
    // The answer to a read may be that a job took the pool.
    let is_kept = |pool: &&Pool| !pool.released && pool.over.is_none() && !pool.reading;
    let kept = || state.money.pools.iter().filter(is_kept);
    let oldest = kept().min_by_key(|pool| (pool.since, pool.job))?;
    let starts =
        if state.status == Status::Active && !state.is_paused() { starts_left(definition, state) } else { 0 };
    let may_take = |job: &Job| {
        job.holds_slot() && !job.has_instances() && !job.is_blocked_by_quota() && job.stop.is_none()
    };
    let starting = state.jobs().filter(|(_, _, job)| may_take(job)).count();
    let useful = starts.saturating_add(count(starting)).min(state.max_parallel(definition));
    let too_many = count(kept().count()) > useful;
    let release = too_many || nothing_runs_or_waits(definition, state) || lacks_money(definition, state);
    release.then_some(Ruling::Order(Order::Pool(PoolOrder::Release { job: oldest.job })))
}

/// Returns whether no job runs and no trial waits for a deadline or a grant.
fn nothing_runs_or_waits(definition: &Definition, state: &State) -> bool {
    let waits = |at: Option<Time>| at.is_some_and(|at| at > state.now);
    state.trials.values().all(|trial| trial.job().is_none() && !waits(trial.not_before()))
        && !is_deferred(definition, state)
        && state.money.grants.open.is_none()
}

/// Returns whether a job could start but for the money.
fn lacks_money(definition: &Definition, state: &State) -> bool {
    let longest = Quote::of_longest(definition, state);
    start::can_start(definition, state) && !fits_cap(definition, state, longest.worst_case)
}

/// Returns the pools that time `at` would settle in full.
pub(crate) fn settled_by(state: &State, at: Time) -> impl Iterator<Item = &Pool> {
    state.money.pools.iter().filter(move |pool| settle_at(pool) <= at)
}

/// Returns when each pool is read or settled in full.
pub(crate) fn deadlines(state: &State) -> impl Iterator<Item = Time> {
    let lasts = |pool: &&Pool| pool.over.is_none();
    state.money.pools.iter().filter(lasts).map(|pool| {
        let read = pool.reading || pool.released || state.clock >= pool.until;
        if read { settle_at(pool) } else { pool.until }
    })
}
