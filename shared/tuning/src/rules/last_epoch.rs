//! The end of a job that has trained its last epoch. Its program may evaluate, save its model and export it before it
//! ends by itself. A stop after the last metric line can therefore lose the model.
//!
//! The time from the last line to the end is learned from jobs that ended after their last epoch
//! ([`crate::quote::runtime::longest_tail`]). Until enough jobs have done so, the limits of the job are the only bound.
//! A job that trains beyond `MaxResource` is stopped at once.

use crate::definition::Definition;
use crate::job::Job;
use crate::log::fact::JobPhase;
use crate::log::reasons::StopWhy;
use crate::quote::runtime::longest_tail;
use crate::state::State;
use crate::trial::Trial;
use crate::trial::timing::Goal;
use crate::unit::ids::SizeId;
use crate::unit::limits::{LAST_EPOCH_GRACE, TAIL_FACTOR};
use crate::unit::time::{Millis, Time};

/// Returns whether the trial has all epochs for which `job` was started.
pub(crate) fn is_reached(definition: &Definition, trial: &Trial, job: &Job) -> bool {
    let last = job.order.level.unwrap_or_else(|| definition.largest_resource());
    trial.resource() >= last
}

/// Returns the stop reason of a job that trains beyond its last epoch, or whose tail is longer than any that it may
/// have.
pub(crate) fn stop(definition: &Definition, state: &State, trial: &Trial, job: &Job) -> Option<StopWhy> {
    let beyond = trial.resource() > definition.largest_resource();
    let over = || grace_ends_at(definition, state, trial, job).is_some_and(|end| end <= state.clock);
    (beyond || over()).then_some(StopWhy::MaxResource)
}

/// Returns when each grace is over.
pub(crate) fn deadlines(definition: &Definition, state: &State) -> impl Iterator<Item = Time> {
    let last = state.jobs().filter(|(_, trial, job)| is_reached(definition, trial, job));
    last.filter_map(|(_, trial, job)| grace_ends_at(definition, state, trial, job))
}

fn grace_ends_at(definition: &Definition, state: &State, trial: &Trial, job: &Job) -> Option<Time> {
    let grace = grace(state, Goal::of_job(definition, job), trial.size(definition))?;
    last_sign(trial, job).map(|sign| sign + grace)
}

/// Returns when the program began to run or logged its last line; `None` while it is not known to run.
fn last_sign(trial: &Trial, job: &Job) -> Option<Time> {
    if !job.holds_slot() || job.stop.is_some() {
        return None;
    }
    let own = trial.last_line_of(job.order.attempt);
    let line = own.map(|line| line.at).filter(|at| Some(*at) >= job.phase_at());
    line.or(job.entered(JobPhase::Training))
}

/// Returns how long a job may run after its last line; `None` while too few tails are known.
fn grace(state: &State, goal: Goal, size: SizeId) -> Option<Millis> {
    longest_tail(state, goal, size).map(|tail| (tail * TAIL_FACTOR).max(LAST_EPOCH_GRACE))
}
