//! The rest of an ended job's log: the lines that are still unknown when the job ends.
//!
//! Log lines take their own way and can be lost, so the end of a job does not show that its last value is known. A job
//! whose epochs are all known needs no further line and is concluded at once. The log of any other job that ran is read
//! first. Where no decision needs its lines, it is read at once; else only when its last lines are sure to be readable.

use crate::definition::Definition;
use crate::fact::JobEnd;
use crate::ids::count;
use crate::limits::{BILL_USUAL, SETTLE_DEADLINE};
use crate::ruling::{Order, Ruling, StopWhy};
use crate::state::{Job, State, Trial};
use crate::time::Time;

/// Orders the log of the next ended job to be read, once for each job.
pub(super) fn read(definition: &Definition, state: &State) -> Option<Ruling> {
    state.jobs().find_map(|(key, trial, job)| {
        let due = job.end.is_some() && job.rest_ordered.is_none() && !is_known(definition, state, trial, job);
        let (ordered, ended) = (job.ordered, job.ended.unwrap_or(job.end_at));
        let order = Order::ReadRest { job: key, ordered, ended, at_once: is_over(job) };
        due.then_some(Ruling::Order(order))
    })
}

/// Returns whether all is known of a job: its end, the lines that a decision can need, and its bill. A job whose trial
/// arrives at a rung does not need its bill.
pub(crate) fn is_complete(definition: &Definition, state: &State, trial: &Trial, job: &Job) -> bool {
    (job.is_closed() || precedes_bill(definition, trial, job)) && is_known(definition, state, trial, job)
}

/// Returns whether a trial can arrive at its rung before the bill of its job: the end shows that the job ran, and all its
/// stored lines are folded, as before a bill. Without the read of its log that is sure for one stream from the start.
fn precedes_bill(definition: &Definition, trial: &Trial, job: &Job) -> bool {
    let has_run = job.end.is_some() && job.started.is_some();
    let is_whole = trial.streams.len() == 1 && job.checkpoint_epochs.is_zero();
    definition.promotes().is_some() && has_run && (job.rest_read || is_whole)
}

/// Returns whether all lines of an ended job that a decision can need are known, or will not be.
fn is_known(definition: &Definition, state: &State, trial: &Trial, job: &Job) -> bool {
    let given_up = || {
        let in_full = job.bill.is_some_and(|bill| bill.seconds.is_none());
        in_full || deadline_of(job).is_some_and(|deadline| state.clock >= deadline)
    };
    job.rest_read || !has_run(trial, job) || has_all_epochs(definition, trial, job) || given_up()
}

/// Returns when the next job whose log cannot be read is concluded without it.
pub(super) fn deadline(definition: &Definition, state: &State) -> Option<Time> {
    let unread = state.jobs().filter(|(_, trial, job)| !is_known(definition, state, trial, job));
    // The hour begins with the first time that the sweeper reports: ask for one after a minute.
    let deadlines =
        unread.filter_map(|(_, _, job)| deadline_of(job).or(job.rest_ordered.map(|at| at + BILL_USUAL)));
    deadlines.filter(|deadline| *deadline > state.clock).min()
}

/// Returns when the wait for the log of an ended job is over.
pub(super) fn deadline_of(job: &Job) -> Option<Time> {
    job.rest_awaited_since.map(|since| since + SETTLE_DEADLINE)
}

fn has_run(trial: &Trial, job: &Job) -> bool {
    if job.never_started || job.refused.is_some() {
        return false;
    }
    job.had_instances() || job.started.is_some() || trial.streams.iter().any(|s| s.attempt == job.attempt)
}

/// Returns whether every epoch of a completed job has its line, and the latest one is the last. Any other job can have
/// logged further lines.
///
/// The lines of a stream that is not placed yet can be counted only if it is the trial's first.
fn has_all_epochs(definition: &Definition, trial: &Trial, job: &Job) -> bool {
    let goal = trial.goal(definition);
    let own = trial.streams.iter().filter(|stream| stream.attempt == job.attempt);
    let ends = own.filter_map(|stream| stream.span.map(|(_, (at, last))| (at, last, stream)));
    let completed = job.stop.is_none() && job.end == Some(JobEnd::Completed);
    ends.max_by_key(|(at, _, _)| *at).is_some_and(|(_, last, stream)| {
        let (first, lines) = (trial.streams.len() == 1, stream.lines.len().max(stream.unplaced_lines.len()));
        let known = if stream.unplaced { if first { lines } else { 0 } } else { trial.curve.len() };
        completed && last >= goal && count(known) >= goal.0
    })
}

/// Returns whether nothing is decided by the last lines: the program failed, or a decision stopped the trial. A job that
/// trained past its level is compared by its value there.
fn is_over(job: &Job) -> bool {
    let stopped = match job.stop {
        None
        | Some(
            StopWhy::PastLevel { .. }
            | StopWhy::NextInstances
            | StopWhy::Quota
            | StopWhy::Interruptions { .. }
            | StopWhy::ReservationUsed { .. },
        ) => false,
        Some(
            StopWhy::Rung { .. }
            | StopWhy::MaxResource
            | StopWhy::TuningEnding
            | StopWhy::TargetReached { .. }
            | StopWhy::Requested
            | StopWhy::NoObjective { .. }
            | StopWhy::Diverged { .. }
            | StopWhy::CapExceeded { .. },
        ) => true,
    };
    stopped || job.end == Some(JobEnd::AlgorithmError)
}
