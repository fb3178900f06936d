//! The values of all metrics of a training job on this machine, read from its log.
//!
//! The table has each value of the objective, but only the last value of another metric.

use std::collections::BTreeMap;
use std::io;

use local::training::{JobRecords, series};
use tuning::log::fact::MetricLine;
use wire::events::logs::MetricPattern;
use wire::request::Request;

/// Maximum number of values of a curve.
const POINTS_MAX: usize = 1_000;

/// The curve of each metric: epochs and values.
pub(crate) type Curves = BTreeMap<String, Vec<(u64, f64)>>;

/// Returns the curves of the metrics other than the objective in the logs of a trial's jobs, oldest first. Where two jobs
/// have the same epoch, the later job counts. Blocks.
pub(crate) fn curves<'a>(
    records: &JobRecords,
    request: &Request,
    jobs: impl Iterator<Item = &'a str>,
) -> io::Result<Curves> {
    let others = request.metric_patterns().filter(|(metric, _)| *metric != request.objective_metric());
    let compiled = others.filter_map(|(metric, regex)| {
        Some((metric, MetricPattern::new(regex, request.epoch_pattern()).ok()?))
    });
    let (metrics, patterns): (Vec<&str>, Vec<MetricPattern>) = compiled.unzip();
    let mut curves: BTreeMap<&str, BTreeMap<u64, f64>> = BTreeMap::new();
    for job in jobs.filter(|_| !patterns.is_empty()) {
        let found = series(records.log(job, Some(request.metric_host())), &patterns)?;
        for (metric, lines) in metrics.iter().zip(found) {
            curves.entry(metric).or_default().extend(points(lines));
        }
    }
    let thinned = curves.into_iter().map(|(metric, curve)| (metric.to_owned(), thinned(curve)));
    Ok(thinned.filter(|(_, curve)| !curve.is_empty()).collect())
}

/// Returns the values with their epochs, counted from 1. Without epochs in the log, each value is an epoch of its own.
fn points(mut lines: Vec<MetricLine>) -> impl Iterator<Item = (u64, f64)> {
    if lines.iter().any(|line| line.index.is_some()) {
        lines.retain(|line| line.index.is_some());
    }
    let first = u64::from(lines.iter().any(|line| line.index == Some(0)));
    (1..).zip(lines).filter_map(move |(rank, line)| {
        Some((line.index.map_or(rank, |index| index.saturating_add(first)), line.value?))
    })
}

/// Returns at most about [`POINTS_MAX`] points, with the first and the last one.
fn thinned(curve: BTreeMap<u64, f64>) -> Vec<(u64, f64)> {
    let step = curve.len().div_ceil(POINTS_MAX).max(1);
    let last = curve.len().saturating_sub(1);
    let is_kept = |place: usize| place.is_multiple_of(step) || place == last;
    curve.into_iter().enumerate().filter(|(place, _)| is_kept(*place)).map(|(_, point)| point).collect()
}

#[cfg(test)]
mod tests {
    use tuning::unit::time::Time;

    use super::*;

    fn line(index: Option<u64>, value: Option<f64>) -> MetricLine {
        MetricLine { id: String::new(), at: Time(0), index, value }
    }

    fn curve(lines: Vec<MetricLine>) -> Vec<(u64, f64)> {
        thinned(points(lines).collect())
    }

    #[test]
    fn a_curve_has_the_last_value_of_each_epoch_from_one() {
        let lines = vec![
            line(Some(0), Some(9.0)),
            line(None, Some(8.0)),
            line(Some(0), Some(7.0)),
            line(Some(1), None),
        ];
        assert_eq!(curve(lines), [(1, 7.0)]);
        assert_eq!(curve(vec![line(Some(1), Some(2.0)), line(Some(3), Some(1.0))]), [(1, 2.0), (3, 1.0)]);
    }

    #[test]
    fn without_epochs_each_value_counts() {
        let lines = vec![line(None, Some(3.0)), line(None, None), line(None, Some(1.0))];
        assert_eq!(curve(lines), [(1, 3.0), (3, 1.0)]);
    }

    #[test]
    fn a_long_curve_keeps_its_ends() {
        let points = curve((0..2_500).map(|_| line(None, Some(0.5))).collect());
        assert_eq!((points.len(), points[0].0, points.last().unwrap().0), (834, 1, 2_500));
    }
}
