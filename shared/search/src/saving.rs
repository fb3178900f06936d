//! The search for a cheaper configuration whose value is as good as the best one, but for a tolerance.
//!
//! The acquisition is the expected saving times the probability that the value is within the tolerance (Gardner et al.
//! 2014, "Bayesian optimization with inequality constraints", section 3: the cost is the objective, the value the
//! constraint). A second Gaussian process models the logarithm of the cost. So a saving is a share of the cost of the
//! best buy, which is the cheapest known configuration within the tolerance.
//!
//! The longer no trial has improved the best value by more than the tolerance, the less such an improvement is expected.
//! So the share of the draws that look for a lower cost is that of the trials since the first one within the tolerance. It
//! is less than 1, because the first trial may be good.

use crate::history::{Saved, View};
use crate::linear::IsCategory;
use crate::process::{Process, Shape};

/// So many trials must show their cost.
const COSTS_MIN: usize = 5;
/// At most this share of the draws looks for a lower cost.
const SHARE_MAX: f64 = 0.8;
/// A deviation of the logarithms below this shows equal costs: measured times vary as much.
const DEVIATION_MIN: f64 = 0.02;

/// The known trials whose value is within the tolerance of the best one.
pub(crate) struct Within {
    /// The lowest cost of one of them.
    best_buy: f64,
    /// The worst value within the tolerance.
    worst: f64,
    /// The share of the trials since the first of them, at most [`SHARE_MAX`].
    share: f64,
}

impl Within {
    /// Returns those of a view; `None` without a tolerance, or while no such trial shows its cost.
    pub(crate) fn of(view: &View<'_>) -> Option<Self> {
        let tolerance = view.tolerance()?;
        let sign = if view.maximize() { 1.0 } else { -1.0 };
        let values: Vec<Option<f64>> = view.values().into_iter().map(|value| Some(sign * value?)).collect();
        let best = values.iter().copied().flatten().reduce(f64::max)?;
        // As `hyperband::ranking::is_within`.
        let is_within = |value: &Option<f64>| value.is_some_and(|value| best - value <= tolerance);
        let costs = view.costs();
        let within = values.iter().zip(&costs).filter(|(value, _)| is_within(value));
        let best_buy = within.filter_map(|(_, cost)| *cost).reduce(f64::min)?;
        let trials = |count: usize| u32::try_from(count).map_or(f64::INFINITY, f64::from);
        let since = values.iter().skip_while(|value| !is_within(value)).count();
        Some(Self {
            best_buy,
            worst: sign * (best - tolerance),
            share: (trials(since) / trials(values.len())).min(SHARE_MAX),
        })
    }

    /// Returns the worst value within the tolerance.
    pub(crate) fn worst(&self) -> f64 {
        self.worst
    }

    /// Returns the share of the draws that look for a lower cost.
    pub(crate) fn share(&self) -> f64 {
        self.share
    }
}

/// The model of costs, and the best buy.
pub(crate) struct Saving<'a> {
    process: Process<'a>,
    scale: Scale,
    /// The cost of the best buy, on the scale of the model.
    best_buy: f64,
}

/// The mean and the deviation of logarithms of costs.
#[derive(Debug, Clone, Copy)]
struct Scale {
    mean: f64,
    deviation: f64,
}

impl Scale {
    fn of(costs: &[f64]) -> Self {
        let count = u32::try_from(costs.len()).map_or(f64::INFINITY, f64::from).max(1.0);
        let logs = || costs.iter().map(|cost| libm::log(*cost));
        let mean = logs().fold(0.0, |sum, log| sum + log) / count;
        let variance = logs().fold(0.0, |sum, log| sum + (log - mean) * (log - mean)) / count;
        Self { mean, deviation: variance.sqrt() }
    }

    fn scaled(self, cost: f64) -> f64 {
        (libm::log(cost) - self.mean) / self.deviation
    }
}

impl<'a> Saving<'a> {
    /// Returns the model of the costs of the known trials `kept`, with the shape that fits those of `fit`; `None` with few
    /// costs, or if all costs are equal.
    pub(crate) fn of(
        view: &'a View<'_>,
        within: &Within,
        categories: &[IsCategory],
        (fit, kept): (&[usize], &[usize]),
        running: &[&'a [f64]],
    ) -> Option<Self> {
        let costs = view.costs();
        let places = view.known();
        let of = |indices: &[usize]| -> (Vec<&'a [f64]>, Vec<f64>) {
            let known = |index: &usize| Some((*places.get(*index)?, (*costs.get(*index)?)?));
            indices.iter().filter_map(known).unzip()
        };
        let (mut points, costs) = of(kept);
        let scale = Scale::of(&costs);
        if costs.len() < COSTS_MIN || scale.deviation < DEVIATION_MIN {
            return None;
        }
        let scaled =
            |costs: Vec<f64>| -> Vec<f64> { costs.into_iter().map(|cost| scale.scaled(cost)).collect() };
        let (fitted, fitted_costs) = of(fit);
        let shape = Shape::fit(categories, &fitted, &scaled(fitted_costs));
        points.extend(running);
        let process = Process::after(&shape, categories, points, &scaled(costs))?;
        Some(Self { process, scale, best_buy: scale.scaled(within.best_buy) })
    }

    /// Returns the expected logarithm of the cost at a point, on the scale of the model.
    pub(crate) fn cost(&self, point: &[f64]) -> f64 {
        self.process.mean(point)
    }

    /// Returns the expected saving at a point times `within`, the probability that its value is within the tolerance.
    pub(crate) fn worth(&self, point: &[f64], within: f64) -> f64 {
        let mut saved = self.process.predict(point);
        saved.mean = -saved.mean;
        saved.improvement(-self.best_buy) * within
    }

    /// Returns what a point is expected to save.
    pub(crate) fn saved(&self, point: &[f64], within: f64) -> Saved {
        let logarithm = (self.cost(point) - self.best_buy) * self.scale.deviation;
        Saved { cost: libm::exp(logarithm), within }
    }
}

#[cfg(test)]
mod tests;
