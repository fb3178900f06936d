//! The lines that stay, and those that are dropped.

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
