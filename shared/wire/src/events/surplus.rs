//! Drops metric lines that change neither a curve nor the best value, so that a program that prints millions of values does not
//! fill the table.
//!
//! The first value at an epoch stands, and no epoch is above [`MAX_RESOURCE`]. The last line of a batch always stays, as a
//! sign of life.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use hyperband::plan::MAX_RESOURCE;
use tuning::log::fact::MetricLine;
use tuning::unit::limits::MAX_BEGUN_EPOCHS;
use tuning::unit::time::Time;

#[cfg(test)]
mod tests;

/// Maximum number of streams whose lines are counted. A further stream replaces the one with the oldest line.
const MAX_STREAMS: usize = 1_000;
/// Maximum number of lines of a stream that can enter a curve.
const MAX_LINES: usize = MAX_RESOURCE as usize;

/// Where the epoch of a line comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpochSource {
    /// A pattern captures the epoch from the line or from a line before it.
    Captured,
    /// The epoch is the rank of the line in its stream.
    Rank,
}

/// Finds the surplus lines of any number of streams. It drops fewer lines when it has forgotten a stream.
#[derive(Debug, Default)]
pub struct Surplus {
    streams: Mutex<BTreeMap<String, Counted>>,
}

/// Lines of a stream, each later than the one counted before it. So a second delivery of a line counts nothing, and the
/// stream has at least as many lines up to the last one.
#[derive(Debug, Default)]
struct Counted {
    lines: usize,
    last: Option<(Time, String)>,
}

impl Surplus {
    /// Sorts the lines of a batch of `stream` by time and ID, and removes the surplus.
    pub fn remove(&self, stream: &str, source: EpochSource, lines: &mut Vec<MetricLine>) {
        lines.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        let Some(last) = lines.pop() else { return };
        match source {
            EpochSource::Captured => remove_repeated(lines, &last),
            EpochSource::Rank => {
                let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
                if streams.len() >= MAX_STREAMS && !streams.contains_key(stream) {
                    let oldest = streams.iter().min_by_key(|(_, counted)| counted.last.clone());
                    let oldest = oldest.map(|(name, _)| name.clone());
                    oldest.and_then(|name| streams.remove(&name));
                }
                let counted = streams.entry(stream.to_owned()).or_default();
                lines.retain(|line| counted.may_count(line));
                counted.may_count(&last);
            }
        }
        lines.push(last);
    }
}

impl Counted {
    /// Counts a line. Returns whether fewer than [`MAX_LINES`] lines of its stream may be before it.
    fn may_count(&mut self, line: &MetricLine) -> bool {
        let is_later = self.last.as_ref().is_none_or(|(at, id)| (line.at, &line.id) > (*at, id));
        if is_later && self.lines < MAX_LINES {
            self.lines += 1;
            self.last = Some((line.at, line.id.clone()));
            return true;
        }
        !is_later
    }
}

/// Of the lines of an epoch, keeps the first one, whose value stands, the last one, whose time is the end of the epoch, and
/// those with the lowest and the highest value: after a restart, a value that enters no curve can be the best one. Of the
/// lines without an epoch, keeps the first one, which may belong to an epoch that an earlier batch began, and the last ones,
/// which may wait for their epoch. `last` follows `lines`.
fn remove_repeated(lines: &mut Vec<MetricLine>, last: &MetricLine) {
    lines.retain(|line| line.index.is_none_or(|index| index <= u64::from(MAX_RESOURCE)));
    let mut epochs: BTreeMap<Option<u64>, Vec<(usize, Option<f64>)>> = BTreeMap::new();
    for (number, line) in lines.iter().enumerate() {
        epochs.entry(line.index).or_default().push((number, line.value));
    }
    let mut kept = BTreeSet::new();
    for (index, of_epoch) in &epochs {
        let ends = match index {
            None => MAX_BEGUN_EPOCHS,
            Some(_) => usize::from(*index != last.index),
        };
        kept.extend(of_epoch.first().map(|(number, _)| *number));
        kept.extend(of_epoch.iter().rev().take(ends).map(|(number, _)| *number));
        let values = || of_epoch.iter().filter_map(|(number, value)| Some((*number, (*value)?)));
        let lowest = values().min_by(|(_, a), (_, b)| a.total_cmp(b));
        let highest = values().rev().max_by(|(_, a), (_, b)| a.total_cmp(b));
        kept.extend([lowest, highest].into_iter().flatten().map(|(number, _)| number));
    }
    let mut number = 0..;
    lines.retain(|_| number.next().is_some_and(|number| kept.contains(&number)));
}
