//! What a sampler may know: the trials so far, as plain data.
//!
//! [`History`] is the bounded memory of trials that have ended or wait. [`View`] adds the running trials to it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::kept::OBSERVATIONS_MAX;
use crate::kept::{oriented, sample};
use crate::linear::Metric;
use crate::place::Place;
use crate::space::Configuration;
use crate::warm::WarmStart;

/// The number of first epochs that an observation keeps: they show whether trials repeat each other.
pub const EARLY_EPOCHS: usize = 3;

/// The minimum distance between points, as a share of the mean distance of evenly spread ones: at first, at least, and
/// at most.
const DISTANCE: f64 = 0.25;
const DISTANCE_RANGE: (f64, f64) = (0.05, 0.45);
/// The factors for a trial that repeats another one, and for one that does not.
const REPEATED: f64 = 1.5;
const NEW: f64 = 0.95;
/// Values that differ by less than this share of the spread of the good ones are the same.
const SAME: f64 = 2e-3;
/// A trial is compared with so many of its neighbors.
const NEIGHBORS: usize = 8;

/// The place and the values of a trial, as far as they are known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Its place in the space.
    pub place: Place,
    /// Its best value at any epoch; `None` = no finite value.
    pub best: Option<f64>,
    /// Its first values, at most [`EARLY_EPOCHS`]. Fewer if one of them is not finite.
    pub early: Vec<f64>,
    /// The cost of a training of all epochs, above 0, in any unit that all trials share; `None` = not known, or of no
    /// interest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// Whether the model drew it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_model: bool,
}

/// The trials that have ended or wait, by number; at most [`OBSERVATIONS_MAX`].
///
/// Beyond that number it keeps the better half, and of the other trials a random sample: those with the greatest hash
/// of their number. So it does not depend on the order in which trials end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct History(BTreeMap<u32, Observation>);

impl History {
    /// Returns the trials with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Observation)> {
        self.0.iter().map(|(trial, observation)| (*trial, observation))
    }

    /// Returns what is known of a trial.
    pub fn get(&self, trial: u32) -> Option<&Observation> {
        self.0.get(&trial)
    }

    /// Records what is known of a trial, in place of what was known before.
    pub fn record(&mut self, trial: u32, observation: Observation, maximize: bool) {
        self.0.insert(trial, observation);
        if self.0.len() > OBSERVATIONS_MAX {
            let values: Vec<f64> =
                self.0.values().map(|observation| oriented(observation.best, maximize)).collect();
            let numbers: Vec<u32> = self.0.keys().copied().collect();
            let kept = sample(&numbers, &values, OBSERVATIONS_MAX);
            let kept: Vec<u32> = kept.into_iter().filter_map(|index| numbers.get(index).copied()).collect();
            self.0.retain(|trial, _| kept.binary_search(trial).is_ok());
        }
    }
}

/// Returns the distinct values, best first. A limit that clips bad values does not make them count more than once.
fn ranked(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut ranked: Vec<f64> = values.collect();
    ranked.sort_unstable_by(|a, b| b.total_cmp(a));
    ranked.dedup();
    ranked
}

/// Returns the value after so many tenths of the ranked ones, rounded up; 0 without values.
pub(crate) fn at_tenth(ranked: &[f64], tenths: usize) -> f64 {
    let index = (ranked.len() * tenths).div_ceil(10);
    ranked.get(index).or(ranked.last()).copied().unwrap_or(0.0)
}

/// How a configuration was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A point of an evenly spread sequence.
    Spread,
    /// A random point.
    Random,
    /// The next combination of all values.
    Grid,
    /// The user asked for it. Parameters that the user left open have the values that the sampler drew.
    Initial,
    /// It was one of the best of a parent, and is taken over.
    Parent {
        /// The parent, from 0, in the order of the request.
        parent: u32,
        /// Its rank among the parent's configurations, from 0.
        rank: u32,
    },
    /// The model expected a good value there, or knew little.
    Model {
        /// The nearest known trial.
        near: u32,
        /// The expected best value of the trial.
        expected: f64,
        /// One standard deviation below and above, on the model's scale.
        low: f64,
        /// See `low`.
        high: f64,
        /// The parent that the model followed most; `None` = none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<Followed>,
        /// What it was to save, where the model looked for a lower cost instead of a better value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        saved: Option<Saved>,
        /// Whether it was to improve the best value of its cluster size, which had the fewest trials.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        of_size: bool,
    },
}

/// What a configuration is expected to save.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// The expected cost of a training of all epochs, as a share of that of the cheapest known trial within the
    /// tolerance.
    pub cost: f64,
    /// The probability that the value is within the tolerance.
    pub within: f64,
}

/// A parent that the model followed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Followed {
    /// The parent, from 0, in the order of the request.
    pub parent: u32,
    /// Its share of the trust in parents times that trust: from 0 to 1.
    pub weight: f64,
}

/// A configuration, and how it was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    /// The configuration.
    pub configuration: Configuration,
    /// How it was chosen.
    pub origin: Origin,
}

impl Suggestion {
    /// Returns the suggestion with the values that the user gave for some parameters or all.
    #[must_use]
    pub fn with(self, given: &Configuration) -> Self {
        Self { configuration: self.configuration.with(given), origin: Origin::Initial }
    }
}

struct Seen<'a> {
    trial: u32,
    observation: &'a Observation,
    point: Vec<f64>,
}

/// The trials that a suggestion may take into account.
pub struct View<'a> {
    maximize: bool,
    /// Trials with a value, and those that ended without one, by number.
    known: Vec<Seen<'a>>,
    /// Running trials without a value, by number.
    running: Vec<Seen<'a>>,
    initial: &'a [Configuration],
    warm: Option<&'a WarmStart>,
    tolerance: Option<f64>,
    size_trials: &'a [u32],
}

impl std::fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View")
            .field("known", &self.known.len())
            .field("running", &self.running.len())
            .finish()
    }
}

impl<'a> View<'a> {
    /// Returns the view of a history and of the running trials with what is known of them so far.
    pub fn new(history: &'a History, running: &'a BTreeMap<u32, Observation>, maximize: bool) -> Self {
        let seen = |(trial, observation): (&u32, &'a Observation)| Seen {
            trial: *trial,
            observation,
            point: observation.place.point(),
        };
        let ended = history.0.iter().filter(|(trial, _)| !running.contains_key(trial)).map(seen);
        let (valued, waiting): (Vec<_>, Vec<_>) =
            running.iter().map(seen).partition(|seen| seen.observation.best.is_some());
        let mut known: Vec<Seen<'a>> = ended.chain(valued).collect();
        known.sort_by_key(|seen| seen.trial);
        Self {
            maximize,
            known,
            running: waiting,
            initial: &[],
            warm: None,
            tolerance: None,
            size_trials: &[],
        }
    }

    /// Returns the view with the values that the user gave to the first trials.
    #[must_use]
    pub fn with_initial(self, initial: &'a [Configuration]) -> Self {
        Self { initial, ..self }
    }

    /// Returns the view with the parents of the tuning.
    #[must_use]
    pub fn with_parents(self, warm: Option<&'a WarmStart>) -> Self {
        Self { warm: warm.filter(|warm| !warm.parents.is_empty()), ..self }
    }

    /// Returns the view of a search for a lower cost, too, among values that are worse than the best one by at most the
    /// tolerance.
    #[must_use]
    pub fn with_tolerance(self, tolerance: Option<f64>) -> Self {
        Self { tolerance, ..self }
    }

    /// Returns the view with the number of all trials of each cluster size, also of those that the history does not keep.
    #[must_use]
    pub fn with_size_trials(self, size_trials: &'a [u32]) -> Self {
        Self { size_trials, ..self }
    }

    /// Returns the number of trials of each cluster size; empty where all jobs have one size.
    pub(crate) fn size_trials(&self) -> &'a [u32] {
        self.size_trials
    }

    /// Returns the tolerance; `None` where costs are of no interest.
    pub(crate) fn tolerance(&self) -> Option<f64> {
        self.tolerance
    }

    /// Returns the cost of each known trial.
    #[expect(clippy::cast_precision_loss, reason = "a cost needs fewer than 53 bits of precision")]
    pub(crate) fn costs(&self) -> Vec<Option<f64>> {
        self.known.iter().map(|seen| seen.observation.cost.map(|cost| cost.max(1) as f64)).collect()
    }

    /// Returns the parents; `None` without any.
    pub(crate) fn parents(&self) -> Option<&'a WarmStart> {
        self.warm
    }

    /// Returns the values that the user gave to the first trials.
    pub(crate) fn initial(&self) -> &[Configuration] {
        self.initial
    }

    /// Returns whether a greater value is better.
    pub(crate) fn maximize(&self) -> bool {
        self.maximize
    }

    pub(crate) fn known(&self) -> Vec<&[f64]> {
        self.known.iter().map(|seen| seen.point.as_slice()).collect()
    }

    /// Returns the best value of each known trial.
    pub(crate) fn values(&self) -> Vec<Option<f64>> {
        self.known.iter().map(|seen| seen.observation.best).collect()
    }

    /// Returns the places of the running trials without a value.
    pub(crate) fn running(&self) -> Vec<&[f64]> {
        self.running.iter().map(|seen| seen.point.as_slice()).collect()
    }

    /// Returns the indices of at most `most` known trials, by the rule of [`History`].
    pub(crate) fn sample(&self, values: &[f64], most: usize) -> Vec<usize> {
        let trials: Vec<u32> = self.known.iter().map(|seen| seen.trial).collect();
        sample(&trials, values, most)
    }

    pub(crate) fn nearest(&self, point: &[f64], metric: &Metric) -> Option<u32> {
        let nearest = self
            .known
            .iter()
            .min_by(|a, b| metric.square(&a.point, point).total_cmp(&metric.square(&b.point, point)));
        nearest.map(|seen| seen.trial)
    }

    /// Returns whether no trial is nearer to a point than `distance`.
    pub(crate) fn is_distant(&self, point: &[f64], metric: &Metric, distance: f64) -> bool {
        let limit = distance * distance;
        let mut tried = self.known.iter().chain(&self.running);
        tried.all(|seen| metric.square(&seen.point, point) >= limit)
    }

    /// Returns the minimum distance of the next point from all others, after `trials` trials.
    ///
    /// It is a share of the mean distance of evenly spread points. The share grows with each trial of the model whose
    /// first epochs repeat those of a neighbor, and shrinks with the others: on a plateau the search must move on, and
    /// on a slope it may come close.
    pub(crate) fn distance(&self, metric: &Metric, trials: u32) -> f64 {
        let dimensions = u32::try_from(metric.dimensions()).map_or(f64::INFINITY, f64::from);
        let same = [0, 1, 2].map(|epoch| self.spread(epoch) * SAME);
        let drawn = self.known.iter().filter(|seen| seen.observation.by_model);
        let share = drawn.fold(DISTANCE, |share, seen| {
            let Some(values) = early(seen.observation) else { return share };
            let factor = if self.repeats(metric, seen, values, same) { REPEATED } else { NEW };
            (share * factor).clamp(DISTANCE_RANGE.0, DISTANCE_RANGE.1)
        });
        share * dimensions.sqrt() * libm::pow(f64::from(trials) + 1.0, -1.0 / dimensions)
    }

    /// Returns whether the first epochs of a trial repeat those of an earlier trial among its neighbors. A curve that
    /// has not moved yet proves nothing.
    fn repeats(
        &self,
        metric: &Metric,
        seen: &Seen<'_>,
        values: &[f64; EARLY_EPOCHS],
        same: [f64; EARLY_EPOCHS],
    ) -> bool {
        if (values[2] - values[0]).abs() <= same[2] {
            return false;
        }
        let is_same = |other: &[f64; EARLY_EPOCHS]| {
            values.iter().zip(other).zip(same).all(|((a, b), same)| (a - b).abs() <= same)
        };
        let apart = |other: &Seen<'_>| metric.square(&other.point, &seen.point);
        let is_alike =
            |other: &&Seen<'_>| other.trial < seen.trial && early(other.observation).is_some_and(is_same);
        let nearest = self.known.iter().filter(is_alike).map(apart).min_by(f64::total_cmp);
        let Some(nearest) = nearest else { return false };
        let others = self.known.iter().filter(|other| other.trial != seen.trial);
        others.filter(|other| apart(other) < nearest).take(NEIGHBORS).count() < NEIGHBORS
    }

    /// Returns the spread of the good values at one of the first epochs: from the first to the third tenth of the
    /// distinct ones, best first. Bad trials may start anywhere, so their values do not count.
    fn spread(&self, epoch: usize) -> f64 {
        let values = self.known.iter().filter_map(|seen| seen.observation.early.get(epoch).copied());
        let ranked = ranked(values.map(|value| oriented(Some(value), self.maximize)));
        at_tenth(&ranked, 1) - at_tenth(&ranked, 3)
    }
}

/// Returns the values of the first epochs, if all are known.
fn early(observation: &Observation) -> Option<&[f64; EARLY_EPOCHS]> {
    observation.early.first_chunk()
}
