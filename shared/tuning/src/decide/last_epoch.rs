//! The end of a job that has trained its last epoch. Its program saves its model afterwards and ends by itself, so a stop
//! at the last metric line could lose the model.
//!
//! The job is stopped if it trains on, or if it does not end within a grace. Its own limits, for which money is
//! reserved, can end it earlier.

use crate::definition::Definition;
use crate::fact::JobPhase;
use crate::limits::{LAST_EPOCH_GRACE, LAST_EPOCH_GRACE_EPOCHS, LAST_EPOCH_GRACE_UNTIMED};
use crate::ruling::StopWhy;
use crate::runtime::usual;
use crate::state::{Job, State, Trial};
use crate::time::{Millis, Time};

/// Returns whether the trial has all epochs for which `job` was started.
pub(super) fn is_reached(definition: &Definition, trial: &Trial, job: &Job) -> bool {
    let last = job.level.unwrap_or_else(|| definition.largest_resource());
    trial.refit.is_none() && trial.resource() >= last
}

/// Returns the stop reason of a job that trains beyond its last epoch, or whose grace is over.
pub(super) fn stop(definition: &Definition, state: &State, trial: &Trial, job: &Job) -> Option<StopWhy> {
    let beyond = trial.resource() > definition.largest_resource();
    let over = || grace_ends_at(state, trial, job).is_some_and(|end| end <= state.clock);
    let has_all = trial.resource() >= definition.largest_resource();
    let why = if has_all { StopWhy::MaxResource } else { StopWhy::TuningEnding };
    (beyond || over()).then_some(why)
}

/// Returns when the next grace is over.
pub(super) fn deadline(definition: &Definition, state: &State) -> Option<Time> {
    let last = state.jobs().filter(|(_, trial, job)| is_reached(definition, trial, job));
    let ends = last.filter_map(|(_, trial, job)| grace_ends_at(state, trial, job));
    ends.filter(|end| *end > state.clock).min()
}

fn grace_ends_at(state: &State, trial: &Trial, job: &Job) -> Option<Time> {
    last_sign(trial, job).map(|sign| sign + grace(state))
}

/// Returns when the program began to run or logged its last line; `None` while it is not known to run.
fn last_sign(trial: &Trial, job: &Job) -> Option<Time> {
    if !job.holds_slot() || job.stop.is_some() {
        return None;
    }
    let own = trial.last_line.as_ref().filter(|_| trial.last_line_attempt == job.attempt);
    let line = own.map(|(at, _, _)| *at).filter(|at| *at >= job.phase_at);
    line.or((job.phase == JobPhase::Training).then_some(job.phase_at))
}

fn grace(state: &State) -> Millis {
    let timed = usual(state).map(|(epoch, _)| (epoch * LAST_EPOCH_GRACE_EPOCHS).max(LAST_EPOCH_GRACE));
    timed.unwrap_or(LAST_EPOCH_GRACE_UNTIMED)
}
