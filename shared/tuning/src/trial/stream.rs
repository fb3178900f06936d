//! The log streams of a trial: from log lines to (epoch, value) points of its curve.
//!
//! The epoch of a line is the index captured from it, else the line's rank by (time, id) in its stream. Both count from
//! the epochs that the trial had when the stream began. If a promoted program restarts its count, the number of these
//! epochs is known only when the job has ended. Until then, the lines of the stream are held
//! ([`crate::state::streams`]). The first value at an epoch stands: late and duplicate lines change nothing.
//!
//! A line with a value may lack an index that an earlier line has. The value then belongs to the epoch of the earlier
//! line ([`numbered`]).

use std::collections::BTreeMap;

use hyperband::plan::MAX_RESOURCE;

use crate::definition::Definition;
use crate::job::Job;
use crate::log::fact::{JobEnd, JobKey, MetricLine};
use crate::trial::{Begun, LastLine, Stream, Trial};
use crate::unit::epochs::Epochs;
use crate::unit::limits::{MAX_BEGUN_EPOCHS, MAX_STREAMS_PER_TRIAL};
use crate::unit::time::Time;

#[derive(Default)]
pub(crate) struct Entered {
    /// Whether the trial changed.
    pub(crate) changed: bool,
    /// The epoch that got its first value.
    pub(crate) epoch: Option<Epochs>,
    /// Whether later lines of the stream moved to other epochs.
    pub(crate) moved: bool,
}

impl Stream {
    /// Returns whether one of the ranked lines is at `epoch`.
    fn covers(&self, epoch: Epochs) -> bool {
        epoch > self.offset && epoch <= self.offset + Epochs::of_lines(self.lines.len())
    }
}

/// Returns the value of an epoch, which may not be a number; `None` before its first value.
fn value_of<'a>(base: u32, trial: &'a Trial, begun: &Begun) -> Option<&'a Option<f64>> {
    let own = own_epoch(base, begun.index)?;
    let stream = trial.streams.iter().find(|stream| stream.name == begun.stream)?;
    trial.curve.get(&(stream.offset + own)).or_else(|| stream.unplaced_lines.get(&own))
}

/// Returns the epoch of a captured index, counted from the beginning of its stream; `None` if it is out of range.
fn own_epoch(base: u32, index: u64) -> Option<Epochs> {
    let own = index.checked_sub(u64::from(base))?.checked_add(1)?;
    u32::try_from(own).ok().map(Epochs)
}

pub(crate) fn note_last_line(trial: &mut Trial, attempt: u32, line: &MetricLine, value: Option<f64>) -> bool {
    let later = trial.last_line.as_ref().is_none_or(|last| (last.at, &last.id) < (line.at, &line.id));
    if later {
        trial.last_line = Some(LastLine { at: line.at, id: line.id.clone(), value, attempt });
    }
    later
}

/// Enters a line whose epoch is captured from it.
pub(crate) fn captured_epoch(
    base: u32,
    trial: &mut Trial,
    index: usize,
    line: &MetricLine,
    value: Option<f64>,
) -> Entered {
    let Some(stream) = trial.streams.get_mut(index) else { return Entered::default() };
    let own = line.index.and_then(|index| own_epoch(base, index));
    let epoch = own.map(|own| stream.offset + own).filter(|epoch| *epoch <= Epochs(MAX_RESOURCE));
    let Some(epoch) = epoch else { return Entered::default() };
    let mut changed = extend_span(stream, line.at, epoch);
    if stream.last.is_none_or(|(last, _)| epoch > last) {
        stream.last = Some((epoch, value));
    }
    if stream.unplaced {
        let new = !stream.unplaced_lines.contains_key(&epoch);
        stream.unplaced_lines.entry(epoch).or_insert(value);
        return Entered { changed: changed || new, ..Entered::default() };
    }
    changed |= note_repeated_value(stream, trial.stage.job(), epoch, trial.curve.get(&epoch), value);
    if trial.curve.contains_key(&epoch) {
        return Entered { changed, ..Entered::default() };
    }
    trial.curve.insert(epoch, value);
    Entered { changed: true, epoch: Some(epoch), moved: false }
}

/// Enters a line whose epoch is its rank in its stream.
pub(crate) fn ranked_epoch(
    trial: &mut Trial,
    index: usize,
    line: &MetricLine,
    value: Option<f64>,
    lines_kept: usize,
) -> Entered {
    let Some((stream, earlier)) = trial.streams.get_mut(..=index).and_then(<[Stream]>::split_last_mut) else {
        return Entered::default();
    };
    let place = stream.lines.partition_point(|(at, id, _)| (*at, id) < (line.at, &line.id));
    let known = stream.lines.get(place).is_some_and(|(at, id, _)| (*at, id) == (line.at, &line.id));
    let last = stream.offset + Epochs::of_lines(stream.lines.len());
    if known || stream.lines.len() >= lines_kept || last >= Epochs(MAX_RESOURCE) {
        return Entered::default();
    }
    let before_proof = stream.proof.as_ref().is_some_and(|(at, id)| (line.at, &line.id) < (*at, id));
    stream.lines.insert(place, (line.at, line.id.clone(), value));
    if before_proof && !stream.offset.is_zero() {
        // The line that proved the offset keeps its epoch. Lines before it are at epochs that the trial logged
        // already.
        stream.offset = stream.offset - Epochs::ONE;
        return Entered { changed: true, ..Entered::default() };
    }
    let own = stream.offset + Epochs::of_lines(place) + Epochs::ONE;
    let moved = place < stream.lines.len().saturating_sub(1);
    // A late line moves the lines after it up by one epoch. Verdicts already given stand.
    let entered: Vec<_> = stream.lines.iter().skip(place).map(|(at, _, value)| (*at, *value)).collect();
    let mut epoch = None;
    for (here, (at, value)) in own.and_later().zip(entered) {
        extend_span(stream, at, here);
        if stream.unplaced {
            continue;
        }
        let stands = earlier.iter().any(|other| other.covers(here))
            || (here == own && !moved && trial.curve.contains_key(&here));
        if !stands {
            trial.curve.insert(here, value);
            epoch = epoch.or((here == own).then_some(here));
        }
    }
    Entered { changed: true, epoch, moved }
}

/// Enters the held lines of a stream into the trial's curve, moved by `offset` epochs.
pub(crate) fn place(trial: &mut Trial, index: usize, offset: Epochs) {
    let Some(stream) = trial.streams.get_mut(index).filter(|stream| stream.unplaced) else { return };
    stream.unplaced = false;
    stream.offset = offset;
    stream.span = stream
        .span
        .map(|((first_at, first), (last_at, last))| ((first_at, first + offset), (last_at, last + offset)));
    stream.last = stream.last.map(|(last, value)| (last + offset, value));
    let held = std::mem::take(&mut stream.unplaced_lines);
    let ranked = Epochs::ONE.and_later().zip(stream.lines.iter().map(|(_, _, value)| *value));
    let lines: Vec<_> = held.into_iter().chain(ranked).collect();
    for (own, value) in lines {
        let epoch = own + offset;
        note_repeated_value(stream, trial.stage.job(), epoch, trial.curve.get(&epoch), value);
        trial.curve.entry(epoch).or_insert(value);
    }
}

/// Records whether a line at the epoch of the promotion repeats the trial's value there: some programs log the value
/// of their checkpoint when they resume. Returns whether the record changed.
fn note_repeated_value(
    stream: &mut Stream,
    job: Option<&Job>,
    epoch: Epochs,
    known: Option<&Option<f64>>,
    value: Option<f64>,
) -> bool {
    if job.is_none_or(|job| job.order.attempt != stream.attempt || job.order.checkpoint_epochs != epoch) {
        return false;
    }
    let bits = |value: Option<f64>| value.map(f64::to_bits);
    let same = value.is_some() && known.is_some_and(|known| bits(*known) == bits(value));
    let before = stream.repeats_value;
    stream.repeats_value = Some(same && before != Some(false));
    stream.repeats_value != before
}

/// Extends the span: its first line is the earliest of the lowest epoch, its last line the latest of the highest.
/// Returns whether the span changed.
fn extend_span(stream: &mut Stream, at: Time, epoch: Epochs) -> bool {
    let before = stream.span;
    let ((first_at, first), (last_at, last)) = before.unwrap_or(((at, epoch), (at, epoch)));
    let (first, first_at) = (first, first_at).min((epoch, at));
    let (last, last_at) = (last, last_at).max((epoch, at));
    stream.span = Some(((first_at, first), (last_at, last)));
    stream.span != before
}

/// Returns how many epochs a restarted program had done at its checkpoint, as far as the log proves it.
///
/// Proof is a first line after the restart that repeats, bit for bit, a value that the trial logged before. Without
/// proof the offset is 0. That counts too few epochs rather than too many, so a trial is never judged at an epoch it
/// has not reached.
fn proven_offset(definition: &Definition, base: u32, trial: &Trial, first: &MetricLine) -> Epochs {
    if crate::planted!(OffsetUnproven) {
        return trial.resource();
    }
    let Some(value) = first.value else { return Epochs::ZERO };
    let same = |other: &Option<f64>| other.is_some_and(|other| other.to_bits() == value.to_bits());
    let mut matching = trial.curve.iter().filter(|(_, other)| same(other)).map(|(epoch, _)| *epoch);
    let (Some(epoch), None) = (matching.next(), matching.next()) else { return Epochs::ZERO };
    // The stream's own index of that line: the first facts to arrive need not hold its first line.
    let own = match first.index {
        Some(raw) if definition.epochs.captured => own_epoch(base, raw).unwrap_or(Epochs(u32::MAX)),
        Some(_) | None => Epochs::ONE,
    };
    epoch - own
}

/// Returns the index of the stream in the trial. Adds an unknown stream, with the epochs that came before it.
pub(crate) fn stream_index(
    definition: &Definition,
    base: u32,
    trial: &mut Trial,
    attempt: u32,
    name: &str,
    lines: &[MetricLine],
) -> Option<usize> {
    if let Some(index) = trial.streams.iter().position(|stream| stream.name == name) {
        return Some(index);
    }
    if trial.streams.len() >= MAX_STREAMS_PER_TRIAL {
        return None;
    }
    let usable = lines.iter().filter(|line| !definition.epochs.captured || line.index.is_some());
    let first = usable.min_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)))?;
    // No guess where the end of the job will show the place: the first stream reported need not be the first written.
    let unplaced = restarts(definition) && definition.promotes().is_some();
    let offset = if restarts(definition) && !unplaced {
        proven_offset(definition, base, trial, first)
    } else {
        Epochs::ZERO
    };
    let proof = (!offset.is_zero()).then(|| (first.at, first.id.clone()));
    trial.streams.push(Stream {
        name: name.to_owned(),
        attempt,
        offset,
        proof,
        lines: Vec::new(),
        unplaced,
        unplaced_lines: BTreeMap::new(),
        last: None,
        span: None,
        repeats_value: None,
    });
    Some(trial.streams.len().saturating_sub(1))
}

/// Returns whether the index of a line restarts in every stream. A rank always does.
pub(crate) fn restarts(definition: &Definition) -> bool {
    !definition.epochs.captured || definition.epochs.per_attempt
}

/// Returns the lines with the index of the epoch that an earlier line of the stream began. Keeps the lines for which no
/// known line did. Returns whether the kept lines changed.
pub(crate) fn numbered(
    definition: &Definition,
    base: u32,
    trial: &mut Trial,
    stream: &str,
    lines: &[MetricLine],
) -> (Vec<MetricLine>, bool) {
    if !definition.epochs.captured {
        return (lines.to_vec(), false);
    }
    let known = trial.unnumbered.clone();
    let mut entered = Vec::with_capacity(lines.len());
    let mut given = BTreeMap::new();
    for line in lines {
        if line.index.is_some() {
            entered.push(line.clone());
            continue;
        }
        let waiting = (stream.to_owned(), line.clone());
        trial.unnumbered.retain(|known| *known != waiting);
        let begun = trial.begun.iter().rfind(|begun| begun.stream == stream && begun.at <= line.at);
        // An epoch with another value may not be that of this line: the beginning of the next one may be late.
        let begun = begun.filter(|begun| {
            let is_same = |value: &Option<f64>| value.map(f64::to_bits) == line.value.map(f64::to_bits);
            match given.get(&begun.index) {
                Some(value) => is_same(value),
                None => value_of(base, trial, begun).is_none_or(is_same),
            }
        });
        if let Some(begun) = begun {
            given.insert(begun.index, line.value);
            entered.push(MetricLine { index: Some(begun.index), ..line.clone() });
            continue;
        }
        let forgotten = trial.begun.len() >= MAX_BEGUN_EPOCHS
            && trial.begun.first().is_some_and(|first| line.at < first.at);
        if !forgotten {
            trial.unnumbered.push(waiting);
            trial.unnumbered.sort_by(|(_, a), (_, b)| (a.at, &a.id).cmp(&(b.at, &b.id)));
            keep_latest(&mut trial.unnumbered);
        }
    }
    let changed = trial.unnumbered != known;
    (entered, changed)
}

/// Keeps the latest of a trial's lines that concern epochs without a value.
pub(crate) fn keep_latest<T>(lines: &mut Vec<T>) {
    let excess = lines.len().saturating_sub(MAX_BEGUN_EPOCHS);
    lines.drain(..excess);
}

/// Returns whether a trial whose job logs a line can still train to its end.
pub(crate) fn can_be_finalist(trial: &Trial, key: JobKey) -> bool {
    let stops = trial.stop_why.is_some() || trial.stop_requested;
    let runs =
        trial.job().is_none_or(|job| job.trial_stop().is_none() && job.end().is_none_or(JobEnd::counts));
    !stops && runs && trial.refit().is_none() && key.attempt == trial.attempts
}
