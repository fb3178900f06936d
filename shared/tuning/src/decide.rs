//! Decides: names the next ruling that the state calls for, or none.
//!
//! Reads the state and changes nothing; the caller applies the ruling and asks again. The order of the questions is part
//! of the rules: criteria of the whole tuning, then running trials, then ended jobs, then new jobs, then the end.

mod finish;
mod judge;
mod start;

use crate::definition::Definition;
use crate::limits::SETTLE_DEADLINE_MS;
use crate::ruling::{Ruling, StopWhy};
use crate::state::{State, Status};

/// The next ruling.
pub fn next(definition: &Definition, state: &State) -> Option<Ruling> {
    if !state.submitted || state.is_ended() {
        return None;
    }
    finish::ending(definition, state)
        .or_else(|| judge::judgement(definition, state))
        .or_else(|| stop(definition, state))
        .or_else(|| bill(state))
        .or_else(|| {
            let mut trials = state.trials.iter();
            trials.find_map(|(number, trial)| crate::conclude::conclusion(definition, state, *number, trial))
        })
        .or_else(|| start::start(definition, state))
        .or_else(|| finish::ended(definition, state))
}

/// A running job whose trial is out, has all its epochs, or whose tuning is ending, is stopped: once.
fn stop(definition: &Definition, state: &State) -> Option<Ruling> {
    let max_resource = definition.plan().max_resource();
    state.jobs().find_map(|(key, trial, job)| {
        if job.stop.is_some() || !job.holds_slot() {
            return None;
        }
        let why = match (&state.status, trial.out) {
            (_, Some(why)) => why,
            (_, None) if trial.resource() >= max_resource => StopWhy::MaxResource,
            (Status::Ending(why), None) if finish::stops_running(why) => StopWhy::TuningEnding,
            (Status::Active | Status::Ending(_) | Status::Ended { .. }, None) => return None,
        };
        Some(Ruling::StopOrdered { job: key, why })
    })
}

/// An ended job's bill is read once; if it does not come within an hour, the whole reservation is spent.
fn bill(state: &State) -> Option<Ruling> {
    state.jobs().find_map(|(key, _, job)| {
        if job.end.is_none() || job.is_closed() {
            return None;
        }
        if !job.bill_ordered {
            return Some(Ruling::BillOrdered { job: key });
        }
        let overdue = state.now >= job.end_at.saturating_add(SETTLE_DEADLINE_MS);
        overdue.then_some(Ruling::SettledInFull { job: key, amount: job.reservation })
    })
}

/// The next time at which [`next`] may have something to say although nothing happened, ms since the epoch.
pub fn deadline(definition: &Definition, state: &State) -> Option<i64> {
    if state.is_ended() {
        return None;
    }
    let settle = state
        .jobs()
        .filter(|(_, _, job)| job.end.is_some() && !job.is_closed())
        .map(|(_, _, job)| job.end_at.saturating_add(SETTLE_DEADLINE_MS));
    let retries = state.trials.values().filter(|trial| trial.job.is_none()).filter_map(|t| t.retry_at);
    let tuning = finish::time_up(definition).filter(|_| state.status == Status::Active);
    settle
        .chain(retries)
        .chain(state.hold_starts_until)
        .chain(tuning)
        .filter(|deadline| *deadline > state.now)
        .min()
}
