//! Folds metric lines: from log lines to (epoch, value) points of a trial's curve.
//!
//! The epoch of a line is the index captured from it, else the line's rank by (time, id) in its stream. Both count
//! from the epochs that the trial had when the stream began. Where a promoted program restarts its count, that number
//! is known only when the job has ended: until then the lines of the stream are held ([`place_streams`]). The first
//! value at an epoch stands: late and duplicate lines change nothing. Values count for the incumbent even after a stop
//! was ordered, but never for a rung already judged.
//!
//! A line with a value may lack an index that an earlier line has. The epoch of that line then holds for it
//! ([`numbered`]).

use std::collections::BTreeMap;

use hyperband::plan::MAX_RESOURCE;
use hyperband::ranking::{improves, reaches};

use crate::definition::Definition;
use crate::epochs::Epochs;
use crate::fact::{JobEnd, JobKey, MetricLine};
use crate::ids::TrialId;
use crate::limits::{MAX_BEGUN_EPOCHS, MAX_RANKED_LINES, MAX_STREAMS_PER_TRIAL};
use crate::state::{Begun, Incumbent, Job, State, Status, Stream, Trial};
use crate::time::Time;

/// What one line changed.
#[derive(Default)]
struct Entered {
    /// Whether the trial changed.
    changed: bool,
    /// The epoch that got its first value.
    epoch: Option<Epochs>,
    /// Whether later lines of the stream moved to other epochs.
    moved: bool,
}

/// Folds `lines` of `stream`; returns whether the state changed.
pub(super) fn fold(
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
    let Some(trial) = state.trials.get_mut(&key.trial) else { return changed };
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
        let reached = target.zip(value).filter(|_| entered.changed);
        reaches_target |=
            reached.is_some_and(|(target, value)| reaches(definition.direction(), value, target));
        // A value whose epoch is not proven after a restart enters no curve, but counts for the incumbent.
        let held = trial.streams.get(index).is_some_and(|stream| stream.unplaced);
        let unplaced = (entered.epoch.is_none() && (index > 0 || held) && restarts(definition))
            .then(|| trial.resource());
        seen.extend(entered.epoch.or(unplaced).map(|epoch| (epoch, value)));
        new_values.extend(value.filter(|_| entered.epoch.is_some()));
    }
    for value in new_values {
        state.note_equal(value);
    }
    for (epoch, value) in seen {
        changed |= improve(definition, state, key.trial, epoch, value);
    }
    if moved {
        follow_incumbent(state, key.trial);
    }
    let is_fruitful = || state.trials.get(&key.trial).is_some_and(Trial::has_value);
    if was_fruitless && is_fruitful() {
        state.fruitless.trials = 0;
    }
    if reaches_target && state.status == Status::Active {
        state.finalist = state.finalist.or(Some(key.trial));
    }
    if changed {
        state.has_logged = true;
    }
    changed
}

/// Folds an epoch that a line without a value began. Enters the lines that waited for it.
pub(super) fn fold_begun(definition: &Definition, state: &mut State, key: JobKey, begun: Begun) -> bool {
    if !definition.epochs.captured || !counts(definition, state, key) {
        return false;
    }
    let changed = note_base(definition, state, Some(begun.index));
    let Some(trial) = state.trials.get_mut(&key.trial) else { return changed };
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

/// Keeps the latest of a trial's lines that concern epochs without a value.
fn keep_latest<T>(lines: &mut Vec<T>) {
    let excess = lines.len().saturating_sub(MAX_BEGUN_EPOCHS);
    lines.drain(..excess);
}

/// Returns whether facts of the job still count. A key that was never ordered is not a job of this trial, whatever its
/// name. Attempts of rungs that the trial has passed are settled.
fn counts(definition: &Definition, state: &State, key: JobKey) -> bool {
    state.trials.get(&key.trial).is_some_and(|trial| {
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

/// Returns the lines with the index of the epoch that an earlier line of the stream began. Keeps the lines for which no
/// known line did. Returns whether the kept lines changed.
fn numbered(
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

/// Returns the value of an epoch, which may not be a number; `None` before its first value.
fn value_of<'a>(base: u32, trial: &'a Trial, begun: &Begun) -> Option<&'a Option<f64>> {
    let own = own_epoch(base, begun.index)?;
    let stream = trial.streams.iter().find(|stream| stream.name == begun.stream)?;
    trial.curve.get(&(stream.offset + own)).or_else(|| stream.unplaced_lines.get(&own))
}

/// Returns whether a trial whose job logs a line can still train to its end.
fn can_be_finalist(trial: &Trial, key: JobKey) -> bool {
    let stops = trial.stop_why.is_some() || trial.stop_requested;
    let runs =
        trial.job.as_ref().is_none_or(|job| job.trial_stop().is_none() && job.end.is_none_or(JobEnd::counts));
    !stops && runs && trial.refit.is_none() && key.attempt == trial.attempts
}

/// Returns how many lines of one stream are kept where the epoch is a line's rank: this bounds the state of all
/// running trials.
fn lines_kept(definition: &Definition) -> usize {
    let parallel = usize::try_from(definition.limits.max_parallel).unwrap_or(usize::MAX);
    MAX_RANKED_LINES.checked_div(parallel).unwrap_or(MAX_RANKED_LINES)
}

/// Returns whether the index of a line restarts in every stream. A rank always does.
fn restarts(definition: &Definition) -> bool {
    !definition.epochs.captured || definition.epochs.per_attempt
}

/// Returns the index of the stream in the trial. Adds an unknown stream, with the epochs that came before it.
fn stream_index(
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

/// Returns the epoch of a captured index, counted from the beginning of its stream; `None` if it is out of range.
fn own_epoch(base: u32, index: u64) -> Option<Epochs> {
    let own = index.checked_sub(u64::from(base))?.checked_add(1)?;
    u32::try_from(own).ok().map(Epochs)
}

fn note_last_line(trial: &mut Trial, attempt: u32, line: &MetricLine, value: Option<f64>) -> bool {
    let later = trial.last_line.as_ref().is_none_or(|(at, id, _)| (*at, id) < (line.at, &line.id));
    if later {
        trial.last_line = Some((line.at, line.id.clone(), value));
        trial.last_line_attempt = attempt;
    }
    later
}

/// Enters a line whose epoch is captured from it.
fn captured_epoch(
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
    changed |= note_repeated_value(stream, trial.job.as_ref(), epoch, trial.curve.get(&epoch), value);
    if trial.curve.contains_key(&epoch) {
        return Entered { changed, ..Entered::default() };
    }
    trial.curve.insert(epoch, value);
    Entered { changed: true, epoch: Some(epoch), moved: false }
}

/// Enters a line whose epoch is its rank in its stream.
fn ranked_epoch(
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

/// Places the log streams of an ended job whose program restarts its count with each start. All its lines are known.
///
/// The first start of a trial begins at epoch 1. A job that completed has trained to its level, so the last line of
/// its last stream is at the level, whatever checkpoint it resumed from. If even the latest possible checkpoint would
/// not have brought the job to its level, it ended below the level, and the latest checkpoint is assumed. Nothing is
/// known about other streams, so their lines enter no curve.
pub(crate) fn place_streams(definition: &Definition, state: &mut State, key: JobKey) {
    let Some(trial) = state.trials.get_mut(&key.trial) else { return };
    let Some(end) = trial.job.as_ref().filter(|job| job.is(key)).and_then(|job| job.end) else { return };
    let level = trial.goal(definition);
    let had = definition.level_below(trial.bracket, trial.next_rung);
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

/// Enters the held lines of a stream into the trial's curve, moved by `offset` epochs.
fn place(trial: &mut Trial, index: usize, offset: Epochs) {
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
        note_repeated_value(stream, trial.job.as_ref(), epoch, trial.curve.get(&epoch), value);
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
    if job.is_none_or(|job| job.attempt != stream.attempt || job.checkpoint_epochs != epoch) {
        return false;
    }
    let bits = |value: Option<f64>| value.map(f64::to_bits);
    let same = value.is_some() && known.is_some_and(|known| bits(*known) == bits(value));
    let before = stream.repeats_value;
    stream.repeats_value = Some(same && before != Some(false));
    stream.repeats_value != before
}

impl Stream {
    /// Returns whether one of the ranked lines is at `epoch`.
    fn covers(&self, epoch: Epochs) -> bool {
        epoch > self.offset && epoch <= self.offset + Epochs::of_lines(self.lines.len())
    }
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

/// Updates the epoch of the incumbent after its line moved.
fn follow_incumbent(state: &mut State, number: TrialId) {
    let Some(incumbent) = state.incumbent.as_mut().filter(|incumbent| incumbent.trial == number) else {
        return;
    };
    let Some(trial) = state.trials.get(&number) else { return };
    let same = |value: Option<f64>| value.is_some_and(|value| value.to_bits() == incumbent.value.to_bits());
    if let Some((epoch, _)) = trial.curve.iter().find(|(_, value)| same(**value)) {
        incumbent.resource = *epoch;
    }
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
        .incumbent
        .as_ref()
        .is_none_or(|incumbent| improves(definition.direction(), value, incumbent.value));
    if better {
        state.incumbent = Some(Incumbent { value, trial, resource });
        state.since_improved = 0;
    }
    better
}
