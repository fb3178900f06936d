//! Cohorts: the trials of one bracket that pass its rungs together, and their positions.
//!
//! If running trials are stopped, or trials are promoted asynchronously, each bracket has one cohort. With synchronous
//! promotion, each round of a bracket has one cohort. A promotion compares the trials of one cohort; a running trial is
//! compared with the arrivals at its level in all cohorts ([`rungs_at`](crate::state::search::Search::rungs_at)). A cohort
//! records results; [`crate::decide`] makes the decisions.

use hyperband::promotion::{Passage, allowed, jobs_needed};
use serde::{Deserialize, Serialize};

use crate::definition::{Definition, Scheduling};
use crate::scheduler::Rung;
use crate::unit::ids::{CohortId, RungId, count};

/// Trials that pass the rungs of one bracket together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cohort {
    /// The bracket and the round of the trials.
    pub id: CohortId,
    /// How many trials have joined.
    pub joined: u32,
    /// Its rungs, lowest first.
    pub rungs: Vec<Rung>,
}

impl Cohort {
    /// Returns a cohort without trials.
    pub fn new(definition: &Definition, id: CohortId) -> Self {
        let rungs = definition.rung_count(id.bracket);
        Self { id, joined: 0, rungs: vec![Rung::default(); rungs] }
    }

    /// Returns a rung.
    pub fn rung(&self, rung: RungId) -> Option<&Rung> {
        self.rungs.get(rung.index())
    }

    /// Returns the rungs with their numbers, lowest first.
    pub fn rungs(&self) -> impl DoubleEndedIterator<Item = (RungId, &Rung)> {
        self.rungs.iter().enumerate().map(|(index, rung)| (RungId::at(index), rung))
    }

    /// Returns how many trials failed and how many were promoted at each rung.
    pub fn passages(&self) -> Vec<Passage> {
        let of = |rung: &Rung| {
            // An arrival that was neither promoted nor waits has failed or was ruled out, and is never promoted.
            let over = rung.arrived().saturating_sub(rung.continued);
            Passage { failed: over.saturating_sub(count(rung.waiting.len())), promoted: rung.continued }
        };
        self.rungs.iter().map(of).collect()
    }

    /// Returns the most jobs that its promotions still need if `more` trials join.
    pub fn jobs_needed(&self, eta: u32, more: u32) -> u32 {
        jobs_needed(self.joined.saturating_add(more), eta, &self.passages())
    }

    /// Like [`Cohort::jobs_needed`], but as if one more trial were promoted from `rung`.
    pub fn jobs_needed_after(&self, eta: u32, rung: RungId) -> u32 {
        let mut passages = self.passages();
        if let Some(passage) = passages.get_mut(rung.index()) {
            passage.promoted = passage.promoted.saturating_add(1);
        }
        jobs_needed(self.joined, eta, &passages)
    }

    /// Returns the first rung that has promoted more trials than it ever may.
    ///
    /// Synchronous only: an asynchronous rung may promote a late trial that is among the best of those that have
    /// ended, although the planned number was promoted before.
    pub(crate) fn overfull(&self, definition: &Definition) -> Option<RungId> {
        if definition.promotes() != Some(Scheduling::Synchronous) {
            return None;
        }
        let eta = definition.plan().eta();
        let most = |rung: RungId| allowed(self.joined, 0, eta, rung.0, true);
        self.rungs().find(|(number, rung)| rung.continued > most(*number)).map(|(number, _)| number)
    }
}
