//! What parents say about a place, as far as they have proven to know it.
//!
//! - A parent's surrogate is a Gaussian process over the ranks of its values. So the scale and the offset of its values,
//!   and any other increasing function of them, change nothing (Salinas, Shen and Perrone 2020, "A quantile-based
//!   approach for hyperparameter transfer learning", section 4).
//! - Its weight is its agreement with the new trials: how much better than by chance it orders them, pair by pair (Feurer,
//!   Letham and Bakshy 2018, "Scalable meta-learning for Bayesian optimization", section 4: the ranking loss). A pair
//!   counts as much as the parent claims that its trials differ. A few imaginary trials, which agree, stand for the trust
//!   before the first result. The weight falls with the number of new trials, also of a good parent.
//! - The guide is the weighted mean of the surrogates. The model of the new tuning describes what the guide leaves
//!   unexplained (Kennedy and O'Hagan 2000, "Predicting the output from a complex computer code when fast approximations
//!   are available", section 2.1). So it corrects a parent wherever it has values of its own.

use std::cmp::Ordering;

use crate::kept::sample;
use crate::linear::IsCategory;
use crate::process::{Process, Shape};
use crate::warm::{Parent, WarmStart, WarmStartType};

#[cfg(test)]
mod tests;

/// The most observations of a surrogate, and those of all surrogates: they bound the time of a draw.
const OBSERVATIONS: usize = 96;
const OBSERVATIONS_OF_ALL: usize = 240;
/// The same for the fit of the shape.
const FIT: usize = 32;
const FIT_OF_ALL: usize = 100;
/// Keeps the logarithm of a rank finite.
const OFFSET: f64 = 0.05;
/// The agreement of the imaginary trials, and their number.
const PRIOR_TRIALS: f64 = 2.0;
const PRIOR_IDENTICAL: f64 = 0.9;
const PRIOR_TRANSFER: f64 = 0.6;
/// The mean difference of two independent standard normal numbers: 2 / sqrt(pi).
const USUAL_DIFFERENCE: f64 = 1.128;
/// An agreement up to this may be chance, and gives no weight.
const CHANCE: f64 = 0.3;
/// After so many new trials a weight is halved: their own values say more about the best places than a parent does.
const HALF_LIFE: f64 = 20.0;
/// The slope of the guide is that of a regression with so many imaginary trials of slope 1, and at most this.
const SLOPE_TRIALS: f64 = 2.0;
const SLOPE_MAX: f64 = 3.0;

/// A parent's surrogate and its weight.
struct Weighted {
    parent: u32,
    weight: f64,
    points: Vec<Vec<f64>>,
    shape: Shape,
    scores: Vec<f64>,
}

/// The weighted surrogates of parents.
pub(crate) struct Guide {
    parents: Vec<Weighted>,
    categories: Vec<IsCategory>,
    slope: f64,
}

/// A guide that is ready to answer.
pub(crate) struct Guiding<'a> {
    parents: Vec<(f64, Process<'a>)>,
    slope: f64,
}

impl Guide {
    /// Returns the guide after the new trials at `points` with these targets; `None` if no parent has proven to help.
    pub(crate) fn of(
        warm: &WarmStart,
        maximize: bool,
        categories: &[IsCategory],
        points: &[&[f64]],
        targets: &[f64],
    ) -> Option<Self> {
        let count = warm.parents().count().max(1);
        let mut parents = Vec::new();
        let mut said = vec![0.0; points.len()];
        for (index, parent) in warm.parents() {
            let Some(mut known) = Weighted::of(index, parent, maximize, categories, count) else { continue };
            let means = |process: Process<'_>| points.iter().map(|point| process.mean(point)).collect();
            let Some(means): Option<Vec<f64>> = known.process(categories).map(means) else { continue };
            known.weight = weight(warm.kind, &means, targets);
            if known.weight > 0.0 {
                said.iter_mut().zip(&means).for_each(|(sum, mean)| *sum += known.weight * mean);
                parents.push(known);
            }
        }
        if parents.is_empty() {
            return None;
        }
        let sum = parents.iter().fold(0.0, |sum, known| sum + known.weight);
        let most = parents.iter().map(|known| known.weight).fold(0.0, f64::max);
        // The weights sum to the greatest of them: further parents do not add to the trust in one.
        for known in &mut parents {
            known.weight *= most / sum;
        }
        let said: Vec<f64> = said.iter().map(|said| said * most / sum).collect();
        let slope = slope(&said, targets);
        Some(Self { parents, categories: categories.to_vec(), slope })
    }

    /// Returns the parent with the greatest weight, and the weight.
    pub(crate) fn leader(&self) -> Option<(u32, f64)> {
        let best =
            self.parents.iter().reduce(|best, next| if next.weight > best.weight { next } else { best });
        best.map(|known| (known.parent, known.weight))
    }

    /// Returns the sum of the weights, which is the greatest weight of one parent before it was shared.
    pub(crate) fn trust(&self) -> f64 {
        self.parents.iter().fold(0.0, |sum, known| sum + known.weight)
    }

    /// Returns the number of observations that the parents are worth.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 5 times 96")]
    pub(crate) fn observations(&self) -> u32 {
        let worth =
            |known: &Weighted| known.weight * u32::try_from(known.points.len()).map_or(0.0, f64::from);
        self.parents.iter().fold(0.0, |sum, known| sum + worth(known)) as u32
    }

    /// Returns the best places of the parents, at most `most`, which take turns.
    pub(crate) fn best(&self, most: usize) -> Vec<&[f64]> {
        let ranks = 0..self.parents.iter().map(|known| known.points.len()).max().unwrap_or(0);
        let all = ranks.flat_map(|rank| self.parents.iter().filter_map(move |known| known.points.get(rank)));
        all.map(Vec::as_slice).take(most).collect()
    }

    pub(crate) fn ready(&self) -> Guiding<'_> {
        let ready =
            self.parents.iter().filter_map(|known| Some((known.weight, known.process(&self.categories)?)));
        Guiding { parents: ready.collect(), slope: self.slope }
    }
}

impl Guiding<'_> {
    /// Returns the target that the parents expect at a point.
    pub(crate) fn mean(&self, point: &[f64]) -> f64 {
        self.slope
            * self.parents.iter().fold(0.0, |sum, (weight, process)| sum + weight * process.mean(point))
    }
}

impl Weighted {
    /// Returns the surrogate of one of so many parents; `None` with fewer than two observations.
    fn of(
        index: u32,
        parent: &Parent,
        maximize: bool,
        categories: &[IsCategory],
        count: usize,
    ) -> Option<Self> {
        let observations = parent.observations();
        if observations.len() < 2 {
            return None;
        }
        let numbers: Vec<u32> = (0..).zip(observations).map(|(number, _)| number).collect();
        let values: Vec<f64> =
            observations.iter().map(|(_, value)| if maximize { *value } else { -*value }).collect();
        let all = scores(&values);
        let chosen = |most: usize| -> (Vec<Vec<f64>>, Vec<f64>) {
            let kept = sample(&numbers, &values, most);
            let place = |index: &usize| observations.get(*index).map(|(place, _)| place.point());
            let points = kept.iter().filter_map(place).collect();
            (points, kept.iter().filter_map(|index| all.get(*index).copied()).collect())
        };
        let (fit, observed) = chosen(FIT.min(FIT_OF_ALL / count));
        let fit: Vec<&[f64]> = fit.iter().map(Vec::as_slice).collect();
        let shape = Shape::fit(categories, &fit, &observed);
        let (points, scores) = chosen(OBSERVATIONS.min(OBSERVATIONS_OF_ALL / count));
        Some(Self { parent: index, weight: 0.0, points, shape, scores })
    }

    fn process(&self, categories: &[IsCategory]) -> Option<Process<'_>> {
        let points = self.points.iter().map(Vec::as_slice).collect();
        Process::after(&self.shape, categories, points, &self.scores)
    }
}

/// Returns the score of each value by its rank: `-ln(2 rank / count + 0.05)`, with mean 0 and variance 1. It is the target
/// of [`crate::target`] if values are spread evenly. Equal values share the mean of their ranks.
fn scores(values: &[f64]) -> Vec<f64> {
    let count = f64::from(u32::try_from(values.len()).unwrap_or(u32::MAX));
    let raw = |value: &f64| {
        let among = |is: &dyn Fn(&f64) -> bool| {
            f64::from(u32::try_from(values.iter().filter(|other| is(other)).count()).unwrap_or(u32::MAX))
        };
        let (better, equal) = (among(&|other| other > value), among(&|other| other >= value));
        -libm::log((better + equal) / count + OFFSET)
    };
    let raw: Vec<f64> = values.iter().map(raw).collect();
    let mean = raw.iter().fold(0.0, |sum, raw| sum + raw) / count;
    let variance = raw.iter().fold(0.0, |sum, raw| sum + (raw - mean) * (raw - mean)) / count;
    let deviation = if variance > 0.0 { variance.sqrt() } else { 1.0 };
    raw.iter().map(|raw| (raw - mean) / deviation).collect()
}

/// Returns the weight of a parent that expected these means: from 0 to 1.
fn weight(kind: WarmStartType, means: &[f64], targets: &[f64]) -> f64 {
    let (mut right, mut all) = (0.0, 0.0);
    for (index, (mean, target)) in means.iter().zip(targets).enumerate() {
        for (other, second) in means.iter().zip(targets).take(index) {
            let claim = (mean - other).abs();
            all += claim;
            match ((mean - other) * (target - second)).partial_cmp(&0.0) {
                Some(Ordering::Greater) => right += claim,
                Some(Ordering::Less) => right -= claim,
                Some(Ordering::Equal) | None => {}
            }
        }
    }
    let count = f64::from(u32::try_from(means.len()).unwrap_or(u32::MAX));
    let rest = (count - 1.0).max(1.0);
    // So many trials that differ as usual carry this evidence.
    let per_trial = 2.0 / rest / USUAL_DIFFERENCE;
    let prior = match kind {
        WarmStartType::IdenticalDataAndAlgorithm => PRIOR_IDENTICAL,
        WarmStartType::TransferLearning => PRIOR_TRANSFER,
    };
    let agreement = (PRIOR_TRIALS * prior + right * per_trial) / (PRIOR_TRIALS + all * per_trial);
    ((agreement - CHANCE) / (1.0 - CHANCE)).max(0.0) * HALF_LIFE / (HALF_LIFE + count)
}

/// Returns the slope of the targets over what the guide said.
fn slope(said: &[f64], targets: &[f64]) -> f64 {
    let count = f64::from(u32::try_from(said.len()).unwrap_or(u32::MAX)).max(1.0);
    let mean = |values: &[f64]| values.iter().fold(0.0, |sum, value| sum + value) / count;
    let (said_mean, target_mean) = (mean(said), mean(targets));
    let (mut product, mut square) = (SLOPE_TRIALS, SLOPE_TRIALS);
    for (said, target) in said.iter().zip(targets) {
        product += (said - said_mean) * (target - target_mean);
        square += (said - said_mean) * (said - said_mean);
    }
    (product / square).clamp(0.0, SLOPE_MAX)
}
