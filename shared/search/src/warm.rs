//! Observations of earlier tunings, the parents, from which a new tuning may start.
//!
//! A parent's observations are places in the space of the new tuning, so [`Parent::new`] translates its configurations.
//! How far a suggestion follows a parent is the matter of `guide.rs`.

use serde::{Deserialize, Serialize};

use crate::kept::{OBSERVATIONS_MAX, oriented, sample};
use crate::linear::Metric;
use crate::place::Place;
use crate::space::{Configuration, Space};

/// The most parents of a tuning (`WarmStartConfig.ParentHyperParameterTuningJobs` of SageMaker's
/// `CreateHyperParameterTuningJob`).
pub const PARENTS_MAX: usize = 5;
/// Configurations are taken over from so many of the best ones of a parent.
const BEST: usize = 12;
/// The distance between configurations that are taken over, as a share of the mean distance of as many evenly spread
/// ones.
const APART: f64 = 0.25;

/// What the parents have in common with the new tuning (`WarmStartType` of the same request).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WarmStartType {
    /// The same data and the same algorithm.
    IdenticalDataAndAlgorithm,
    /// Other data, or another version of the algorithm.
    TransferLearning,
}

/// The parents of a tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WarmStart {
    /// What they have in common with the new tuning.
    pub kind: WarmStartType,
    /// The names of the parents, in the order of the request.
    pub names: Vec<String>,
    /// The parents, in the order of the request; at most [`PARENTS_MAX`] count.
    pub parents: Vec<Parent>,
}

/// The observations of an earlier tuning in the space of the new one, at most
/// [`OBSERVATIONS_MAX`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Parent(Vec<(Place, f64)>);

impl Parent {
    /// Returns the parent with these configurations and their best values.
    ///
    /// - A configuration outside the new ranges is left out. Moved to the bound, it would have a value that nothing has
    ///   measured there.
    /// - A hyperparameter that the new space lacks is ignored.
    /// - One that a configuration lacks has the middle of its range.
    /// - Of configurations at one place, the best value counts. Values that are not finite are left out.
    pub fn new(
        space: &Space,
        trials: impl IntoIterator<Item = (Configuration, f64)>,
        maximize: bool,
    ) -> Self {
        let middle = space.decode(&vec![0.5; space.dimensions()]);
        let mut known: Vec<(Place, f64)> = Vec::new();
        for (configuration, value) in trials.into_iter().filter(|(_, value)| value.is_finite()) {
            let text = |name: &str| configuration.get(name).or(middle.get(name));
            let names = space.parameters().iter().map(|parameter| parameter.name.as_str());
            let given = names.filter_map(|name| Some((name.to_owned(), text(name)?.to_owned())));
            if let Ok(place) = Place::of(space, &Configuration(given.collect())) {
                known.push((place, value));
            }
        }
        let value = |value: f64| oriented(Some(value), maximize);
        known.sort_by(|(_, a), (_, b)| value(*b).total_cmp(&value(*a)));
        let mut distinct: Vec<(Place, f64)> = Vec::new();
        for (place, value) in known {
            if distinct.iter().all(|(known, _)| *known != place) {
                distinct.push((place, value));
            }
        }
        Self(distinct).at_most(OBSERVATIONS_MAX, maximize)
    }

    /// Returns the parent with at most `most` observations: the better half, and a sample of the others.
    #[must_use]
    pub fn at_most(self, most: usize, maximize: bool) -> Self {
        let numbers: Vec<u32> = (0..).zip(&self.0).map(|(number, _)| number).collect();
        let values: Vec<f64> = self.0.iter().map(|(_, value)| oriented(Some(*value), maximize)).collect();
        let kept = sample(&numbers, &values, most);
        Self(kept.into_iter().filter_map(|index| self.0.get(index).cloned()).collect())
    }

    /// Returns the places and values, best first.
    pub fn observations(&self) -> &[(Place, f64)] {
        &self.0
    }
}

impl WarmStart {
    /// Returns the name of a parent.
    pub fn name(&self, parent: u32) -> Option<&str> {
        self.names.get(usize::try_from(parent).ok()?).map(String::as_str)
    }

    pub(crate) fn parents(&self) -> impl Iterator<Item = (u32, &Parent)> {
        (0..).zip(&self.parents).take(PARENTS_MAX)
    }

    /// Returns the places of all observations.
    pub(crate) fn places(&self) -> impl Iterator<Item = Vec<f64>> {
        self.parents().flat_map(|(_, parent)| parent.0.iter().map(|(place, _)| place.point()))
    }

    /// Returns the `number`-th configuration to take over, its parent, and its rank there from 0: the parents take turns,
    /// and give their best ones that are not close to each other. `None` if the parents have no more.
    pub(crate) fn taken_over(&self, metric: &Metric, number: usize) -> Option<(Vec<f64>, u32, u32)> {
        let dimensions = u32::try_from(metric.dimensions()).map_or(f64::INFINITY, f64::from);
        let count = u32::try_from(BEST).map_or(1.0, f64::from);
        let least = APART * dimensions.sqrt() * libm::pow(count, -1.0 / dimensions);
        let mut chosen: Vec<(Vec<f64>, u32, u32)> = Vec::new();
        let is_apart = |chosen: &[(Vec<f64>, u32, u32)], point: &[f64], least: f64| {
            chosen.iter().all(|(other, _, _)| metric.square(other, point) >= least)
        };
        // A second pass takes those that are close, but not equal.
        for least in [least * least, f64::MIN_POSITIVE] {
            loop {
                let before = chosen.len();
                for (index, parent) in self.parents() {
                    let best = (0..).zip(parent.0.iter().take(BEST));
                    let mut points = best.map(|(rank, (place, _))| (place.point(), index, rank));
                    chosen.extend(points.find(|(point, _, _)| is_apart(&chosen, point, least)));
                    if chosen.len() > number {
                        return chosen.into_iter().nth(number);
                    }
                }
                if chosen.len() == before {
                    break;
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
