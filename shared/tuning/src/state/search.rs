//! The search: which trials compete with each other, which continue, and what the sampler knows.

use std::collections::{BTreeMap, VecDeque};

use hyperband::ranking::improves;
use hyperband::rung::{EVIDENCE_MAX, predicts};
use search::{Configuration, History, Origin};
use serde::{Deserialize, Serialize};

use crate::definition::{Definition, Scheduling};
use crate::scheduler::{Cohort, ParkedTrials, Rung, Waiting};
use crate::trial::Trial;
use crate::trial::live::LiveTrials;
use crate::unit::epochs::Epochs;
use crate::unit::ids::{BracketId, CohortId, DefinitionId, Place, RungId, TrialId, count};

/// Number of equal values that shows that the objective does not change.
const MANY_VALUES: u32 = 10;

/// The number of best trials by which several training job definitions compete.
const LEADERS: usize = 10;
/// The least number of first trials of each training job definition: a strategy without brackets names none.
const LEAST_TRIALS: u32 = 5;

/// Who competes with whom, and what the sampler knows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// One more than the greatest number of a trial.
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
    /// What the sampler knows of trials that have ended or wait, of the first training job definition; empty unless the
    /// sampler learns.
    pub history: History,
    /// The same of the further training job definitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_histories: Vec<History>,
    /// The trials with the best values, the best first; empty unless there are several training job definitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaders: Vec<(TrialId, f64)>,
    /// The values of the latest trials that were judged at the last level, oldest first: at most [`EVIDENCE_MAX`] of each
    /// training job definition.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub passages: VecDeque<Passage>,
    /// The best value seen at any epoch.
    pub incumbent: Option<Incumbent>,
    /// Trials finished since the incumbent last changed.
    pub since_improved: u32,
    /// The first finite value of the tuning, and how many values were equal to it before another one; `None` after that,
    /// and before the first value.
    pub equal_values: Option<(f64, u32)>,
}

/// A trial that was judged at the last level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Passage {
    /// Its training job definition.
    pub of: DefinitionId,
    /// The levels at which it was judged, and its values there; the last one is the last level.
    pub values: Vec<(Epochs, f64)>,
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
        Self {
            joined: vec![0; definition.brackets().count()],
            other_histories: vec![History::default(); definition.others.len()],
            ..Self::default()
        }
    }

    /// Returns how many trials of a training job definition have started.
    pub fn started(&self, definition: &Definition, of: DefinitionId) -> u32 {
        let own = definition.brackets().zip(&self.joined);
        let own = own.filter(|(bracket, _)| definition.definition_of_bracket(*bracket) == of);
        own.map(|(_, joined)| *joined).fold(0, u32::saturating_add)
    }

    /// Returns how many trials have started.
    pub fn all_started(&self) -> u32 {
        self.joined.iter().copied().fold(0, u32::saturating_add)
    }

    /// Returns the number of the next new trial of a training job definition.
    pub fn next_trial_of(&self, definition: &Definition, of: DefinitionId) -> TrialId {
        definition.trial(of, self.started(definition, of))
    }

    /// Returns whether a trial has not started yet.
    pub fn is_new(&self, definition: &Definition, trial: TrialId) -> bool {
        trial >= self.next_trial_of(definition, definition.definition_of(trial))
    }

    /// Returns a rung of a cohort; `None` before the first trial of the cohort.
    pub fn rung(&self, place: Place) -> Option<&Rung> {
        self.cohort(place.cohort)?.rung(place.rung)
    }

    /// Returns the rungs at `level` of all cohorts of a training job definition, in the order in which the cohorts were
    /// made.
    pub fn rungs_at<'a>(
        &'a self,
        definition: &'a Definition,
        level: Epochs,
        of: DefinitionId,
    ) -> impl Iterator<Item = &'a Rung> + use<'a> {
        let own = move |cohort: &&Cohort| definition.definition_of_bracket(cohort.id.bracket) == of;
        self.cohorts.iter().filter(own).flat_map(move |cohort| {
            let here = move |number| definition.level(cohort.id.bracket, number) == level;
            cohort.rungs().filter(move |(number, _)| here(*number)).map(|(_, rung)| rung)
        })
    }

    /// Returns whether the values at a level predict those at the last level, by the latest trials of a training job
    /// definition.
    pub(crate) fn predicts(&self, definition: &Definition, level: Epochs, of: DefinitionId) -> bool {
        if !definition.plan().is_by_evidence() {
            return true;
        }
        let values = |passage: &Passage| {
            let here = passage.values.iter().find(|(at, _)| *at == level)?;
            Some((here.1, passage.values.last()?.1))
        };
        let own = self.passages.iter().filter(|passage| passage.of == of);
        predicts(&own.filter_map(values).collect::<Vec<_>>())
    }

    /// Records a trial that was judged at the last level.
    pub(crate) fn pass(&mut self, passage: Passage) {
        let mut own = self.passages.iter().enumerate().filter(|(_, other)| other.of == passage.of);
        if let Some((oldest, _)) = own.clone().nth(EVIDENCE_MAX - 1).and_then(|_| own.next()) {
            self.passages.remove(oldest);
        }
        self.passages.push_back(passage);
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
            Some(Scheduling::Synchronous) => joined.checked_div(definition.round_of(bracket)).unwrap_or(0),
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

    /// Records the best value of a trial that counts, where several training job definitions compete for the next trial.
    pub(crate) fn note_leader(&mut self, definition: &Definition, number: TrialId, trial: &Trial) {
        if !definition.has_definitions() || trial.refit().is_some() {
            return;
        }
        let direction = definition.direction();
        let known = self.leaders.iter().position(|(leader, _)| *leader == number);
        let known = known.map(|index| self.leaders.remove(index).1);
        let values = trial.curve.values().copied().flatten().chain(known);
        let better = |best, value| if improves(direction, value, best) { value } else { best };
        let Some(best) = values.reduce(better) else { return };
        let place = self.leaders.partition_point(|(_, value)| !improves(direction, best, *value));
        self.leaders.insert(place, (number, best));
        self.leaders.truncate(LEADERS);
    }

    /// Returns the training job definitions in the order in which they get the next trial.
    ///
    /// Each first gets as many trials as the first bracket has, so that its model knows something and its first
    /// promotions are known. Then the trials of each are in proportion to one plus the number of its trials among the
    /// best [`LEADERS`] of all: the chance that its next trial becomes one of the best, as in Threshold Ascent
    /// (Streeter and Smith 2006, section 3), with a least share instead of a confidence bound.
    pub(crate) fn by_promise(&self, definition: &Definition) -> Vec<DefinitionId> {
        let first = definition.round_of(BracketId(0)).max(LEAST_TRIALS);
        let key = |of: DefinitionId| {
            let started = self.started(definition, of);
            let leads = self.leaders.iter().filter(|(trial, _)| definition.definition_of(*trial) == of);
            let leads = count(leads.filter(|_| started >= first).count());
            (started, leads.saturating_add(1))
        };
        let mut all: Vec<_> = definition.definitions().map(|of| (key(of), of)).collect();
        // The ratio of trials to weights is compared by cross-multiplication.
        let product = |trials: u32, weight: u32| u64::from(trials).saturating_mul(u64::from(weight));
        all.sort_by(|((a, weight_a), _), ((b, weight_b), _)| {
            let by_share = || product(*a, *weight_b).cmp(&product(*b, *weight_a));
            (*a >= first).cmp(&(*b >= first)).then_with(by_share)
        });
        all.into_iter().map(|(_, of)| of).collect()
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
        let full = |cohort: &Cohort| cohort.id == id && cohort.joined >= definition.round_of(id.bracket);
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
