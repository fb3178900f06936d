//! The rest of an ended job's log: the lines that are still unknown when the job ends.
//!
//! Log lines take their own way and can be lost, so the end of a job does not show that its last value is known. A job
//! whose epochs are all known needs no further line and is concluded at once. The log of any other job that ran is read
//! first. Where no decision needs its lines, it is read at once; else only when its last lines are sure to be readable.

use crate::definition::Definition;
use crate::job::Job;
use crate::log::fact::JobEnd;
use crate::trial::Trial;
use crate::unit::ids::count;
use crate::unit::limits::SETTLE_DEADLINE;
use crate::unit::time::Time;

/// Returns whether all is known of a job: its end, the lines that a decision can need, and its bill. A job whose trial
/// arrives at a rung does not need its bill.
pub(crate) fn is_complete(definition: &Definition, clock: Time, trial: &Trial, job: &Job) -> bool {
    (job.is_closed() || precedes_bill(definition, trial, job)) && is_known(definition, clock, trial, job)
}

/// Returns whether a trial can arrive at its rung before the bill of its job: the end shows that the job ran, and all its
/// stored lines are folded, as before a bill. Without the read of its log that is sure for one stream from the start.
fn precedes_bill(definition: &Definition, trial: &Trial, job: &Job) -> bool {
    let has_run = job.end.is_some() && job.started.is_some();
    let is_whole = trial.streams.len() == 1 && job.checkpoint_epochs.is_zero();
    definition.promotes().is_some() && has_run && (job.rest_read || is_whole)
}

/// Returns whether all lines of an ended job that a decision can need are known, or will not be.
pub(crate) fn is_known(definition: &Definition, clock: Time, trial: &Trial, job: &Job) -> bool {
    let given_up = || {
        let in_full = job.bill.is_some_and(|bill| bill.seconds.is_none());
        in_full || deadline_of(job).is_some_and(|deadline| clock >= deadline)
    };
    job.rest_read || !has_run(trial, job) || has_all_epochs(definition, trial, job) || given_up()
}

/// Returns when the wait for the log of an ended job is over.
pub(crate) fn deadline_of(job: &Job) -> Option<Time> {
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
