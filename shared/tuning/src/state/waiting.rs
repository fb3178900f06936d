//! Trials that wait at a rung. Most of them are never promoted, so the state holds only what decides on a promotion.
//! Configuration and curve are parked: the row of the trial's last job has them, and a promotion brings them back.

use std::collections::BTreeMap;
use std::sync::Arc;

use search::Configuration;
use serde::{Deserialize, Serialize};

use super::{State, Trial};
use crate::conclude;
use crate::epochs::Epochs;
use crate::fact::JobKey;
use crate::ids::{BracketId, CohortId, Place, RungId, TrialId};
use crate::ruling::Ruling;
use crate::summary::JobSummary;
use crate::time::{Millis, Time};

/// A trial that waits at a rung to be promoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Its bracket.
    pub bracket: BracketId,
    /// The round of its bracket, where rungs close.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub round: u32,
    /// The rung where it waits.
    #[serde(default, skip_serializing_if = "super::is_first")]
    pub rung: RungId,
    /// The epoch with which it arrived there.
    pub resource: Epochs,
    /// Attempts ordered so far.
    pub attempts: u32,
    /// See [`Trial::last_attempt_rung`].
    #[serde(default, skip_serializing_if = "super::is_first")]
    pub last_attempt_rung: RungId,
    /// See [`Trial::epoch_ms`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_ms: Option<Millis>,
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

    pub(super) fn remove(&mut self, trial: TrialId) -> Option<Arc<Parked>> {
        self.0.remove(&trial)
    }
}

impl State {
    /// Returns the last job of the trial that `ruling` promotes, if that trial is parked and not at hand. The row of the
    /// job has what [`State::bring`] needs.
    pub fn lacks(&self, ruling: &Ruling) -> Option<JobKey> {
        let Ruling::TrialPromoted { trial, .. } = ruling else { return None };
        let waiting = self.waiting.get(trial).filter(|_| self.parked.get(*trial).is_none())?;
        Some(waiting.last_job(*trial))
    }

    /// Returns the last job and the parked part of the trial that `ruling` makes wait without a job of its own, and that
    /// still waits. The row of that job must get the lines that arrived late.
    pub fn parked_late(&self, ruling: &Ruling) -> Option<(JobKey, &Parked)> {
        let Ruling::RungReached { job: None, trial, rung, .. } = ruling else { return None };
        let waiting = self.waiting.get(trial).filter(|waiting| waiting.rung == *rung)?;
        Some((waiting.last_job(*trial), self.parked.get(*trial)?))
    }

    /// Brings back the parked part of a waiting trial.
    pub fn bring(&mut self, trial: TrialId, parked: Arc<Parked>) {
        if self.waiting.contains_key(&trial) {
            self.parked.0.insert(trial, parked);
        }
    }

    /// Parks a trial that has reached the level of its rung with `resource` epochs.
    pub(super) fn park(&mut self, number: TrialId, trial: Trial, resource: Epochs) {
        let Trial { bracket, round, next_rung: rung, attempts, last_attempt_rung, epoch_ms, .. } = trial;
        let waiting = Waiting { bracket, round, rung, resource, attempts, last_attempt_rung, epoch_ms };
        self.waiting.insert(number, waiting);
        let curve = conclude::thinned(&trial).into_iter().collect();
        let parked = Parked { configuration: trial.configuration, curve };
        self.parked.0.insert(number, Arc::new(parked));
    }
}

impl Trial {
    /// Returns a waiting trial that is promoted `now`. It has no job yet.
    pub(super) fn promoted(waiting: Waiting, parked: &Parked, now: Time) -> Self {
        let Waiting { bracket, round, rung, attempts, last_attempt_rung, epoch_ms, .. } = waiting;
        Self {
            next_rung: rung.next(),
            curve: parked.curve.clone(),
            attempts,
            last_attempt_rung,
            past_attempts: attempts,
            epoch_ms,
            retry_at: Some(now),
            ..Self::new(bracket, round, &parked.configuration)
        }
    }
}
