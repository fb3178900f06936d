//! Folds metric lines into the curve of a trial and into the incumbent. [`crate::trial::stream`] finds their epochs.
//!
//! Values count for the incumbent even after a stop was ordered, but never for a rung already judged.

use hyperband::ranking::{improves, reaches};

use crate::definition::Definition;
use crate::log::fact::{JobKey, MetricLine};
use crate::state::search::Incumbent;
use crate::state::streams::follow_incumbent;
use crate::state::{State, Status};
use crate::trial::stream::{
    can_be_finalist, captured_epoch, keep_latest, note_last_line, numbered, ranked_epoch, restarts,
    stream_index,
};
use crate::trial::{Begun, Trial};
use crate::unit::epochs::Epochs;
use crate::unit::ids::TrialId;
use crate::unit::limits::MAX_RANKED_LINES;

/// Folds `lines` of `stream`; returns whether the state changed.
pub(crate) fn fold(
    definition: &Definition,
    state: &mut State,
    key: JobKey,
    stream: &str,
    lines: &[MetricLine],
) -> bool {
    if !counts(definition, state, key) {
        return false;
    }
    let changed = note_base(definition, state, lines.iter().find_map(|line| line.index));
    let base = state.epoch_base.unwrap_or(definition.epochs.base);
    let Some(trial) = state.trials.get_mut(key.trial) else { return changed };
    let (lines, waits) = numbered(definition, base, trial, stream, lines);
    let known = trial.streams.len();
    let Some(index) = stream_index(definition, base, trial, key.attempt, stream, &lines) else {
        return changed || waits;
    };
    let mut changed = changed || waits || trial.streams.len() > known;
    let mut moved = false;
    let mut reaches_target = false;
    let was_fruitless = !trial.has_value();
    let target = definition.limits.target.filter(|_| can_be_finalist(trial, key));
    let mut seen = Vec::new();
    let mut new_values = Vec::new();
    for line in &lines {
        // JSON stores no infinities.
        let value = line.value.filter(|value| value.is_finite());
        changed |= note_last_line(trial, key.attempt, line, value);
        let entered = if definition.epochs.captured {
            captured_epoch(base, trial, index, line, value)
        } else {
            ranked_epoch(trial, index, line, value, lines_kept(definition))
        };
        changed |= entered.changed;
        moved |= entered.moved;
        // A value whose epoch is not proven after a restart enters no curve, but counts for the incumbent.
        let held = trial.streams.get(index).is_some_and(|stream| stream.unplaced);
        let unplaced = (entered.epoch.is_none() && (index > 0 || held) && restarts(definition))
            .then(|| trial.resource());
        let counted = entered.epoch.or(unplaced);
        let reached = target.zip(value).filter(|_| counted.is_some());
        reaches_target |=
            reached.is_some_and(|(target, value)| reaches(definition.direction(), value, target));
        seen.extend(counted.map(|epoch| (epoch, value)));
        new_values.extend(value.filter(|_| entered.epoch.is_some()));
    }
    for value in new_values {
        state.search.note_equal(value);
    }
    for (epoch, value) in seen {
        changed |= improve(definition, state, key.trial, epoch, value);
    }
    if moved {
        follow_incumbent(state, key.trial);
    }
    let is_fruitful = || state.trials.get(key.trial).is_some_and(Trial::has_value);
    if was_fruitless && is_fruitful() {
        state.results.fruitless.trials = 0;
    }
    if reaches_target && state.status == Status::Active {
        state.finalist = state.finalist.or(Some(key.trial));
    }
    if changed {
        state.results.has_logged = true;
    }
    changed
}

/// Folds an epoch that a line without a value began. Enters the lines that waited for it.
pub(crate) fn fold_begun(definition: &Definition, state: &mut State, key: JobKey, begun: Begun) -> bool {
    if !definition.epochs.captured || !counts(definition, state, key) {
        return false;
    }
    let changed = note_base(definition, state, Some(begun.index));
    let Some(trial) = state.trials.get_mut(key.trial) else { return changed };
    if trial.begun.contains(&begun) {
        return changed;
    }
    let known = trial.begun.clone();
    let stream = begun.stream.clone();
    trial.begun.push(begun);
    trial.begun.sort_by_key(|begun| (begun.at, begun.index));
    keep_latest(&mut trial.begun);
    let changed = changed || trial.begun != known;
    let waiting = trial.unnumbered.iter().filter(|(name, _)| *name == stream).map(|(_, line)| line.clone());
    let lines: Vec<MetricLine> = waiting.collect();
    fold(definition, state, key, &stream, &lines) || changed
}

/// Returns whether facts of the job still count. A key that was never ordered is not a job of this trial, whatever its
/// name. Attempts of rungs that the trial has passed are settled.
fn counts(definition: &Definition, state: &State, key: JobKey) -> bool {
    state.trials.get(key.trial).is_some_and(|trial| {
        key.attempt <= trial.attempts
            && key.attempt > trial.past_attempts
            && key.rung <= trial.start_rung(definition)
    })
}

/// Records the index of the first epoch, if the request leaves it open: the first logged index of the tuning shows it.
/// Returns whether the state changed.
fn note_base(definition: &Definition, state: &mut State, first: Option<u64>) -> bool {
    let Some(first) = first.filter(|_| definition.epochs.is_base_assumed && state.epoch_base.is_none())
    else {
        return false;
    };
    state.epoch_base = Some(if first == 0 { 0 } else { definition.epochs.base });
    true
}

/// Returns how many lines of one stream are kept where the epoch is a line's rank: this bounds the state of all
/// running trials.
fn lines_kept(definition: &Definition) -> usize {
    let parallel = usize::try_from(definition.limits.max_parallel).unwrap_or(usize::MAX);
    MAX_RANKED_LINES.checked_div(parallel).unwrap_or(MAX_RANKED_LINES)
}

fn improve(
    definition: &Definition,
    state: &mut State,
    trial: TrialId,
    resource: Epochs,
    value: Option<f64>,
) -> bool {
    let Some(value) = value else { return false };
    let better = state
        .search
        .incumbent
        .as_ref()
        .is_none_or(|incumbent| improves(definition.direction(), value, incumbent.value));
    if better {
        state.search.incumbent = Some(Incumbent { value, trial, resource });
        state.search.since_improved = 0;
    }
    better
}
