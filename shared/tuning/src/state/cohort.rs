//! Cohorts: the trials of one bracket that pass its rungs together, and where they stand.
//!
//! Where running trials are stopped, and where they are promoted asynchronously, each bracket has one cohort.
//! Synchronous: each round of a bracket has one. Trials are promoted among their cohort; a running trial is compared
//! with the arrivals at its level in all cohorts ([`State::rungs_at`]). A cohort records what has happened;
//! [`crate::decide`] decides what follows.

use hyperband::plan::BracketPlan;
use hyperband::promotion::{Passage, allowed, jobs_needed};
use serde::{Deserialize, Serialize};

use super::{Rung, State};
use crate::definition::{Definition, Scheduling};
use crate::epochs::Epochs;
use crate::ids::{BracketId, CohortId, Place, RungId, count};

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
        let rungs = definition.plan().rung_count(id.bracket.index());
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

impl State {
    /// Returns a rung of a cohort; `None` before the first trial of the cohort.
    pub fn rung(&self, place: Place) -> Option<&Rung> {
        self.cohort(place.cohort)?.rung(place.rung)
    }

    /// Returns the rungs at `level` of all cohorts, in the order in which the cohorts were made.
    pub fn rungs_at<'a>(
        &'a self,
        definition: &'a Definition,
        level: Epochs,
    ) -> impl Iterator<Item = &'a Rung> + use<'a> {
        self.cohorts.iter().flat_map(move |cohort| {
            let here = move |number| definition.level(cohort.id.bracket, number) == level;
            cohort.rungs().filter(move |(number, _)| here(*number)).map(|(_, rung)| rung)
        })
    }

    /// Returns a cohort; `None` before its first trial.
    pub fn cohort(&self, id: CohortId) -> Option<&Cohort> {
        self.cohorts.iter().find(|cohort| cohort.id == id)
    }

    /// Returns a cohort, which is made if it has no trial yet.
    pub(super) fn cohort_mut(&mut self, definition: &Definition, id: CohortId) -> Option<&mut Cohort> {
        if self.cohort(id).is_none() {
            self.cohorts.push(Cohort::new(definition, id));
        }
        self.cohorts.iter_mut().find(|cohort| cohort.id == id)
    }

    /// Changes a rung of a cohort.
    pub(super) fn with_rung(
        &mut self,
        definition: &Definition,
        place: Place,
        change: impl FnOnce(&mut Rung),
    ) {
        let cohort = self.cohort_mut(definition, place.cohort);
        if let Some(rung) = cohort.and_then(|cohort| cohort.rungs.get_mut(place.rung.index())) {
            change(rung);
        }
    }

    /// Returns the cohort that the next new trial of a bracket joins: where rungs close, that of a new round when the
    /// last is full.
    pub fn next_cohort(&self, definition: &Definition, bracket: BracketId) -> CohortId {
        let joined = self.joined.get(bracket.index()).copied().unwrap_or(0);
        let round = match definition.promotes() {
            Some(Scheduling::Synchronous) => joined.checked_div(slots(definition, bracket)).unwrap_or(0),
            Some(Scheduling::Asynchronous) | None => 0,
        };
        CohortId { bracket, round }
    }

    /// Returns the arrivals and promotions at a rung of a bracket, summed over all rounds.
    pub fn rung_totals(&self, bracket: BracketId, rung: RungId) -> (u32, u32) {
        let past = self.past.get(bracket.index()).and_then(|rungs| rungs.get(rung.index()));
        let of_bracket = self.cohorts.iter().filter(|cohort| cohort.id.bracket == bracket);
        let open = of_bracket.filter_map(|cohort| cohort.rung(rung));
        past.into_iter().chain(open).fold((0, 0), |(arrived, continued): (u32, u32), rung| {
            (arrived.saturating_add(rung.arrived()), continued.saturating_add(rung.continued))
        })
    }

    /// Returns how many trials of a bracket wait at a rung.
    pub fn waiting_at(&self, bracket: BracketId, rung: RungId) -> u32 {
        let of_bracket = self.cohorts.iter().filter(|cohort| cohort.id.bracket == bracket);
        let waiting = of_bracket.filter_map(|cohort| cohort.rung(rung)).map(|rung| rung.waiting.len());
        count(waiting.sum())
    }

    /// Removes the cohort of a full round whose trials are all finished, and adds its rungs to those of past rounds.
    pub(super) fn close_cohort(&mut self, definition: &Definition, id: CohortId) {
        // Trials can always join the only cohort of a bracket whose rungs do not close.
        if definition.promotes() != Some(Scheduling::Synchronous) {
            return;
        }
        let live = self.trials.values().any(|trial| trial.cohort() == id)
            || self.waiting.values().any(|trial| trial.cohort() == id);
        let full = |cohort: &Cohort| cohort.id == id && cohort.joined >= slots(definition, id.bracket);
        let Some(index) = self.cohorts.iter().position(full).filter(|_| !live) else { return };
        let over = self.cohorts.remove(index);
        self.past.resize_with(self.joined.len(), Vec::new);
        let Some(past) = self.past.get_mut(id.bracket.index()) else { return };
        past.resize_with(over.rungs.len(), Rung::default);
        for (past, rung) in past.iter_mut().zip(over.rungs) {
            past.add_continued(rung.continued);
            rung.arrivals.into_iter().for_each(|arrival| past.arrive(definition.direction(), arrival));
        }
    }
}

/// Returns the trials of one round of a bracket.
fn slots(definition: &Definition, bracket: BracketId) -> u32 {
    definition.plan().brackets().get(bracket.index()).map_or(1, BracketPlan::trials)
}
