//! The bills of ended jobs: when each is read, booked after the conclusion of its job, or settled in full.

use crate::definition::Definition;
use crate::job::inquiry::Inquiry;
use crate::job::{Job, must_end_at};
use crate::log::fact::JobKey;
use crate::log::ruling::{Booking, Order, ReadOrder, Ruling};
use crate::rules::{Rule, never, nothing};
use crate::state::State;
use crate::unit::limits::{BILL_USUAL, SETTLE_DEADLINE};
use crate::unit::time::Time;

/// Books later bills of concluded jobs.
pub(crate) const BOOKED: Rule =
    Rule { next: |view| booked(view.definition, view.state), wakes: never, folds_first: nothing };

pub(crate) const READ: Rule = Rule { next: |view| read(view.state), wakes: never, folds_first: nothing };

/// Settles a job in full whose bill never comes.
pub(crate) const SETTLED_IN_FULL: Rule = Rule {
    next: |view| settled_in_full(view.definition, view.state),
    wakes: |view| view.by_clock(deadlines(view.definition, view.state)),
    folds_first: |view, at| settled_by(view.definition, view.state, at).collect(),
};

/// Orders the bill of the next ended job to be read, once for each job.
pub(crate) fn read(state: &State) -> Option<Ruling> {
    state.billed_jobs().find_map(|(key, job)| {
        let due = job.end().is_some() && job.bill.inquiry() == Some(Inquiry::Idle);
        due.then_some(Ruling::Order(Order::Read(ReadOrder::Bill { job: key })))
    })
}

/// Books the next bill of a concluded job that is its first one, or higher than the booked one.
pub(crate) fn booked(definition: &Definition, state: &State) -> Option<Ruling> {
    state.money.billing.iter().find_map(|(key, job)| {
        let seconds = job.bill.unbooked_seconds()?;
        let amount = definition.cost(job.order.instances, seconds);
        Some(Ruling::Booking(Booking::BillBooked { job: *key, seconds, amount }))
    })
}

/// Settles the next job in full whose bill is an hour late.
///
/// A job is also settled in full an hour after its own limits should have ended it, if the training service did not
/// report it since: it was deleted.
pub(crate) fn settled_in_full(definition: &Definition, state: &State) -> Option<Ruling> {
    state.billed_jobs().find_map(|(key, job)| {
        let overdue = settle_at(definition, job).is_some_and(|deadline| state.clock >= deadline);
        overdue.then_some(Ruling::Booking(Booking::SettledInFull { job: key, amount: job.bill.reservation }))
    })
}

/// Returns when a job without a bill is settled in full; `None` while no deadline runs.
///
/// The deadline counts from a time that the sweeper reported, never from other facts: those may arrive hours late while
/// the bill is on its way.
fn settle_at(definition: &Definition, job: &Job) -> Option<Time> {
    if job.end().is_some() {
        return job.bill.inquiry()?.expires_at();
    }
    let end = must_end_at(definition, job)?;
    let overdue_since = job.run.trace()?.overdue_since;
    overdue_since.filter(|since| *since >= end).map(|since| since + SETTLE_DEADLINE)
}

/// Returns the jobs that time `at` may settle in full.
///
/// Where no deadline runs yet, an earlier time of the same delivery may start it.
pub(crate) fn settled_by(definition: &Definition, state: &State, at: Time) -> impl Iterator<Item = JobKey> {
    let earliest = move |job: &Job| {
        let end = job.stopped_running_at().or_else(|| must_end_at(definition, job));
        end.map(|end| end + SETTLE_DEADLINE)
    };
    let due = move |job: &Job| {
        settle_at(definition, job).or_else(|| earliest(job)).is_some_and(|deadline| deadline <= at)
    };
    state.billed_jobs().filter(move |(_, job)| !job.is_closed() && due(job)).map(|(key, _)| key)
}

/// Returns when each job is settled in full, or when the time is needed for that.
pub(crate) fn deadlines(definition: &Definition, state: &State) -> impl Iterator<Item = Time> {
    state.billed_jobs().filter_map(move |(_, job)| {
        if job.end().is_some() {
            return job.bill.inquiry()?.wakes_at();
        }
        // A job that should have ended before the reported time is overdue from the next reported time.
        let overdue = || {
            must_end_at(definition, job)
                .map(|end| if end > state.clock { end } else { state.clock + BILL_USUAL })
        };
        settle_at(definition, job).or_else(overdue)
    })
}
