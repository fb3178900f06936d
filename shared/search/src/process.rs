//! A Gaussian process over the unit cube: zero mean, unit variance, a Matérn 5/2 kernel with one length for each
//! dimension, and noise (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, sections 2.2, 4.2 and
//! 5.4.1).
//!
//! Lengths and noise maximize the likelihood of the observations times a log-normal prior, by a bounded search along
//! the coordinates. Everything is computed in a fixed order.

use std::f64::consts::{PI, SQRT_2};

use crate::linear::{Cholesky, IsCategory, Metric, dot, exp_minus};

/// Added to the diagonal so that repeated points leave the matrix positive definite.
const JITTER: f64 = 1e-6;
/// The mode of the prior of a length, as a share of its range, and the deviation of its logarithm. The first suggestion
/// starts from the mode, too.
const LENGTH_PRIOR: (f64, f64) = (0.7, 0.8);
/// The same for the variance of the noise, as a share of that of the values.
const NOISE_PRIOR: (f64, f64) = (0.03, 1.5);
/// A length is at least and at most this.
const LENGTH_RANGE: (f64, f64) = (0.05, 20.0);
/// The variance of the noise is at least and at most this.
const NOISE_RANGE: (f64, f64) = (1e-5, 2.0);
/// The factor by which the search changes a length. The noise, a variance, changes by its square.
const SEARCH_FACTOR: f64 = 1.7;
/// How often the search visits each coordinate.
const SWEEPS: usize = 2;
/// The most likelihoods that the search computes.
const LIKELIHOODS_MAX: usize = 80;

/// The shape of a process: how far values at two points are related.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    /// The reciprocal of the length of each dimension.
    reciprocals: Vec<f64>,
    /// The variance of the noise of an observation.
    pub(crate) noise: f64,
}

#[derive(Debug, Clone)]
pub(crate) struct Process<'a> {
    metric: Metric,
    points: Vec<&'a [f64]>,
    factor: Cholesky,
    weights: Vec<f64>,
}

/// The expectation of a process at a point.
#[derive(Debug, Clone)]
pub(crate) struct Prediction {
    pub(crate) mean: f64,
    /// The standard deviation, without noise.
    pub(crate) deviation: f64,
    /// The covariance with the observations, in the base of the factor.
    projected: Vec<f64>,
}

impl Prediction {
    /// Returns by how much the value is expected to exceed `best`, where a lower value counts as no improvement.
    pub(crate) fn improvement(&self, best: f64) -> f64 {
        let z = (self.mean - best) / self.deviation;
        let density = libm::exp(-0.5 * z * z) / (2.0 * PI).sqrt();
        self.deviation * (z * self.above(best) + density)
    }

    /// Returns the probability that the value is at least `least`.
    pub(crate) fn above(&self, least: f64) -> f64 {
        0.5 * libm::erfc((least - self.mean) / self.deviation / SQRT_2)
    }
}

impl Shape {
    /// Returns the mode of the prior.
    pub(crate) fn usual(dimensions: usize) -> Self {
        Self { reciprocals: vec![1.0 / LENGTH_PRIOR.0; dimensions], noise: NOISE_PRIOR.0 }
    }

    /// Returns the shape with the greatest posterior that the search finds.
    pub(crate) fn fit(categories: &[IsCategory], points: &[&[f64]], values: &[f64]) -> Self {
        let squares = pairs_of_squares(categories, points);
        let posterior = |shape: &Self| {
            let likelihood = shape.log_likelihood(&squares, values);
            likelihood.map_or(f64::NEG_INFINITY, |likelihood| likelihood + shape.log_prior())
        };
        let mut best = Self::usual(categories.len());
        let mut most = posterior(&best);
        let mut left = LIKELIHOODS_MAX;
        for coordinate in (0..SWEEPS).flat_map(|_| 0..=categories.len()) {
            for factor in [SEARCH_FACTOR, 1.0 / SEARCH_FACTOR] {
                let before = most;
                while let Some(next) = best.changed(coordinate, factor).filter(|_| left > 0) {
                    left = left.saturating_sub(1);
                    let here = posterior(&next);
                    if here <= most {
                        break;
                    }
                    (best, most) = (next, here);
                }
                if most > before {
                    break;
                }
            }
        }
        best
    }

    /// Returns the shape with one length, or after the last one the noise, multiplied; `None` beyond its range.
    fn changed(&self, coordinate: usize, factor: f64) -> Option<Self> {
        let mut next = self.clone();
        if let Some(reciprocal) = next.reciprocals.get_mut(coordinate) {
            *reciprocal /= factor;
            let length = 1.0 / *reciprocal;
            return (LENGTH_RANGE.0..=LENGTH_RANGE.1).contains(&length).then_some(next);
        }
        next.noise *= factor * factor;
        (NOISE_RANGE.0..=NOISE_RANGE.1).contains(&next.noise).then_some(next)
    }

    fn log_prior(&self) -> f64 {
        let term = |value: f64, (mode, deviation): (f64, f64)| {
            let distance = libm::log(value / mode) / deviation;
            -0.5 * distance * distance
        };
        let lengths = self.reciprocals.iter().map(|reciprocal| term(1.0 / reciprocal, LENGTH_PRIOR));
        lengths.fold(term(self.noise, NOISE_PRIOR), |sum, term| sum + term)
    }

    /// Returns the logarithm of the likelihood, without its constant; `None` if the matrix is not positive definite.
    fn log_likelihood(&self, squares: &[Vec<Vec<f64>>], values: &[f64]) -> Option<f64> {
        let weights: Vec<f64> = self.reciprocals.iter().map(|reciprocal| reciprocal * reciprocal).collect();
        let row = |pairs: &Vec<Vec<f64>>| {
            let mut row: Vec<f64> = pairs.iter().map(|squares| matern(dot(squares, &weights))).collect();
            row.push(1.0 + self.noise + JITTER);
            row
        };
        let factor = Cholesky::of(squares.iter().map(row).collect())?;
        let whitened = factor.solve_lower(values);
        Some(-0.5 * dot(&whitened, &whitened) - factor.half_log_determinant())
    }
}

/// Returns the factor of the covariances of values at these points.
fn factor(metric: &Metric, points: &[&[f64]], noise: impl Fn(usize) -> f64) -> Option<Cholesky> {
    let row = |(i, point): (usize, &&[f64])| {
        let mut row: Vec<f64> = points.iter().take(i).map(|other| kernel(metric, point, other)).collect();
        row.push(1.0 + noise(i) + JITTER);
        row
    };
    Cholesky::of(points.iter().enumerate().map(row).collect())
}

/// Returns the covariance of the values at two points.
fn kernel(metric: &Metric, a: &[f64], b: &[f64]) -> f64 {
    matern(metric.square(a, b))
}

/// Returns the Matérn 5/2 covariance at a squared distance.
fn matern(squared: f64) -> f64 {
    let distance = (5.0 * squared).sqrt();
    (1.0 + distance + distance * distance / 3.0) * exp_minus(distance)
}

/// Returns the difference of two coordinates; different categories are one range apart.
fn apart(a: f64, b: f64, is_category: IsCategory) -> f64 {
    if is_category { f64::from(u8::from(a.to_bits() != b.to_bits())) } else { a - b }
}

/// Returns the squared difference in each dimension, of each point with each one before it.
fn pairs_of_squares(categories: &[IsCategory], points: &[&[f64]]) -> Vec<Vec<Vec<f64>>> {
    let squares = |a: &[f64], b: &[f64]| -> Vec<f64> {
        let dimensions = a.iter().zip(b).zip(categories);
        dimensions.map(|((a, b), is_category)| apart(*a, *b, *is_category)).map(|d| d * d).collect()
    };
    let row =
        |(i, point): (usize, &&[f64])| points.iter().take(i).map(|other| squares(point, other)).collect();
    points.iter().enumerate().map(row).collect()
}

impl<'a> Process<'a> {
    /// Returns the process after `values` at the first `points`, which are noisy. At each further point it takes its
    /// own expectation as an exact observation: a job runs there, and its value is not known (Ginsbourger, Le Riche and
    /// Carraro 2010, "Kriging is well-suited to parallelize optimization", the kriging believer).
    pub(crate) fn after(
        shape: &Shape,
        categories: &[IsCategory],
        points: Vec<&'a [f64]>,
        values: &[f64],
    ) -> Option<Self> {
        let known = values.len();
        let observed: Vec<&[f64]> = points.iter().copied().take(known).collect();
        let noise = shape.noise;
        let metric = Metric::new(&shape.reciprocals, categories);
        let of_observed = factor(&metric, &observed, |_| noise)?;
        let weights = of_observed.solve_upper(&of_observed.solve_lower(values));
        let process = Self { metric, points: observed, factor: of_observed, weights };
        if points.len() == known {
            return Some(process);
        }
        let believed = points.iter().skip(known).map(|point| process.mean(point));
        let values: Vec<f64> = values.iter().copied().chain(believed).collect();
        let noise_at = |index: usize| if index < known { noise } else { 0.0 };
        let factor = factor(&process.metric, &points, noise_at)?;
        let weights = factor.solve_upper(&factor.solve_lower(&values));
        Some(Self { points, factor, weights, ..process })
    }

    pub(crate) fn mean(&self, point: &[f64]) -> f64 {
        dot(&self.covariances(point), &self.weights)
    }

    /// Returns the expected value at a point and its deviation.
    pub(crate) fn predict(&self, point: &[f64]) -> Prediction {
        let covariances = self.covariances(point);
        let projected = self.factor.solve_lower(&covariances);
        let variance = (1.0 - dot(&projected, &projected)).max(1e-10);
        Prediction { mean: dot(&covariances, &self.weights), deviation: variance.sqrt(), projected }
    }

    /// Returns one function of the posterior at these points, for standard normal numbers; `None` if the points are too
    /// close to each other.
    pub(crate) fn sample(&self, at: &[(&[f64], &Prediction)], normals: &[f64]) -> Option<Vec<f64>> {
        let row = |(i, (point, prediction)): (usize, &(&[f64], &Prediction))| {
            let covariance = |(other, second): &(&[f64], &Prediction)| {
                let prior = kernel(&self.metric, point, other);
                prior - dot(&prediction.projected, &second.projected)
            };
            let mut row: Vec<f64> = at.iter().take(i.saturating_add(1)).map(covariance).collect();
            if let Some(variance) = row.last_mut() {
                *variance += JITTER;
            }
            row
        };
        let factor = Cholesky::of(at.iter().enumerate().map(row).collect())?;
        let around = factor.multiply(normals);
        Some(at.iter().zip(around).map(|((_, prediction), around)| prediction.mean + around).collect())
    }

    fn covariances(&self, point: &[f64]) -> Vec<f64> {
        self.points.iter().map(|other| kernel(&self.metric, point, other)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: [IsCategory; 1] = [false];

    fn observed<'a>(points: &'a [[f64; 1]], values: &[f64]) -> Process<'a> {
        let points = points.iter().map(<[f64; 1]>::as_slice).collect();
        Process::after(&Shape::usual(1), &NUMBERS, points, values).unwrap()
    }

    #[test]
    fn the_mean_is_near_an_observation_and_zero_far_from_all() {
        let process = observed(&[[0.1]], &[2.0]);
        let (here, far) = (process.predict(&[0.1]), process.predict(&[9.0]));
        assert!((here.mean - 2.0 / 1.030_001).abs() < 1e-9, "{}", here.mean);
        assert!(here.deviation < 0.2 && far.deviation > 0.99);
        assert!(far.mean.abs() < 1e-3);
    }

    #[test]
    fn a_running_job_narrows_the_expectation_and_does_not_move_it() {
        let alone = observed(&[[0.1]], &[2.0]).predict(&[0.9]);
        let beside = observed(&[[0.1], [0.9]], &[2.0]).predict(&[0.9]);
        assert!((alone.mean - beside.mean).abs() < 1e-4, "{} {}", alone.mean, beside.mean);
        assert!(beside.deviation < 0.01 && alone.deviation > 0.5);
    }

    #[test]
    fn categories_are_equal_or_not_whatever_their_order() {
        let metric = Metric::new(&Shape::usual(1).reciprocals, &[true]);
        let between = |a: f64, b: f64| kernel(&metric, &[a], &[b]);
        assert!((between(0.1, 0.9) - between(0.1, 0.2)).abs() < 1e-15);
        assert!((between(0.5, 0.5) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn the_fit_finds_which_dimension_matters_and_how_much_noise_there_is() {
        let points: Vec<[f64; 2]> =
            (0..40_u32).map(|i| [f64::from(i % 8) / 7.0, f64::from(i * 5 % 11) / 10.0]).collect();
        let values: Vec<f64> = points.iter().map(|[x, _]| (6.0 * x).sin()).collect();
        let borrowed: Vec<&[f64]> = points.iter().map(<[f64; 2]>::as_slice).collect();
        let shape = Shape::fit(&[false, false], &borrowed, &values);
        let [first, second] = shape.reciprocals[..] else { panic!("two dimensions") };
        assert!(first > 3.0 * second, "lengths {} and {}", 1.0 / first, 1.0 / second);
        assert!(shape.noise < 0.001, "{}", shape.noise);
    }

    #[test]
    fn a_change_multiplies_a_length_or_the_deviation_of_the_noise_within_its_range() {
        let shape = Shape { reciprocals: vec![2.0, 4.0], noise: 0.25 };
        let longer = Shape { reciprocals: vec![2.0, 2.0], ..shape.clone() };
        assert_eq!(shape.changed(1, 2.0), Some(longer));
        assert_eq!(shape.changed(2, 2.0), Some(Shape { noise: 1.0, ..shape.clone() }));
        // Lengths of 16, 32, 1/16 and 1/32, and a noise of 4.
        let is_in_range = |coordinate, factor| shape.changed(coordinate, factor).is_some();
        assert_eq!(
            [32.0, 64.0, 0.125, 0.0625].map(|factor| is_in_range(0, factor)),
            [true, false, true, false]
        );
        assert!(!is_in_range(2, 4.0));
    }

    /// A draw takes bounded time: the search for a shape ends before the last of so many dimensions.
    #[test]
    fn a_dimension_that_the_bounded_fit_does_not_reach_keeps_its_usual_length() {
        let points: Vec<Vec<f64>> = (0..8_u32)
            .map(|i| (1..=90).map(|n| f64::from(i * n % 8) / if n == 90 { 8.0 } else { 800.0 }).collect())
            .collect();
        let values: Vec<f64> = points.iter().map(|point| libm::sin(9.0 * point[89])).collect();
        let borrowed: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
        let shape = Shape::fit(&[false; 90], &borrowed, &values);
        let usual = Shape::usual(1).reciprocals[0];
        let is_usual = |dimension: usize| shape.reciprocals[dimension].to_bits() == usual.to_bits();
        let last: Vec<&[f64]> = points.iter().map(|point| &point[89..]).collect();
        let alone = Shape::fit(&[false], &last, &values).reciprocals[0];
        assert_ne!(alone.to_bits(), usual.to_bits(), "the values show another length");
        assert!(is_usual(89) && shape.noise.to_bits() == NOISE_PRIOR.0.to_bits(), "{shape:?}");
    }

    #[test]
    fn a_sample_without_randomness_is_the_mean() {
        let process = observed(&[[0.1], [0.7]], &[1.0, -1.0]);
        let points = [[0.2], [0.4]];
        let predictions = points.map(|point| process.predict(&point));
        let at: Vec<(&[f64], &Prediction)> =
            points.iter().map(<[f64; 1]>::as_slice).zip(&predictions).collect();
        let sample = process.sample(&at, &[0.0, 0.0]).unwrap();
        assert!(sample.iter().zip(&predictions).all(|(sample, p)| (sample - p.mean).abs() < 1e-12));
    }
}
