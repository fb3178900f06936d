//! Trials that wait at a rung. Most of them are never promoted, so the state holds only the data for a promotion
//! decision. The configuration and the curve are parked in the row of the trial's last job, and a promotion restores
//! them.

use std::collections::BTreeMap;
use std::sync::Arc;

use search::Configuration;
use serde::{Deserialize, Serialize};

use crate::log::fact::JobKey;
use crate::trial::summary::JobSummary;
use crate::unit::epochs::Epochs;
use crate::unit::ids::{BracketId, CohortId, Place, RungId, SizeId, TrialId};
use crate::unit::time::Millis;

/// A trial that waits at a rung to be promoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Its bracket.
    pub bracket: BracketId,
    /// The round of its bracket, where rungs close.
    #[serde(default, skip_serializing_if = "crate::unit::is_default")]
    pub round: u32,
    /// The rung where it waits.
    #[serde(default, skip_serializing_if = "crate::unit::is_default")]
    pub rung: RungId,
    /// The epoch with which it arrived there.
    pub resource: Epochs,
    /// Attempts ordered so far.
    pub attempts: u32,
    /// See [`Trial::last_attempt_rung`](crate::trial::Trial::last_attempt_rung).
    #[serde(default, skip_serializing_if = "crate::unit::is_default")]
    pub last_attempt_rung: RungId,
    /// See [`Trial::epoch_ms`](crate::trial::Trial::epoch_ms).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_ms: Option<Millis>,
    /// Its cluster size.
    #[serde(default, skip_serializing_if = "crate::unit::is_default")]
    pub size: SizeId,
}

impl Waiting {
    /// Returns the trials that it is compared with.
    pub fn cohort(&self) -> CohortId {
        CohortId { bracket: self.bracket, round: self.round }
    }

    /// Returns the rung where it waits.
    pub fn place(&self) -> Place {
        Place { cohort: self.cohort(), rung: self.rung }
    }

    /// Returns the key of its last job, given its number.
    pub fn last_job(&self, trial: TrialId) -> JobKey {
        JobKey { trial, rung: self.last_attempt_rung, attempt: self.attempts }
    }
}

/// The configuration and the curve of a waiting trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Parked {
    /// Its hyperparameters.
    pub configuration: Configuration,
    /// Points of its curve, by epoch: all, or some of a long one, as in [`JobSummary::curve`].
    pub curve: BTreeMap<Epochs, Option<f64>>,
}

impl From<&JobSummary> for Parked {
    fn from(last: &JobSummary) -> Self {
        let mut configuration = last.configuration.clone();
        if crate::planted!(ParkedLost) {
            configuration = Configuration::default();
        }
        Self { configuration, curve: last.curve.iter().copied().collect() }
    }
}

/// The parked trials at hand: a state read from a snapshot has none of them.
///
/// Two of these are equal if each trial that both have is equal. So equality is not transitive: the empty one equals all.
#[derive(Debug, Clone, Default)]
pub struct ParkedTrials(BTreeMap<TrialId, Arc<Parked>>);

impl PartialEq for ParkedTrials {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().all(|(trial, parked)| other.get(*trial).is_none_or(|other| other == parked))
    }
}

impl ParkedTrials {
    /// Returns a parked trial, if it is at hand.
    pub fn get(&self, trial: TrialId) -> Option<&Arc<Parked>> {
        self.0.get(&trial)
    }

    /// Returns the parked trials at hand.
    pub fn values(&self) -> impl Iterator<Item = &Parked> {
        self.0.values().map(AsRef::as_ref)
    }

    pub(crate) fn insert(&mut self, trial: TrialId, parked: Arc<Parked>) {
        self.0.insert(trial, parked);
    }

    pub(crate) fn remove(&mut self, trial: TrialId) -> Option<Arc<Parked>> {
        self.0.remove(&trial)
    }
}
