//! The sampler's view of the trials: the history of ended and waiting trials, and the running trials.
//!
//! Only [`search::SamplerKind::Model`] uses it, so the state keeps no history with other samplers.

use std::collections::BTreeMap;

use hyperband::ranking::{Direction, improves};
use search::history::EARLY_EPOCHS;
use search::{History, Observation, Place, Suggestion, View};

use crate::definition::Definition;
use crate::state::State;
use crate::state::front::instance_ms;
use crate::state::search::Search;
use crate::trial::Trial;
use crate::trial::timing::Timings;
use crate::unit::ids::{DefinitionId, TrialId};

impl State {
    /// Returns the configuration of a new trial, and how it was chosen.
    pub fn draw(&self, definition: &Definition, trial: TrialId) -> Suggestion {
        let maximize = definition.direction() == Direction::Maximize;
        let running =
            if learns(definition) { self.running_observations(definition) } else { BTreeMap::new() };
        let of = definition.definition_of(trial);
        let running =
            running.into_iter().filter(|(number, _)| definition.definition_of(TrialId(*number)) == of);
        let running = running.collect();
        let view = View::new(self.search.history_of(of), &running, maximize)
            .with_initial(&definition.initial)
            .with_parents(definition.warm_start.as_ref())
            .with_tolerance(definition.best_buy.map(|best_buy| best_buy.tolerance))
            .with_size_trials(&self.results.trials_by_size);
        // Two definitions with equal spaces must not draw the same configurations.
        let seed = definition.seed.wrapping_add(u64::from(of.0));
        let (space, index) = (definition.space_of(of), definition.index_of(trial));
        let drawn = search::suggest(space, definition.sampler, seed, index, &view);
        match definition.initial.get(trial.index()) {
            Some(given) => drawn.with(given),
            None => drawn,
        }
    }

    fn running_observations(&self, definition: &Definition) -> BTreeMap<u32, Observation> {
        let searching = self.trials.iter().filter(|(_, trial)| trial.refit().is_none());
        searching
            .filter_map(|(number, trial)| {
                let timings = &self.results.timings;
                Some((number.0, self.search.observation(definition, timings, *number, trial)?))
            })
            .collect()
    }
}

impl Search {
    /// Returns what is known of a live trial; `None` if its configuration has no place in the space.
    fn observation(
        &self,
        definition: &Definition,
        timings: &Timings,
        number: TrialId,
        trial: &Trial,
    ) -> Option<Observation> {
        let of = definition.definition_of(number);
        let place = Place::of(definition.space_of(of), &trial.configuration).ok()?;
        let known = self.history_of(of).get(number.0);
        let values = trial.curve.values().copied().flatten().chain(known.and_then(|known| known.best));
        let better = |best: f64, value: f64| {
            if improves(definition.direction(), value, best) { value } else { best }
        };
        let early = trial.curve.values().map_while(|value| *value).take(EARLY_EPOCHS).collect();
        let by_model = trial.by_model || known.is_some_and(|known| known.by_model);
        let cost = definition.best_buy.and_then(|_| {
            let (size, time) = (trial.size(definition), trial.time(definition)?);
            Some(instance_ms(definition, timings, size, time))
        });
        let cost = cost.or_else(|| known.and_then(|known| known.cost));
        Some(Observation { place, best: values.reduce(better), early, cost, by_model })
    }

    /// Keeps what is known of a trial that ends or begins to wait. Without `counts`, its values are no results: it failed
    /// or diverged.
    pub(crate) fn remember(
        &mut self,
        definition: &Definition,
        timings: &Timings,
        (number, trial): (TrialId, &Trial),
        counts: bool,
    ) {
        if !learns(definition) {
            return;
        }
        if let Some(mut observation) = self.observation(definition, timings, number, trial) {
            observation.best = observation.best.filter(|_| counts);
            // A failure is cheap.
            observation.cost = observation.cost.filter(|_| counts);
            let maximize = definition.direction() == Direction::Maximize;
            self.history_mut(definition.definition_of(number)).record(number.0, observation, maximize);
        }
    }

    /// Returns what the sampler knows, of each training job definition.
    pub fn histories(&self) -> impl Iterator<Item = &History> {
        std::iter::once(&self.history).chain(&self.other_histories)
    }

    /// Returns what the sampler knows of the trials of a training job definition.
    pub fn history_of(&self, of: DefinitionId) -> &History {
        self.histories().nth(of.index()).unwrap_or(&self.history)
    }

    fn history_mut(&mut self, of: DefinitionId) -> &mut History {
        let other = of.index().checked_sub(1).and_then(|other| self.other_histories.get_mut(other));
        other.unwrap_or(&mut self.history)
    }
}

fn learns(definition: &Definition) -> bool {
    definition.sampler.learns()
}
