//! Cohorts: the trials of one bracket that are promoted among each other, and where they stand.
//!
//! Asynchronous: one cohort for each bracket, for ever. Synchronous: one for each round of a bracket. Holds what has
//! happened; what follows from it is decided in [`crate::decide`].

use hyperband::promotion::{Passage, allowed, jobs_owed};
use hyperband::ranking::Direction;
use serde::{Deserialize, Serialize};

use super::{RungState, State, Trial};
use crate::definition::{Definition, Scheduling};

/// A trial and its value at a rung; `None` = it failed, or not a number.
pub type Arrival = (u32, Option<f64>);

/// Trials that are promoted among each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cohort {
    /// Their bracket.
    pub bracket: u32,
    /// The round of it.
    pub round: u32,
    /// Trials that have joined.
    pub joined: u32,
    /// What has ended at each rung but the last: arrivals with their values (`None` = failed, or not a number), and how
    /// many were promoted.
    pub rungs: Vec<RungState>,
    /// Those of the arrivals at each rung that wait there.
    pub waiting: Vec<RungState>,
}

impl Cohort {
    /// A cohort that nobody has joined.
    pub fn new(definition: &Definition, bracket: u32, round: u32) -> Self {
        let plan = definition.plan();
        let rungs = usize::try_from(bracket).ok().and_then(|index| plan.brackets().get(index));
        let rungs = rungs.map_or(1, |bracket| bracket.rungs().len());
        let empty = vec![RungState::default(); rungs];
        Self { bracket, round, joined: 0, rungs: empty.clone(), waiting: empty }
    }

    /// What has become of its trials at each rung.
    pub fn passages(&self) -> Vec<Passage> {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let of = |(rung, waiting): (&RungState, &RungState)| {
            // Neither promoted nor waiting: it failed, or was left out, and can never go on.
            let over = count(rung.arrivals.len()).saturating_sub(rung.went_on);
            let failed = over.saturating_sub(count(waiting.arrivals.len()));
            Passage { failed, promoted: rung.went_on }
        };
        self.rungs.iter().zip(&self.waiting).map(of).collect()
    }

    /// Jobs still needed for its promotions, at most, if `more` trials join.
    pub fn jobs_owed(&self, eta: u32, more: u32) -> u32 {
        jobs_owed(self.joined.saturating_add(more), eta, &self.passages())
    }

    /// The same if one more were promoted from `rung`.
    pub fn jobs_owed_after(&self, eta: u32, rung: u32) -> u32 {
        let mut passages = self.passages();
        if let Some(passage) = usize::try_from(rung).ok().and_then(|index| passages.get_mut(index)) {
            passage.promoted = passage.promoted.saturating_add(1);
        }
        jobs_owed(self.joined, eta, &passages)
    }

    /// The best of those that wait at a rung, and the worst.
    pub fn waiting_at(&self, rung: u32) -> Option<(Arrival, Arrival)> {
        let waiting = &self.waiting.get(usize::try_from(rung).ok()?)?.arrivals;
        waiting.first().copied().zip(waiting.last().copied())
    }

    pub(super) fn wait(&mut self, direction: Direction, rung: u32, trial: u32, value: Option<f64>) {
        if let Some(waiting) = usize::try_from(rung).ok().and_then(|index| self.waiting.get_mut(index)) {
            waiting.arrive(direction, trial, value, false);
        }
    }

    pub(super) fn wait_no_more(&mut self, rung: u32, trial: u32) {
        if let Some(waiting) = usize::try_from(rung).ok().and_then(|index| self.waiting.get_mut(index)) {
            waiting.arrivals.retain(|(other, _)| *other != trial);
        }
    }

    /// The first rung that has promoted more than it ever may. (Where rungs do not close, one that comes late may be
    /// among the best of those that have ended although as many as may go on have gone before: it goes on, too.)
    pub(crate) fn overfull(&self, definition: &Definition) -> Option<u32> {
        if definition.promotes() != Some(Scheduling::Synchronous) {
            return None;
        }
        let eta = definition.plan().eta();
        let mut rungs = (0_u32..).zip(&self.rungs);
        rungs
            .find(|(rung, state)| state.went_on > allowed(self.joined, 0, eta, *rung, true))
            .map(|(rung, _)| rung)
    }
}

impl State {
    /// The cohort of round `round` of a bracket.
    pub fn cohort(&self, bracket: u32, round: u32) -> Option<&Cohort> {
        self.cohorts.iter().find(|cohort| cohort.bracket == bracket && cohort.round == round)
    }

    pub(crate) fn cohort_mut(
        &mut self,
        definition: &Definition,
        bracket: u32,
        round: u32,
    ) -> Option<&mut Cohort> {
        let found = self.cohorts.iter().position(|cohort| cohort.bracket == bracket && cohort.round == round);
        let index = found.unwrap_or_else(|| {
            self.cohorts.push(Cohort::new(definition, bracket, round));
            self.cohorts.len().saturating_sub(1)
        });
        self.cohorts.get_mut(index)
    }

    /// The round that the next new trial of a bracket joins: where rungs close, a new one when the last is full.
    pub fn next_round(&self, definition: &Definition, bracket: u32) -> u32 {
        if definition.promotes() != Some(Scheduling::Synchronous) {
            return 0;
        }
        let plan = definition.plan();
        let index = usize::try_from(bracket).unwrap_or(usize::MAX);
        let slots = plan.brackets().get(index).map_or(1, hyperband::plan::BracketPlan::trials);
        self.joined.get(index).and_then(|joined| joined.checked_div(slots)).unwrap_or(0)
    }

    /// Arrivals and promotions at a rung of a bracket, those of all rounds together.
    pub fn rung_totals(&self, bracket: usize, rung: usize) -> (usize, u32) {
        let kept = self.rungs.get(bracket).and_then(|rungs| rungs.get(rung));
        let of_bracket = self.cohorts.iter().filter(|cohort| usize::try_from(cohort.bracket) == Ok(bracket));
        let open = of_bracket.filter_map(|cohort| cohort.rungs.get(rung));
        kept.into_iter().chain(open).fold((0, 0), |(arrived, went_on), rung| {
            (arrived.saturating_add(rung.arrivals.len()), went_on.saturating_add(rung.went_on))
        })
    }

    /// Trials of a bracket that wait at a rung to be promoted.
    pub fn waiting_at(&self, bracket: usize, rung: usize) -> u32 {
        let there = |trial: &&Trial| {
            usize::try_from(trial.bracket) == Ok(bracket) && usize::try_from(trial.next_rung) == Ok(rung)
        };
        u32::try_from(self.waiting.values().filter(there).count()).unwrap_or(u32::MAX)
    }

    /// Takes a cohort whose trials are all over out of the state, and counts it among what is past.
    pub(super) fn close_cohort(&mut self, definition: &Definition, bracket: u32, round: u32) {
        let plan = definition.plan();
        let index = usize::try_from(bracket).unwrap_or(usize::MAX);
        let slots = plan.brackets().get(index).map_or(u32::MAX, hyperband::plan::BracketPlan::trials);
        let mut members = self.trials.values().chain(self.waiting.values());
        let live = members.any(|trial| trial.bracket == bracket && trial.round == round);
        let full = self.cohort(bracket, round).is_some_and(|cohort| cohort.joined >= slots);
        // The one cohort of an asynchronous bracket is never full: others may always join.
        if live || !full || definition.promotes() != Some(Scheduling::Synchronous) {
            return;
        }
        let direction = definition.direction();
        let Some(at) = self.cohorts.iter().position(|c| c.bracket == bracket && c.round == round) else {
            return;
        };
        let past = self.cohorts.remove(at);
        let Some(kept) = self.rungs.get_mut(index) else { return };
        for (kept, rung) in kept.iter_mut().zip(past.rungs) {
            kept.went_on = kept.went_on.saturating_add(rung.went_on);
            for (trial, value) in rung.arrivals {
                kept.arrive(direction, trial, value, false);
            }
        }
    }
}
