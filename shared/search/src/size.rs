//! The share of the search that each cluster size gets.
//!
//! Values are compared across sizes, so the search soon leaves a size at which good values are rare. But users compare
//! the sizes with each other, which needs a good configuration at each. So a share of the draws is for the size with the
//! fewest trials: they improve its own best value, among configurations of this size only.

use crate::seed::Rng;
use crate::space::{Domain, Space};

/// The share of the model's draws for the size with the fewest trials.
const SHARE: f64 = 0.3;

/// One cluster size: a cell of its dimension.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    dimension: usize,
    coordinate: f64,
}

impl Size {
    /// Returns the size with the fewest trials, the smallest of equal ones, if the draw is for one size. `trials` has the
    /// number of trials of each size, in their order. Without it, and without several sizes, the draw is for all sizes,
    /// and takes no random number.
    pub(crate) fn drawn(space: &Space, trials: &[u32], rng: &mut Rng) -> Option<Self> {
        let is_size = |domain: &Domain| matches!(domain, Domain::Ordinal { values } if values.len() > 1);
        let dimension = space.parameters().iter().position(|parameter| is_size(&parameter.domain))?;
        if trials.is_empty() || rng.next_f64() >= SHARE {
            return None;
        }
        let domain = &space.parameters().get(dimension)?.domain;
        let Domain::Ordinal { values } = domain else { return None };
        let trials = trials.iter().copied().chain(std::iter::repeat(0));
        let (fewest, _) = values.iter().zip(trials).min_by_key(|(_, trials)| *trials)?;
        Some(Self { dimension, coordinate: domain.coordinate(fewest).ok()? })
    }

    /// Returns whether a point has this size: points are the centers of their cells, rounded to 16 bits.
    pub(crate) fn has(self, point: &[f64]) -> bool {
        point.get(self.dimension).is_some_and(|coordinate| (coordinate - self.coordinate).abs() < 1e-3)
    }

    /// Moves a point to this size.
    pub(crate) fn apply(self, point: &mut [f64]) {
        if let Some(coordinate) = point.get_mut(self.dimension) {
            *coordinate = self.coordinate;
        }
    }
}

#[cfg(test)]
mod tests;
