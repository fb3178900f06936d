//! The live trials of a tuning.

use std::collections::BTreeMap;
use std::ops::Index;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::trial::Trial;
use crate::unit::ids::TrialId;

/// Trials by number. Copies share a trial until one of them changes it: the decider copies the state before each step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LiveTrials(BTreeMap<TrialId, Arc<Trial>>);

impl LiveTrials {
    /// Returns whether there is no trial.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of trials.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether `trial` is live.
    pub fn contains_key(&self, trial: TrialId) -> bool {
        self.0.contains_key(&trial)
    }

    /// Returns a trial.
    pub fn get(&self, trial: TrialId) -> Option<&Trial> {
        self.0.get(&trial).map(AsRef::as_ref)
    }

    /// Returns the trials with their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&TrialId, &Trial)> {
        self.0.iter().map(|(number, trial)| (number, trial.as_ref()))
    }

    /// Returns the numbers of the trials, in order.
    pub fn keys(&self) -> impl Iterator<Item = &TrialId> {
        self.0.keys()
    }

    /// Returns the trials, by number.
    pub fn values(&self) -> impl Iterator<Item = &Trial> {
        self.0.values().map(AsRef::as_ref)
    }

    /// Returns a trial to change.
    pub fn get_mut(&mut self, trial: TrialId) -> Option<&mut Trial> {
        self.0.get_mut(&trial).map(Arc::make_mut)
    }

    /// Returns all trials to change, by number. This copies each trial that another state shares.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Trial> {
        self.0.values_mut().map(Arc::make_mut)
    }

    pub(crate) fn get_or_insert_with(&mut self, number: TrialId, new: impl FnOnce() -> Trial) -> &mut Trial {
        Arc::make_mut(self.0.entry(number).or_insert_with(|| Arc::new(new())))
    }

    pub(crate) fn insert(&mut self, number: TrialId, trial: Trial) {
        self.0.insert(number, Arc::new(trial));
    }

    pub(crate) fn remove(&mut self, trial: TrialId) -> Option<Trial> {
        self.0.remove(&trial).map(Arc::unwrap_or_clone)
    }
}

impl Index<&TrialId> for LiveTrials {
    type Output = Trial;

    #[expect(clippy::indexing_slicing, reason = "panics for an unknown trial, as the index of a map does")]
    fn index(&self, trial: &TrialId) -> &Trial {
        &self.0[trial]
    }
}
