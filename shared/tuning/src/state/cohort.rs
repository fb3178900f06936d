//! Cohorts: the trials of one bracket that compete for promotion, and where they stand.
//!
//! Asynchronous: each bracket has one cohort. Synchronous: each round of a bracket has one. A cohort records what has
//! happened; [`crate::decide`] decides what follows.

use hyperband::promotion::{Passage, allowed, jobs_needed};
use hyperband::ranking::Direction;
use serde::{Deserialize, Serialize};

use super::{RungState, State, Trial};
use crate::definition::{Definition, Scheduling};

/// A trial and its value at a rung; `None` = it failed, or the value is not a number.
pub type Arrival = (u32, Option<f64>);

/// Trials that compete for promotion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cohort {
    /// Their bracket.
    pub bracket: u32,
    /// The round of the bracket; 0 where rungs do not close.
    pub round: u32,
    /// How many trials have joined.
    pub joined: u32,
    /// The arrivals at each rung, and how many of them were promoted.
    pub rungs: Vec<RungState>,
    /// The arrivals at each rung that wait there.
    pub waiting: Vec<RungState>,
}

impl Cohort {
    /// Returns a cohort without trials.
    pub fn new(definition: &Definition, bracket: u32, round: u32) -> Self {
        let plan = definition.plan();
        let rungs = usize::try_from(bracket).ok().and_then(|index| plan.brackets().get(index));
        let rungs = rungs.map_or(1, |bracket| bracket.rungs().len());
        let empty = vec![RungState::default(); rungs];
        Self { bracket, round, joined: 0, rungs: empty.clone(), waiting: empty }
    }

    /// Returns how many trials failed and how many were promoted at each rung.
    pub fn passages(&self) -> Vec<Passage> {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let of = |(rung, waiting): (&RungState, &RungState)| {
            // An arrival that was neither promoted nor waits has failed or was ruled out, and is never promoted.
            let over = count(rung.arrivals.len()).saturating_sub(rung.continued);
            let failed = over.saturating_sub(count(waiting.arrivals.len()));
            Passage { failed, promoted: rung.continued }
        };
        self.rungs.iter().zip(&self.waiting).map(of).collect()
    }

    /// Returns the most jobs that its promotions still need if `more` trials join.
    pub fn jobs_needed(&self, eta: u32, more: u32) -> u32 {
        jobs_needed(self.joined.saturating_add(more), eta, &self.passages())
    }

    /// Like [`Cohort::jobs_needed`], but as if one more trial were promoted from `rung`.
    pub fn jobs_needed_after(&self, eta: u32, rung: u32) -> u32 {
        let mut passages = self.passages();
        if let Some(passage) = usize::try_from(rung).ok().and_then(|index| passages.get_mut(index)) {
            passage.promoted = passage.promoted.saturating_add(1);
        }
        jobs_needed(self.joined, eta, &passages)
    }

    /// Returns the best and the worst of the trials that wait at a rung.
    pub fn waiting_at(&self, rung: u32) -> Option<(Arrival, Arrival)> {
        let waiting = &self.waiting.get(usize::try_from(rung).ok()?)?.arrivals;
        waiting.first().copied().zip(waiting.last().copied())
    }

    pub(super) fn add_waiting(&mut self, direction: Direction, rung: u32, trial: u32, value: Option<f64>) {
        if let Some(waiting) = usize::try_from(rung).ok().and_then(|index| self.waiting.get_mut(index)) {
            waiting.arrive(direction, trial, value, false);
        }
    }

    pub(super) fn remove_waiting(&mut self, rung: u32, trial: u32) {
        if let Some(waiting) = usize::try_from(rung).ok().and_then(|index| self.waiting.get_mut(index)) {
            waiting.arrivals.retain(|(other, _)| *other != trial);
        }
    }

    /// Returns the first rung that has promoted more trials than it ever may.
    ///
    /// Synchronous only: an asynchronous rung may promote a late trial that is among the best of those that have
    /// ended, although the planned number was promoted before.
    pub(crate) fn overfull(&self, definition: &Definition) -> Option<u32> {
        if definition.promotes() != Some(Scheduling::Synchronous) {
            return None;
        }
        let eta = definition.plan().eta();
        let mut rungs = (0_u32..).zip(&self.rungs);
        rungs
            .find(|(rung, state)| state.continued > allowed(self.joined, 0, eta, *rung, true))
            .map(|(rung, _)| rung)
    }
}

impl State {
    /// Returns the cohort of round `round` of a bracket.
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

    /// Returns the round that the next new trial of a bracket joins: where rungs close, a new one when the last is
    /// full.
    pub fn next_round(&self, definition: &Definition, bracket: u32) -> u32 {
        if definition.promotes() != Some(Scheduling::Synchronous) {
            return 0;
        }
        let plan = definition.plan();
        let index = usize::try_from(bracket).unwrap_or(usize::MAX);
        let slots = plan.brackets().get(index).map_or(1, hyperband::plan::BracketPlan::trials);
        self.joined.get(index).and_then(|joined| joined.checked_div(slots)).unwrap_or(0)
    }

    /// Returns the arrivals and promotions at a rung of a bracket, summed over all rounds.
    pub fn rung_totals(&self, bracket: usize, rung: usize) -> (usize, u32) {
        let kept = self.rungs.get(bracket).and_then(|rungs| rungs.get(rung));
        let of_bracket = self.cohorts.iter().filter(|cohort| usize::try_from(cohort.bracket) == Ok(bracket));
        let open = of_bracket.filter_map(|cohort| cohort.rungs.get(rung));
        kept.into_iter().chain(open).fold((0, 0), |(arrived, continued), rung| {
            (arrived.saturating_add(rung.arrivals.len()), continued.saturating_add(rung.continued))
        })
    }

    /// Returns how many trials of a bracket wait at a rung.
    pub fn waiting_at(&self, bracket: usize, rung: usize) -> u32 {
        let there = |trial: &&Trial| {
            usize::try_from(trial.bracket) == Ok(bracket) && usize::try_from(trial.next_rung) == Ok(rung)
        };
        u32::try_from(self.waiting.values().filter(there).count()).unwrap_or(u32::MAX)
    }

    /// Removes a cohort whose trials are all finished, and adds its counts to `rungs`.
    pub(super) fn close_cohort(&mut self, definition: &Definition, bracket: u32, round: u32) {
        let plan = definition.plan();
        let index = usize::try_from(bracket).unwrap_or(usize::MAX);
        let slots = plan.brackets().get(index).map_or(u32::MAX, hyperband::plan::BracketPlan::trials);
        let mut members = self.trials.values().chain(self.waiting.values());
        let live = members.any(|trial| trial.bracket == bracket && trial.round == round);
        let full = self.cohort(bracket, round).is_some_and(|cohort| cohort.joined >= slots);
        // The only cohort of an asynchronous bracket is never full: trials can always join.
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
            kept.continued = kept.continued.saturating_add(rung.continued);
            for (trial, value) in rung.arrivals {
                kept.arrive(direction, trial, value, false);
            }
        }
    }
}
