//! The bills of ended jobs: when they are read, booked after the conclusion of the job, or settled in full.

use crate::definition::Definition;
use crate::job::{Job, must_end_at};
use crate::log::fact::JobKey;
use crate::log::ruling::{Order, ReadOrder, Ruling};
use crate::state::State;
use crate::unit::limits::{BILL_USUAL, SETTLE_DEADLINE};
use crate::unit::time::Time;

/// Orders the bill of the next ended job to be read, once for each job.
pub(crate) fn read(state: &State) -> Option<Ruling> {
    state.billed_jobs().find_map(|(key, job)| {
        let due = job.end.is_some() && !job.bill_ordered && !job.is_closed();
        due.then_some(Ruling::Order(Order::Read(ReadOrder::Bill { job: key })))
    })
}

/// Books the next bill of a concluded job that is its first one, or higher than the booked one.
pub(crate) fn booked(definition: &Definition, state: &State) -> Option<Ruling> {
    state.billing.iter().find_map(|(key, job)| {
        let seconds = job.unbooked_seconds()?;
        let amount = definition.cost(job.instances, seconds);
        Some(Ruling::BillBooked { job: *key, seconds, amount })
    })
}

/// Settles the next job in full whose bill is an hour late.
///
/// A job is also settled in full an hour after its own limits should have ended it, if the training service did not
/// report it since: it was deleted.
pub(crate) fn settled_in_full(definition: &Definition, state: &State) -> Option<Ruling> {
    state.billed_jobs().find_map(|(key, job)| {
        let overdue = settle_at(definition, job).is_some_and(|deadline| state.clock >= deadline);
        overdue.then_some(Ruling::SettledInFull { job: key, amount: job.reservation })
    })
}

/// Returns when a job without a bill is settled in full; `None` while no deadline runs.
///
/// The deadline counts from a time that the sweeper reported, never from other facts: those may arrive hours late while
/// the bill is on its way.
fn settle_at(definition: &Definition, job: &Job) -> Option<Time> {
    if job.is_closed() {
        return None;
    }
    if job.end.is_some() {
        return job.bill_awaited_since.map(|since| since + SETTLE_DEADLINE);
    }
    let end = must_end_at(definition, job)?;
    job.overdue_since.filter(|since| *since >= end).map(|since| since + SETTLE_DEADLINE)
}

/// Returns the jobs that time `at` may settle in full.
///
/// Where no deadline runs yet, an earlier time of the same delivery may start it.
pub(crate) fn settled_by(definition: &Definition, state: &State, at: Time) -> impl Iterator<Item = JobKey> {
    let ended = |job: &Job| job.end.map(|_| job.ended.unwrap_or(job.phase_at));
    let earliest =
        move |job: &Job| ended(job).or_else(|| must_end_at(definition, job)).map(|end| end + SETTLE_DEADLINE);
    let due = move |job: &Job| {
        settle_at(definition, job).or_else(|| earliest(job)).is_some_and(|deadline| deadline <= at)
    };
    state.billed_jobs().filter(move |(_, job)| !job.is_closed() && due(job)).map(|(key, _)| key)
}

/// Returns when each job is settled in full, or when the time is needed for that.
pub(crate) fn deadlines(definition: &Definition, state: &State) -> impl Iterator<Item = Time> {
    state.billed_jobs().filter_map(move |(_, job)| {
        let unclocked = job.bill_ordered && !job.is_closed() && job.bill_awaited_since.is_none();
        match settle_at(definition, job) {
            // The hour for a bill begins with the first time that the sweeper reports: ask for one after a minute.
            None if unclocked => Some(job.bill_ordered_at + BILL_USUAL),
            // A job that should have ended before the reported time is overdue from the next reported time.
            None => must_end_at(definition, job)
                .map(|end| if end > state.clock { end } else { state.clock + BILL_USUAL }),
            settle => settle,
        }
    })
}
