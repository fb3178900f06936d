//! The rest of an ended job's log: the lines that are still unknown when the job ends.
//!
//! Log lines are delivered separately and can be lost, so the end of a job does not show that its last value is known.
//! A job whose epochs are all known needs no further line and is concluded at once. The log of any other job that ran
//! is read first. If no decision needs its lines, the log is read at once. Otherwise, it is read only when its last
//! lines are certain to be readable.

use crate::definition::Definition;
use crate::job::Job;
use crate::job::inquiry::Inquiry;
use crate::log::fact::JobEnd;
use crate::trial::Trial;
use crate::unit::ids::count;
use crate::unit::time::Time;

/// Returns whether all is known of a job: its end, the lines that a decision can need, and its bill. A job whose trial
/// arrives at a rung does not need its bill.
pub(crate) fn is_complete(definition: &Definition, clock: Time, trial: &Trial, job: &Job) -> bool {
    (job.is_closed() || precedes_bill(definition, trial, job)) && is_known(definition, clock, trial, job)
}

/// Returns whether a trial can arrive at its rung before the bill of its job: the end shows that the job ran, and all its
/// stored lines are folded, as before a bill. Without the read of its log that is sure for one stream from the start.
fn precedes_bill(definition: &Definition, trial: &Trial, job: &Job) -> bool {
    let has_run = job.end().is_some() && job.started().is_some();
    let is_whole = trial.streams.len() == 1 && job.order.checkpoint_epochs.is_zero();
    definition.promotes().is_some() && has_run && (job.final_log == Inquiry::Answered || is_whole)
}

/// Returns whether all lines of an ended job that a decision can need are known, or will not be.
pub(crate) fn is_known(definition: &Definition, clock: Time, trial: &Trial, job: &Job) -> bool {
    let given_up =
        || job.bill.is_in_full() || job.final_log.expires_at().is_some_and(|deadline| clock >= deadline);
    job.final_log == Inquiry::Answered
        || !has_run(trial, job)
        || has_all_epochs(definition, trial, job)
        || given_up()
}

fn has_run(trial: &Trial, job: &Job) -> bool {
    if job.is_void() {
        return false;
    }
    job.had_instances()
        || job.started().is_some()
        || trial.streams.iter().any(|s| s.attempt == job.order.attempt)
}

/// Returns whether every epoch of a completed job has its line, and the latest one is the last. Any other job can have
/// logged further lines.
///
/// The lines of a stream that is not placed yet can be counted only if it is the trial's first.
fn has_all_epochs(definition: &Definition, trial: &Trial, job: &Job) -> bool {
    let goal = trial.goal(definition);
    let own = trial.streams.iter().filter(|stream| stream.attempt == job.order.attempt);
    let ends = own.filter_map(|stream| stream.span.map(|(_, (at, last))| (at, last, stream)));
    let completed = job.stop.is_none() && job.end() == Some(JobEnd::Completed);
    ends.max_by_key(|(at, _, _)| *at).is_some_and(|(_, last, stream)| {
        let (first, lines) = (trial.streams.len() == 1, stream.lines.len().max(stream.unplaced_lines.len()));
        let known = if stream.unplaced { if first { lines } else { 0 } } else { trial.curve.len() };
        completed && last >= goal && count(known) >= goal.0
    })
}
