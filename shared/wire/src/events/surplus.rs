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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at: usize, index: Option<u64>) -> MetricLine {
        let at = i64::try_from(at).unwrap();
        MetricLine { id: format!("{at:09}"), at: Time(at), index, value: Some(0.5) }
    }

    fn ranked(surplus: &Surplus, places: impl IntoIterator<Item = usize>) -> Vec<i64> {
        let mut lines: Vec<_> = places.into_iter().map(|at| line(at, None)).collect();
        surplus.remove("s", EpochSource::Rank, &mut lines);
        lines.into_iter().map(|line| line.at.0).collect()
    }

    #[test]
    fn lines_beyond_the_last_epoch_are_dropped_except_the_last_of_each_batch() {
        let surplus = Surplus::default();
        assert_eq!(ranked(&surplus, 0..MAX_LINES - 1).len(), MAX_LINES - 1);
        assert_eq!(ranked(&surplus, MAX_LINES..MAX_LINES + 5), [20_000, 20_004]);
        assert_eq!(ranked(&surplus, MAX_LINES + 5..MAX_LINES + 10), [20_009]);
        // A line that arrives late moves the lines after it, so its rank is below the limit.
        assert_eq!(ranked(&surplus, [MAX_LINES - 1, MAX_LINES + 10, MAX_LINES + 11]), [19_999, 20_011]);
    }

    /// Against a model that knows all lines: each of the first [`MAX_LINES`] distinct lines stays, whatever is repeated.
    #[test]
    fn repeated_deliveries_drop_no_line_that_counts() {
        for width in [7, 400, 1_000] {
            let surplus = Surplus::default();
            let mut kept = BTreeSet::new();
            let all = MAX_LINES + 3_000;
            for begin in (0..all).step_by(width) {
                let begin = begin.saturating_sub(width / 2);
                for _ in 0..2 {
                    kept.extend(ranked(&surplus, begin..(begin + 2 * width).min(all)));
                }
            }
            let first = i64::try_from(MAX_LINES).unwrap();
            assert!((0..first).all(|at| kept.contains(&at)), "batches of {width}");
            assert!(kept.len() < MAX_LINES + 2 * all.div_ceil(width), "batches of {width}: {}", kept.len());
        }
    }

    /// `Epoch 1/3` in a line of its own gave no line of the later batches an index, so all of them were stored.
    #[test]
    fn regression_of_the_lines_without_an_epoch_the_first_and_the_latest_stay() {
        let mut lines: Vec<_> = (0..1_000).map(|at| line(at, None)).collect();
        lines[500].value = Some(0.9);
        Surplus::default().remove("s", EpochSource::Captured, &mut lines);
        let latest = 1_000 - i64::try_from(MAX_BEGUN_EPOCHS).unwrap() - 1;
        let expected: Vec<i64> = [0, 500].into_iter().chain(latest..1_000).collect();
        assert_eq!(lines.iter().map(|line| line.at.0).collect::<Vec<_>>(), expected);
    }

    /// After a restart, the best value of three at one epoch was lost with the middle line.
    #[test]
    fn regression_the_best_value_of_an_epoch_stays() {
        let mut lines: Vec<_> = (0..9).map(|at| line(at, Some(3))).collect();
        (lines[2].value, lines[4].value, lines[6].value) = (Some(0.1), None, Some(0.99));
        Surplus::default().remove("s", EpochSource::Captured, &mut lines);
        assert_eq!(lines.iter().map(|line| line.at.0).collect::<Vec<_>>(), [0, 2, 6, 8]);
    }

    #[test]
    fn a_captured_epoch_keeps_its_first_and_its_last_line() {
        let indices =
            [Some(1), Some(1), None, Some(1), Some(2), Some(1), Some(900_000), Some(2), Some(2), Some(2)];
        let mut lines: Vec<_> = indices.into_iter().enumerate().map(|(at, index)| line(at, index)).collect();
        Surplus::default().remove("s", EpochSource::Captured, &mut lines);
        assert_eq!(lines.iter().map(|line| line.at.0).collect::<Vec<_>>(), [0, 2, 4, 5, 9]);
    }

    #[test]
    fn counted_streams_are_bounded() {
        let surplus = Surplus::default();
        for number in 0..MAX_STREAMS + 10 {
            surplus.remove(&format!("s{number}"), EpochSource::Rank, &mut vec![line(number, None)]);
        }
        let streams = surplus.streams.into_inner().unwrap();
        assert_eq!(streams.len(), MAX_STREAMS);
        assert!(streams.contains_key("s1009") && !streams.contains_key("s9"));
    }
}
