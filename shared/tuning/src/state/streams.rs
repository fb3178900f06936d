//! Places the log streams of jobs once all their lines are known.

use crate::definition::Definition;
use crate::job::Job;
use crate::log::fact::{JobEnd, JobKey};
use crate::state::State;
use crate::trial::Trial;
use crate::trial::log::is_complete;
use crate::trial::stream::place;
use crate::unit::epochs::Epochs;
use crate::unit::ids::TrialId;

/// Places the log streams of a job once all is known of it.
pub(crate) fn place_complete(definition: &Definition, state: &mut State, key: JobKey) {
    let complete = |trial: &Trial| {
        let job = trial.job().filter(|job| job.is(key));
        job.is_some_and(|job| is_complete(definition, state.clock, trial, job))
    };
    if state.trials.get(key.trial).is_some_and(complete) {
        place_streams(definition, state, key);
    }
}

/// Places the log streams of an ended job whose program restarts its count with each start. All its lines are known.
///
/// The first start of a trial begins at epoch 1. A job that completed has trained to its level, so the last line of
/// its last stream is at the level, whatever checkpoint it resumed from. If even the latest possible checkpoint would
/// not have brought the job to its level, it ended below the level, and the latest checkpoint is assumed. Nothing is
/// known about other streams, so their lines enter no curve.
pub(crate) fn place_streams(definition: &Definition, state: &mut State, key: JobKey) {
    let Some(trial) = state.trials.get_mut(key.trial) else { return };
    let Some(end) = trial.job().filter(|job| job.is(key)).and_then(Job::end) else { return };
    let level = trial.goal(definition);
    let had = definition.level_below(trial.bracket(definition), trial.next_rung());
    // Epochs before this job, plus the epochs trained in all starts since.
    let ends = trial.streams.iter().filter_map(|stream| stream.span.map(|(_, (_, last))| last));
    let in_all = ends.fold(had, |sum, last| sum + last);
    let indexed =
        || trial.streams.iter().enumerate().filter_map(|(index, stream)| Some((index, stream, stream.span?)));
    let first = indexed().min_by_key(|(_, _, ((first_at, _), _))| *first_at).map(|(index, _, _)| index);
    let own = indexed().filter(|(_, stream, _)| stream.attempt == key.attempt);
    let last = own.max_by_key(|(_, _, (_, (last_at, _)))| *last_at);
    let last = last.map(|(index, _, (_, (_, last)))| (index, (level - last).min(in_all - last)));
    if let Some((index, offset)) = last.filter(|_| end == JobEnd::Completed) {
        let mut offset = offset;
        if crate::planted!(LinesPlacedAtZero) {
            offset = Epochs::ZERO;
        }
        place(trial, index, offset);
    }
    if let Some(index) = first.filter(|_| had.is_zero()) {
        place(trial, index, Epochs::ZERO);
    }
    follow_incumbent(state, key.trial);
}

/// Updates the epoch of the incumbent after its line moved.
pub(crate) fn follow_incumbent(state: &mut State, number: TrialId) {
    let Some(incumbent) = state.search.incumbent.as_mut().filter(|incumbent| incumbent.trial == number)
    else {
        return;
    };
    let Some(trial) = state.trials.get(number) else { return };
    let same = |value: Option<f64>| value.is_some_and(|value| value.to_bits() == incumbent.value.to_bits());
    if let Some((epoch, _)) = trial.curve.iter().find(|(_, value)| same(**value)) {
        incumbent.resource = *epoch;
    }
}
