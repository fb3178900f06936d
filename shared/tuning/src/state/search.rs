//! The search: which trials compete with each other, which continue, and what the sampler knows.

use std::collections::BTreeMap;

use hyperband::plan::BracketPlan;
use search::{Configuration, History, Origin};
use serde::{Deserialize, Serialize};

use crate::definition::{Definition, Scheduling};
use crate::scheduler::{Cohort, ParkedTrials, Rung, Waiting};
use crate::trial::live::LiveTrials;
use crate::unit::epochs::Epochs;
use crate::unit::ids::{BracketId, CohortId, Place, RungId, TrialId, count};

/// Number of equal values that shows that the objective does not change.
const MANY_VALUES: u32 = 10;

/// Who competes with whom, and what the sampler knows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The number of the next new trial.
    pub next_trial: TrialId,
    /// A new trial that waits for instances or money, its configuration and its origin.
    pub drawn: Option<(TrialId, Configuration, Option<Origin>)>,
    /// How many trials joined each bracket.
    pub joined: Vec<u32>,
    /// The trials that are compared with each other, and their rungs.
    pub cohorts: Vec<Cohort>,
    /// The rungs of the cohorts whose trials are all finished, summed by bracket.
    pub past: Vec<Vec<Rung>>,
    /// Trials that have reached the level of their rung and wait there to be promoted.
    pub waiting: BTreeMap<TrialId, Waiting>,
    /// Their configurations and curves, as far as they are at hand.
    #[serde(skip)]
    pub parked: ParkedTrials,
    /// What the sampler knows of trials that have ended or wait; empty unless the sampler learns.
    pub history: History,
    /// The best value seen at any epoch.
    pub incumbent: Option<Incumbent>,
    /// Trials finished since the incumbent last changed.
    pub since_improved: u32,
    /// The first finite value of the tuning, and how many values were equal to it before another one; `None` after that,
    /// and before the first value.
    pub equal_values: Option<(f64, u32)>,
}

/// The best value seen at any epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Incumbent {
    /// The value.
    pub value: f64,
    /// Its trial.
    pub trial: TrialId,
    /// Its epoch.
    pub resource: Epochs,
}

impl Search {
    pub(crate) fn new(definition: &Definition) -> Self {
        Self { joined: vec![0; definition.plan().brackets().len()], ..Self::default() }
    }

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
    pub(crate) fn cohort_mut(&mut self, definition: &Definition, id: CohortId) -> Option<&mut Cohort> {
        if self.cohort(id).is_none() {
            self.cohorts.push(Cohort::new(definition, id));
        }
        self.cohorts.iter_mut().find(|cohort| cohort.id == id)
    }

    pub(crate) fn with_rung(
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

    /// Counts values that are equal to all earlier ones.
    pub(crate) fn note_equal(&mut self, value: f64) {
        self.equal_values = match self.equal_values {
            None if self.incumbent.is_none() => Some((value, 1)),
            Some((known, count)) if known.to_bits() == value.to_bits() => {
                Some((known, count.saturating_add(1)))
            }
            Some(_) | None => None,
        };
    }

    /// Returns whether many values of several trials are all equal.
    pub fn is_constant(&self) -> bool {
        self.next_trial > TrialId(1) && self.equal_values.is_some_and(|(_, count)| count >= MANY_VALUES)
    }

    /// Removes the cohort of a full round whose trials are all finished, and adds its rungs to those of past rounds.
    pub(crate) fn close_cohort(&mut self, definition: &Definition, trials: &LiveTrials, id: CohortId) {
        // Trials can always join the only cohort of a bracket whose rungs do not close.
        if definition.promotes() != Some(Scheduling::Synchronous) {
            return;
        }
        let live = trials.values().any(|trial| trial.place().is_some_and(|place| place.cohort == id))
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
