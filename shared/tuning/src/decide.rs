//! Decides: names the next ruling that the state calls for, or none.
//!
//! Reads the state and changes nothing; the caller applies the ruling and asks again. The order of the questions is part
//! of the rules: criteria of the whole tuning, then running trials, then ended jobs, then new jobs, then the end.

mod finish;
pub(crate) mod grant;
mod judge;
mod notice;
mod pool;
pub(crate) mod promote;
pub(crate) mod refit;
mod silence;
pub(crate) mod spot;
mod start;

use crate::definition::Definition;
use crate::fact::JobKey;
use crate::limits::{BILL_USUAL_MS, SETTLE_DEADLINE_MS, STOP_GRACE_SECONDS, UPLOAD_ALLOWANCE_SECONDS};
use crate::ruling::{Ruling, StopWhy};
use crate::state::{Job, State, Status};

pub(crate) use pool::latest_start;
pub use promote::most_promoted;
pub use silence::open_look;

/// The rules version from which on a job that is settled in full is not stopped any more.
const NO_STOP_OF_SETTLED_SINCE: u32 = 2;

/// The next ruling.
pub fn next(definition: &Definition, state: &State) -> Option<Ruling> {
    if !state.submitted || state.is_ended() {
        return None;
    }
    notice::overrun(state)
        .or_else(|| finish::ending(definition, state))
        .or_else(|| judge::judgement(definition, state))
        .or_else(|| promote::repeated(definition, state))
        .or_else(|| promote::closing(definition, state))
        .or_else(|| silence::look(definition, state))
        .or_else(|| stop(definition, state))
        .or_else(|| bill(state))
        .or_else(|| {
            let mut trials = state.trials.iter();
            trials.find_map(|(number, trial)| crate::conclude::conclusion(definition, state, *number, trial))
        })
        .or_else(|| pool::settled(definition, state))
        .or_else(|| pool::read(state))
        .or_else(|| promote::left_out(definition, state, || nothing_starts(definition, state)))
        .or_else(|| notice::reached(definition, state))
        .or_else(|| start::start(definition, state))
        .or_else(|| pool::release(definition, state))
        .or_else(|| refit::order(definition, state, finish::why_ended(definition, state)))
        .or_else(|| notice::used_up(definition, state, finish::why_ended(definition, state).as_ref()))
        .or_else(|| grant::give_back(definition, state, finish::why_ended(definition, state).is_some()))
        .or_else(|| finish::ended(definition, state))
}

/// Whether nothing runs and nothing can be started any more. (What is held back for now can be later.)
fn nothing_starts(definition: &Definition, state: &State) -> bool {
    state.trials.is_empty()
        && state.pools.is_empty()
        && !finish::is_held(state)
        && !finish::is_asking(state)
        && start::start(definition, state).is_none()
}

/// A running job whose trial is out, has all its epochs or is silent, or whose tuning is ending, is stopped: once.
fn stop(definition: &Definition, state: &State) -> Option<Ruling> {
    let max_resource = definition.plan().max_resource();
    let promotes = definition.promotes().is_some();
    state.jobs().find_map(|(key, trial, job)| {
        // One that is settled in full is presumed over: its stop would have no outcome.
        let settled = job.is_closed() && definition.rules_version >= NO_STOP_OF_SETTLED_SINCE;
        if job.stop.is_some() || settled || !job.holds_slot() {
            return None;
        }
        let elsewhere = || {
            let limited = || {
                let others = spot::limited(definition, state, trial, job);
                others.or_else(|| spot::called_off(state, key, job))
            };
            spot::interrupted(definition, state, trial, job).or_else(limited)
        };
        let silent = || silence::confirmed(definition, state, trial, job);
        let why = match (&state.status, trial.out) {
            (_, Some(why)) => why,
            // The best configuration is trained to its own end, for the sake of its model.
            (_, None) if trial.refit.is_some() && refit::goes_on(state, trial) => {
                elsewhere().or_else(silent)?
            }
            // One that trains just to its rung's level ends by itself.
            (_, None) if promotes && promote::past_level(trial, job).is_some() => {
                promote::past_level(trial, job)?
            }
            (_, None) if !promotes && trial.resource() >= max_resource => StopWhy::MaxResource,
            // For want of money or of further jobs a tuning begins to end only when its last job has ended.
            (Status::Ending(_), None) => StopWhy::TuningEnding,
            (Status::Active | Status::Ended { .. }, None) => elsewhere().or_else(silent)?,
        };
        Some(Ruling::StopOrdered { job: key, why })
    })
}

/// An ended job's bill is read once; if it does not come within an hour, the whole reservation is spent. So it is for a
/// job that should have ended by its own limits and was not seen for an hour since: somebody has deleted it.
fn bill(state: &State) -> Option<Ruling> {
    state.jobs().find_map(|(key, _, job)| {
        if job.end.is_some() && !job.bill_ordered && !job.is_closed() {
            return Some(Ruling::BillOrdered { job: key });
        }
        let clock = if crate::planted!(BillHourByFacts) { state.now } else { state.clock };
        let overdue = settle_at(job).is_some_and(|deadline| clock >= deadline);
        overdue.then_some(Ruling::SettledInFull { job: key, amount: job.reservation })
    })
}

/// When a job's whole reservation is taken as spent, unless its bill comes first. Counted from what the sweeper told of
/// the time, never from other facts: those may be hours old when they come, and the bill be on its way.
fn settle_at(job: &Job) -> Option<i64> {
    if job.is_closed() {
        return None;
    }
    if job.end.is_some() {
        return job.bill_awaited_since.map(|since| since.saturating_add(SETTLE_DEADLINE_MS));
    }
    let end = must_end_at(job)?;
    job.overdue_since.filter(|since| *since >= end).map(|since| since.saturating_add(SETTLE_DEADLINE_MS))
}

/// When a job that runs must have ended by its own limits, counted from its last sign of life: while it waits for instances
/// they do not bind it, and every look at it is such a sign.
pub(crate) fn must_end_at(job: &Job) -> Option<i64> {
    // Before the service accepted it the start is still owed, and will have an outcome.
    let runs = job.accepted && job.end.is_none() && !job.is_closed();
    runs.then(|| job.seen_at.saturating_add(life_ms(job)))
}

/// When it is to be told that a job of which nothing else was heard is still there: long before it would be taken for
/// deleted, and a few times an hour at most.
pub fn sign_due_at(job: &Job) -> Option<i64> {
    let quiet = life_ms(job).saturating_add(SETTLE_DEADLINE_MS) / 2;
    must_end_at(job).map(|_| job.seen_at.saturating_add(quiet))
}

/// The longest that a job may last once it has instances.
fn life_ms(job: &Job) -> i64 {
    let limit = job.limits.max_wait_seconds.unwrap_or(job.limits.max_runtime_seconds);
    let seconds = limit.saturating_add(STOP_GRACE_SECONDS).saturating_add(UPLOAD_ALLOWANCE_SECONDS);
    i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000)
}

/// The jobs that would be settled in full at time `at`, or by times up to then that come together: all that is stored of
/// them must be folded before.
pub fn settled_by(state: &State, at: i64) -> Vec<JobKey> {
    let missing = |job: &Job| must_end_at(job).map(|end| end.saturating_add(SETTLE_DEADLINE_MS));
    let due = state
        .jobs()
        .filter(|(_, _, job)| settle_at(job).or_else(|| missing(job)).is_some_and(|deadline| deadline <= at));
    // Nor is a tuning given up for a quota before it is certain that no job has started.
    let in_vain = state.quota_in_vain_at().is_some_and(|deadline| deadline <= at);
    let owed = state.jobs().filter(move |(_, _, job)| in_vain && !job.accepted);
    due.chain(owed).map(|(key, _, _)| key).chain(pool::settled_by(state, at).map(|pool| pool.job)).collect()
}

/// The next time at which [`next`] may have something to say although nothing happened, ms since the epoch.
pub fn deadline(definition: &Definition, state: &State) -> Option<i64> {
    if state.is_ended() {
        return None;
    }
    // A bill that has not come after a minute is awaited from when the sweeper next tells the time.
    let settle = state.jobs().filter_map(|(_, _, job)| {
        let unclocked = job.bill_ordered && !job.is_closed() && job.bill_awaited_since.is_none();
        match settle_at(job) {
            None if unclocked => Some(job.bill_ordered_at.saturating_add(BILL_USUAL_MS)),
            // One whose end lies before what was told of the time already is overdue from when that is told next.
            None => must_end_at(job)
                .map(|end| if end > state.clock { end } else { state.clock.saturating_add(BILL_USUAL_MS) }),
            settle => settle,
        }
    });
    let told = state.clock;
    let retries = state.trials.values().filter(|trial| trial.job.is_none()).filter_map(|t| t.retry_at);
    let tuning = finish::time_up(definition).filter(|_| state.status == Status::Active);
    let held = state.hold_starts_until.into_iter().chain(state.held_long_at());
    let others = retries.chain(held).chain(tuning).chain(grant::deadlines(state));
    let others = others.filter(|deadline| *deadline > state.now);
    let told = settle
        .chain(pool::deadlines(state))
        .chain(silence::deadline(definition, state))
        .chain(state.quota_in_vain_at())
        .filter(|deadline| *deadline > told);
    told.chain(others).min()
}
