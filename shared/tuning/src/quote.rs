//! Quotes: the limits under which a job would start now, on which instances, and the most that it can cost.

use crate::decide::spot;
use crate::definition::{Definition, JobLimits};
use crate::epochs::Epochs;
use crate::ids::{BracketId, ChoiceId, RungId};
use crate::limits::CUT_LIMIT_FACTOR;
use crate::money::MicroUsd;
use crate::runtime::{epochs_of, runtime_seconds};
use crate::state::{State, Trial};

/// What a job would get if it started now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quote {
    /// The limits to send.
    pub(crate) limits: JobLimits,
    /// The instances.
    pub(crate) instances: ChoiceId,
    /// The most that the job can cost; 0 for an unknown price, which no capped tuning has.
    pub(crate) worst_case: MicroUsd,
}

/// Returns the most that a job can cost, with the margin that bills above reservations have shown to be necessary.
pub(crate) fn worst_case(
    definition: &Definition,
    state: &State,
    limits: JobLimits,
    instances: ChoiceId,
) -> MicroUsd {
    let bare = definition.worst_case(limits, instances).unwrap_or(MicroUsd::ZERO);
    bare.plus(state.ledger.margin)
}

impl Quote {
    /// Quotes a job with these limits, on the instances that are asked next.
    pub(crate) fn with(definition: &Definition, state: &State, limits: JobLimits) -> Self {
        let instances = spot::choice(definition, state);
        Self { limits, instances, worst_case: worst_case(definition, state, limits, instances) }
    }

    /// Quotes a job that trains `epochs` epochs.
    pub(crate) fn of_epochs(definition: &Definition, state: &State, epochs: Epochs) -> Self {
        let seconds = runtime_seconds(definition, state, epochs);
        Self::with(definition, state, definition.limits_for(seconds))
    }

    /// Quotes the longest job of the tuning.
    pub(crate) fn of_longest(definition: &Definition, state: &State) -> Self {
        Self::of_epochs(definition, state, definition.largest_resource())
    }

    /// Quotes the job for a rung of a bracket.
    pub(crate) fn of_rung(definition: &Definition, state: &State, bracket: BracketId, rung: RungId) -> Self {
        Self::of_epochs(definition, state, epochs_of(definition, bracket, rung))
    }

    /// Quotes the next attempt of a trial.
    pub(crate) fn of_next_attempt(definition: &Definition, state: &State, trial: &Trial) -> Self {
        let epochs =
            trial.refit.unwrap_or_else(|| epochs_of(definition, trial.bracket, trial.start_rung(definition)));
        Self::of_attempt(definition, state, trial, epochs, trial.on_demand)
    }

    /// Quotes the attempt on demand that replaces a spot job of the trial for `rung`.
    pub(crate) fn of_fallback(definition: &Definition, state: &State, trial: &Trial, rung: RungId) -> Self {
        Self::of_attempt(definition, state, trial, epochs_of(definition, trial.bracket, rung), true)
    }

    fn of_attempt(
        definition: &Definition,
        state: &State,
        trial: &Trial,
        epochs: Epochs,
        on_demand: bool,
    ) -> Self {
        // A limit that ended the last job too early grows by a factor, so that all attempts together reserve little
        // more than the last one.
        let longer = trial.cut_limit.map_or(0, |cut| cut.saturating_mul(CUT_LIMIT_FACTOR));
        let seconds =
            runtime_seconds(definition, state, epochs).max(longer).min(definition.job.max_runtime_seconds);
        let limits =
            if on_demand { definition.limits_on_demand(seconds) } else { definition.limits_for(seconds) };
        Self::with(definition, state, limits)
    }
}
