//! Judges running trials at rungs (stopping-type ASHA). Judges a trial once its value at the level of its next rung is
//! known. Compares it with all trials that arrived at this level before, in any bracket. A value at a level means the
//! same in all brackets, so a bracket with few trials needs no rivals of its own. (ASHA's rungs belong to one bracket
//! each.)
//!
//! A trial competes with its best value so far, since the tuning searches for the best value. One bad epoch therefore
//! does not decide about a noisy curve, or about a curve that peaked and fell.
//!
//! At a level that does not predict later values, all trials continue ([`hyperband::rung::predicts`]). The trials that
//! were judged at the last level show it, by their values there and at the lower level.
//!
//! The median rule of the other strategies uses the same rungs. It compares a trial with the running averages of the
//! trials that arrived before ([`Rule::Median`]).

use hyperband::ranking::improves;

use crate::definition::Definition;
use crate::log::fact::JobEnd;
use crate::log::ruling::{Order, ReadOrder, Ruling, SearchRuling};
use crate::rules::{never, nothing};
use crate::scheduler::judge;
use crate::state::{State, Status};
use crate::trial::Trial;
use crate::trial::diverged::diverged;
use crate::trial::log::is_complete;
use crate::unit::epochs::Epochs;
use crate::unit::ids::{TrialId, count};
use crate::unit::limits::MAX_DIVERGED_EPOCHS;

/// Compares trials at rungs.
pub(crate) const JUDGEMENT: super::Rule =
    super::Rule { next: |view| judgement(view.definition, view.state), wakes: never, folds_first: nothing };

/// Returns the next verdict that is due, or orders the log that the verdict needs to be read first.
pub(crate) fn judgement(definition: &Definition, state: &State) -> Option<Ruling> {
    // A trial that reached the target trains to its end, and all others stop.
    if state.status != Status::Active || definition.promotes().is_some() || state.finalist.is_some() {
        return None;
    }
    state.trials.iter().find_map(|(number, trial)| {
        // A diverged trial is stopped as such.
        if trial.stop_why.is_some() || trial.stop_requested || diverged(definition, trial).is_some() {
            return None;
        }
        let place = trial.place()?;
        let level = definition.level(place.cohort.bracket, place.rung);
        // The last rung is the end of the trial: there is no comparison.
        if level >= definition.largest_resource() {
            return None;
        }
        let at = value_at(definition, state, trial, level)?;
        let (resource, value) = best_up_to(definition, trial, at);
        if log_is_unread(definition, state, trial) {
            return log_read(*number, trial);
        }
        let of = definition.definition_of(*number);
        let rungs = state.search.rungs_at(definition, level, of);
        let rule = definition.rule(place.cohort.bracket, place.rung);
        let verdict = judge(rungs, definition.direction(), rule, (*number, value));
        let predicts = state.search.predicts(definition, level, of);
        let verdict = if predicts { verdict } else { verdict.of_all(value.is_some()) };
        Some(Ruling::Search(SearchRuling::TrialJudged {
            trial: *number,
            bracket: place.cohort.bracket,
            rung: place.rung,
            level,
            resource,
            value,
            average: average_up_to(definition, trial, at),
            verdict: verdict.into(),
        }))
    })
}

/// Returns whether the stored log of a restarted trial must be read before the trial is judged.
///
/// This applies where the epoch of a line is its rank in its stream: a lost line would give all later lines too low a
/// rank. The log of a job that is concluded has been read.
fn log_is_unread(definition: &Definition, state: &State, trial: &Trial) -> bool {
    let streams = stream_count(trial);
    let closed = trial.job().is_none_or(|job| is_complete(definition, state.clock, trial, job));
    !definition.epochs.captured && streams > 1 && trial.read.answered() < Some(streams) && !closed
}

/// Orders the stored log to be read, once after each restart; `None` while the outcome is pending.
fn log_read(number: TrialId, trial: &Trial) -> Option<Ruling> {
    let streams = stream_count(trial);
    let job = trial.job().filter(|_| trial.read.key() < Some(streams))?;
    let job = job.key(number);
    Some(Ruling::Order(Order::Read(ReadOrder::Log { job, streams })))
}

fn stream_count(trial: &Trial) -> u32 {
    count(trial.streams.len())
}

/// Returns the epoch and value of the best epoch up to the one that counts at a level. A trial without a value there has
/// diverged, whatever it had before.
fn best_up_to(
    definition: &Definition,
    trial: &Trial,
    (resource, value): (Epochs, Option<f64>),
) -> (Epochs, Option<f64>) {
    let Some(last) = value else { return (resource, None) };
    let earlier = trial.curve.range(..resource).rev();
    let (epoch, best) = earlier.fold((resource, last), |best, (epoch, value)| match value {
        // Of equal values the first counts.
        Some(value) if !improves(definition.direction(), best.1, *value) => (*epoch, *value),
        Some(_) | None => best,
    });
    (epoch, Some(best))
}

/// Returns the running average at the epoch that counts at a level, with which the median rule compares later trials;
/// `None` with other rules, or if the trial has diverged.
#[expect(clippy::float_arithmetic, reason = "a sum in the order of the epochs is the same on every machine")]
fn average_up_to(
    definition: &Definition,
    trial: &Trial,
    (resource, value): (Epochs, Option<f64>),
) -> Option<f64> {
    value.filter(|_| definition.plan().is_median())?;
    let values = trial.curve.range(..=resource).filter_map(|(_, value)| *value);
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    Some(sum / count).filter(|average: &f64| average.is_finite()).or(value)
}

/// Returns the epoch and value that count at `level` ([`arrived_with`]).
fn value_at(
    definition: &Definition,
    state: &State,
    trial: &Trial,
    level: Epochs,
) -> Option<(Epochs, Option<f64>)> {
    // The median rule compares no job that has ended: there is nothing to stop.
    let ended_well = !definition.plan().is_median()
        && trial.job().is_some_and(|job| {
            job.end() == Some(JobEnd::Completed) && is_complete(definition, state.clock, trial, job)
        });
    arrived_with(definition, trial, level, ended_well)
}

/// Returns the epoch and value with which a trial arrives at `level`: those of the first finite value there or above.
/// If it `has_ended` without one, its last finite value counts. `None` while a later value may count.
///
/// One value that is not finite can be a glitch. As many in a row as stop a trial show that it has diverged, and count
/// as such.
pub(crate) fn arrived_with(
    definition: &Definition,
    trial: &Trial,
    level: Epochs,
    has_ended: bool,
) -> Option<(Epochs, Option<f64>)> {
    let (first, value) = match trial.curve.range(level..).next() {
        Some((first, value)) => (*first, *value),
        None if !has_ended => return None,
        None => (level, None),
    };
    if value.is_some() {
        return Some((first, value));
    }
    let most = match definition.settings.max_diverged_epochs {
        0 => MAX_DIVERGED_EPOCHS,
        most => most,
    };
    let mut in_a_row = 0_u32;
    for (epoch, value) in &trial.curve {
        in_a_row = if value.is_some() { 0 } else { in_a_row.saturating_add(1) };
        if *epoch >= level && (value.is_some() || in_a_row >= most) {
            return Some((*epoch, *value));
        }
    }
    let (last, _) = trial.curve.last_key_value().filter(|_| has_ended)?;
    let finite = trial.curve.iter().rev().find(|(_, value)| value.is_some()).filter(|_| in_a_row < most);
    Some(finite.map_or((*last, None), |(epoch, value)| (*epoch, *value)))
}
