//! Folds metric lines: from log lines to (epoch, value) of a trial.
//!
//! The epoch is captured from the line, or else the line's rank by (time, id) in its stream, counted from the epochs
//! the trial had when the stream began. The first value at an epoch stands; lines that come late or twice change
//! nothing. Values count for the incumbent even after a stop was ordered, never for a rung already judged.

use hyperband::plan::MAX_RESOURCE;
use hyperband::ranking::improves;

use crate::definition::Definition;
use crate::fact::{JobKey, MetricLine};
use crate::limits::MAX_STREAMS_PER_TRIAL;
use crate::state::{Incumbent, State, Stream, Trial};

/// Folds `lines` of `stream`; whether anything changed.
pub(super) fn fold(
    definition: &Definition,
    state: &mut State,
    key: JobKey,
    stream: &str,
    lines: &[MetricLine],
) -> bool {
    let Some(trial) = state.trials.get_mut(&key.trial) else { return false };
    if key.attempt > trial.attempts {
        return false;
    }
    let Some(index) = stream_index(definition, trial, stream, lines) else { return false };
    let mut changed = false;
    let mut seen = Vec::new();
    for line in lines {
        changed |= note_last_line(trial, line);
        let epoch = if definition.epochs.captured {
            captured_epoch(definition, trial, index, line)
        } else {
            ranked_epoch(trial, index, line)
        };
        if let Some(epoch) = epoch {
            changed = true;
            seen.push((epoch, line.value));
        }
    }
    for (epoch, value) in seen {
        improve(definition, state, key.trial, epoch, value);
    }
    changed
}

/// Whether the index of a line begins again with every stream. A rank always does.
fn restarts(definition: &Definition) -> bool {
    !definition.epochs.captured || definition.epochs.per_attempt
}

/// The stream's place in the trial; a stream not seen before is added, with the epochs that came before it.
fn stream_index(
    definition: &Definition,
    trial: &mut Trial,
    name: &str,
    lines: &[MetricLine],
) -> Option<usize> {
    if let Some(index) = trial.streams.iter().position(|stream| stream.name == name) {
        return Some(index);
    }
    if trial.streams.len() >= MAX_STREAMS_PER_TRIAL {
        return None;
    }
    let first = lines.iter().min_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)))?;
    let offset = if restarts(definition) { proven_offset(trial, first) } else { 0 };
    trial.streams.push(Stream { name: name.to_owned(), offset, lines: Vec::new(), span: None });
    Some(trial.streams.len().saturating_sub(1))
}

/// Epochs done at the checkpoint that a restarted program went on from, as far as it is proven: the first line after the
/// restart repeats, bit for bit, a value that the trial had shown before. Without such proof 0, which counts too little
/// rather than too much: a trial is then never judged at an epoch it has not reached.
fn proven_offset(trial: &Trial, first: &MetricLine) -> u32 {
    let Some(value) = first.value else { return 0 };
    let same = |other: &Option<f64>| other.is_some_and(|other| other.to_bits() == value.to_bits());
    let mut matching = trial.curve.iter().filter(|(_, other)| same(other)).map(|(epoch, _)| *epoch);
    match (matching.next(), matching.next()) {
        (Some(epoch), None) => epoch.saturating_sub(1),
        _ => 0,
    }
}

fn note_last_line(trial: &mut Trial, line: &MetricLine) -> bool {
    let later = trial.last_line.as_ref().is_none_or(|(at, id, _)| (*at, id) < (line.at, &line.id));
    if later {
        trial.last_line = Some((line.at, line.id.clone(), line.value));
    }
    later
}

/// Enters a line whose epoch was captured; the epoch if it was not known before.
fn captured_epoch(
    definition: &Definition,
    trial: &mut Trial,
    index: usize,
    line: &MetricLine,
) -> Option<u32> {
    let stream = trial.streams.get_mut(index)?;
    let raw = line.index?.checked_sub(u64::from(definition.epochs.base))?;
    let epoch = u32::try_from(raw).ok()?.checked_add(1)?.checked_add(stream.offset)?;
    if epoch > MAX_RESOURCE {
        return None;
    }
    extend_span(stream, line.at, epoch);
    if trial.curve.contains_key(&epoch) {
        return None;
    }
    trial.curve.insert(epoch, line.value);
    Some(epoch)
}

/// Enters a line whose epoch is its rank; the trial's newest epoch if it has one more.
fn ranked_epoch(trial: &mut Trial, index: usize, line: &MetricLine) -> Option<u32> {
    let stream = trial.streams.get_mut(index)?;
    let place = stream.lines.partition_point(|(at, id, _)| (*at, id) < (line.at, &line.id));
    let known = stream.lines.get(place).is_some_and(|(at, id, _)| (*at, id) == (line.at, &line.id));
    let count = u32::try_from(stream.lines.len()).ok()?;
    if known || stream.offset.saturating_add(count) >= MAX_RESOURCE {
        return None;
    }
    stream.lines.insert(place, (line.at, line.id.clone(), line.value));
    let newest = stream.offset.saturating_add(count).saturating_add(1);
    let offset = stream.offset;
    let epoch_of =
        |place: usize| u32::try_from(place).unwrap_or(u32::MAX).saturating_add(offset).saturating_add(1);
    let in_order = epoch_of(place) == newest;
    let entered: Vec<_> = stream.lines.iter().skip(place).map(|(at, _, value)| (*at, *value)).collect();
    for (epoch, (at, _)) in (epoch_of(place)..).zip(&entered) {
        extend_span(stream, *at, epoch);
    }
    if in_order {
        if trial.curve.contains_key(&newest) {
            return None;
        }
        trial.curve.insert(newest, line.value);
        return Some(newest);
    }
    // An earlier line came late: the ranks after it move up by one. Rungs already judged stay as they are.
    for (epoch, (_, value)) in (epoch_of(place)..).zip(&entered) {
        trial.curve.insert(epoch, *value);
    }
    Some(newest)
}

fn extend_span(stream: &mut Stream, at: i64, epoch: u32) {
    let span = stream.span.get_or_insert(((at, epoch), (at, epoch)));
    if epoch <= span.0.1 {
        span.0 = (at, epoch);
    }
    if epoch >= span.1.1 {
        span.1 = (at, epoch);
    }
}

fn improve(definition: &Definition, state: &mut State, trial: u32, resource: u32, value: Option<f64>) {
    let Some(value) = value else { return };
    let better = state
        .incumbent
        .as_ref()
        .is_none_or(|incumbent| improves(definition.direction(), value, incumbent.value));
    if better {
        state.incumbent = Some(Incumbent { value, trial, resource });
        state.since_improved = 0;
    }
}
