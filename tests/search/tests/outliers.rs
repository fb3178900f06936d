//! The sampler that learns is robust to trials that start or end far away from all others.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::collections::BTreeMap;

use search::{
    Configuration, Domain, History, Observation, Origin, Parameter, Place, SamplerKind, Scaling, Space, View,
    suggest,
};

const TRIALS: u32 = 40;
const SEEDS: u64 = 4;

/// The first three values of a trial, and the best one.
#[derive(Clone, Copy)]
struct Curve {
    early: [f64; 3],
    best: f64,
}

impl Curve {
    /// Returns a curve that falls to a loss.
    fn falling(loss: f64) -> Self {
        Self { early: [1.375, 1.25, 1.125].map(|above| loss + above), best: loss }
    }

    fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { early: self.early.map(&change), best: change(self.best) }
    }
}

/// A loss with one minimum, in steps that a floating-point number stores without rounding.
fn bowl(point: &[f64]) -> f64 {
    let terms = point.iter().zip([(0.25, 6.0), (0.6, 4.0), (0.3, 4.0)]);
    let loss: f64 = terms.map(|(x, (least, weight))| weight * (x - least) * (x - least)).sum();
    (loss * 65_536.0).round() / 65_536.0
}

/// Whether a trial is one of the bad ones, which are far from the minimum.
fn is_bad(point: &[f64], share: f64) -> bool {
    point[0] > 1.0 - share
}

fn space() -> Space {
    let domain = || Domain::Continuous { min: 0.0, max: 1.0, scaling: Scaling::Linear };
    let parameters = ["x", "y", "z"].map(|name| Parameter { name: name.to_owned(), domain: domain() });
    Space::new(parameters.into()).unwrap()
}

fn numbers(configuration: &Configuration) -> Vec<f64> {
    configuration.iter().map(|(_, value)| value.parse().unwrap()).collect()
}

/// Plays a tuning, one trial at a time. Returns the points, and whether the model drew them.
fn play(seed: u64, maximize: bool, curve: impl Fn(u32, &[f64]) -> Curve) -> Vec<(Vec<f64>, bool)> {
    let (space, running) = (space(), BTreeMap::new());
    let (mut history, mut points) = (History::default(), Vec::new());
    for trial in 0..TRIALS {
        let view = View::new(&history, &running, maximize);
        let suggestion = suggest(&space, SamplerKind::Model, seed, trial, &view);
        let place = Place::of(&space, &suggestion.configuration).unwrap();
        let point = numbers(&suggestion.configuration);
        let by_model = matches!(suggestion.origin, Origin::Model { .. });
        let Curve { early, best } = curve(trial, &point);
        let observation =
            Observation { place, best: Some(best), early: early.to_vec(), cost: None, by_model };
        history.record(trial, observation, maximize);
        points.push((point, by_model));
    }
    points
}

/// Returns the mean over seeds of a measure of the points.
fn mean(
    maximize: bool,
    curve: impl Fn(u32, &[f64]) -> Curve,
    measure: impl Fn(&[(Vec<f64>, bool)]) -> f64,
) -> f64 {
    let sign = if maximize { -1.0 } else { 1.0 };
    let signed = |trial: u32, point: &[f64]| curve(trial, point).map(|value| sign * value);
    let sum: f64 = (0..SEEDS).map(|seed| measure(&play(seed, maximize, signed))).sum();
    sum / f64::from(u32::try_from(SEEDS).unwrap())
}

/// Returns the least loss.
fn least(points: &[(Vec<f64>, bool)]) -> f64 {
    points.iter().map(|(point, _)| bowl(point)).fold(f64::INFINITY, f64::min)
}

/// Returns the mean distance of the model's last trials from the nearest earlier one.
fn late_distance(points: &[(Vec<f64>, bool)]) -> f64 {
    let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    let late = points.iter().enumerate().skip(20).filter(|(_, (_, by_model))| *by_model);
    let distances: Vec<f64> = late
        .map(|(index, (point, _))| {
            points[..index].iter().map(|(other, _)| apart(point, other)).fold(f64::INFINITY, f64::min)
        })
        .collect();
    distances.iter().sum::<f64>() / f64::from(u32::try_from(distances.len()).unwrap())
}

/// Bad trials start at a high loss. Good neighbors must not count as repeats of each other.
#[test]
fn regression_a_spike_of_bad_trials_keeps_good_ones_apart() {
    for maximize in [false, true] {
        let control = mean(maximize, |_, point| Curve::falling(bowl(point)), least);
        for (share, spike) in [(0.3, 30.0), (0.3, 200.0), (0.6, 100.0), (0.6, 1e10)] {
            let curve = |_, point: &[f64]| {
                let mut curve = Curve::falling(bowl(point));
                if is_bad(point, share) {
                    curve.early = [0, 1, 2].map(|epoch| curve.early[epoch] + [1.0, 0.7, 0.5][epoch] * spike);
                }
                curve
            };
            let spiked = mean(maximize, curve, least);
            assert!(spiked < 2.0 * control + 0.001, "{share} {spike}: {spiked} instead of {control}");
        }
    }
}

#[test]
fn a_spike_at_any_early_epoch_keeps_good_trials_apart() {
    let control = mean(false, |_, point| Curve::falling(bowl(point)), least);
    for epochs in [&[0, 1][..], &[1, 2], &[0, 2], &[2]] {
        let curve = |_, point: &[f64]| {
            let mut curve = Curve::falling(bowl(point));
            epochs.iter().filter(|_| is_bad(point, 0.4)).for_each(|epoch| curve.early[*epoch] += 100.0);
            curve
        };
        let spiked = mean(false, curve, least);
        assert!(spiked < 2.0 * control + 0.001, "{epochs:?}: {spiked} instead of {control}");
    }
}

/// A limit clips the first values of bad trials, so they are equal.
#[test]
fn regression_clipped_values_keep_good_trials_apart() {
    let control = mean(false, |_, point| Curve::falling(bowl(point)), least);
    for share in [0.3, 0.6] {
        let curve = |_, point: &[f64]| {
            let curve = Curve::falling(bowl(point));
            if is_bad(point, share) { Curve { early: [100.0; 3], ..curve } } else { curve }
        };
        let clipped = mean(false, curve, least);
        assert!(clipped < 2.0 * control + 0.001, "{share}: {clipped} instead of {control}");
    }
}

#[test]
fn trials_on_a_plateau_are_recognized_beside_outliers() {
    let cell = |point: &[f64]| bowl(&[point[0], (point[1] * 2.0).floor() / 2.0, 0.0]);
    let slope = mean(false, |_, point| Curve::falling(bowl(point)), late_distance);
    for outlier in [None, Some(100.0), Some(1e10)] {
        let curve = |_, point: &[f64]| {
            let plateau = Curve::falling(cell(&[(point[0] * 8.0).floor() / 8.0, point[1]]));
            let early = outlier.filter(|_| is_bad(point, 0.5)).map_or(plateau.early, |value| [value; 3]);
            Curve { early, ..plateau }
        };
        let plateau = mean(false, curve, late_distance);
        assert!(plateau > 1.5 * slope, "{outlier:?}: {plateau}, and {slope} on a slope");
    }
}

#[test]
fn a_scale_a_shift_or_the_other_direction_changes_no_suggestion() {
    for seed in 0..SEEDS {
        let curve = |_: u32, point: &[f64]| Curve::falling(bowl(point));
        let plain = play(seed, false, curve);
        assert_eq!(plain, play(seed, false, |trial, point| curve(trial, point).map(|value| 1_024.0 * value)));
        assert_eq!(
            plain,
            play(seed, false, |trial, point| curve(trial, point).map(|value| value + 32_768.0))
        );
        assert_eq!(plain, play(seed, true, |trial, point| curve(trial, point).map(|value| -value)));
    }
}

#[test]
fn regression_the_size_of_outliers_changes_no_suggestion() {
    for seed in 0..SEEDS {
        let with = |size: f64, fall: f64| {
            play(seed, false, |trial, point| {
                let curve = Curve::falling(bowl(point));
                let early = [0.0, 1.0, 2.0].map(|epoch| size * f64::from(trial) * (1.0 - epoch * fall));
                if trial % 5 == 3 { Curve { early, ..curve } } else { curve }
            })
        };
        let plain = with(5.0, 0.0);
        assert_eq!(plain, with(1e10, 0.0));
        assert_eq!(plain, with(1e10, 0.1));
    }
}
