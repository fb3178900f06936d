//! Quotes: the limits under which a job would start now, on which instances, and the most that it can cost.

pub mod runtime;

use self::runtime::runtime;
use crate::definition::{Definition, JobLimits};
use crate::quote::runtime::{Runtime, epochs_of};
use crate::state::State;
use crate::state::capacity::choice;
use crate::trial::Trial;
use crate::trial::timing::Goal;
use crate::unit::epochs::Epochs;
use crate::unit::ids::{BracketId, ChoiceId, RungId};
use crate::unit::limits::CUT_LIMIT_FACTOR;
use crate::unit::money::MicroUsd;
use crate::unit::time::Millis;

/// What a job would get if it started now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quote {
    pub(crate) limits: JobLimits,
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
    bare.plus(state.money.ledger.margin)
}

impl Quote {
    /// Quotes a job with these limits, on the instances that are asked next.
    pub(crate) fn with(definition: &Definition, state: &State, limits: JobLimits) -> Self {
        let instances = choice(definition, state);
        Self { limits, instances, worst_case: worst_case(definition, state, limits, instances) }
    }

    /// Returns the quote if the cap allows it, with the longest wait that it allows if the last wait for capacity was too
    /// short.
    fn paid(self, definition: &Definition, state: &State) -> Option<Self> {
        let fits = |quote: &Self| fits_cap(definition, state, quote.worst_case);
        let patient = state
            .capacity
            .lack
            .as_ref()
            .map(|_| Self::with(definition, state, definition.patient(self.limits)));
        patient.filter(fits).or(Some(self).filter(fits))
    }

    /// Quotes a job that trains `epochs` epochs of a trial without a job yet.
    pub(crate) fn of_epochs(definition: &Definition, state: &State, epochs: Epochs) -> Self {
        let Runtime { usual, .. } = runtime(definition, state, (epochs, Goal::Last), None);
        Self::with(definition, state, definition.limits_for(usual))
    }

    /// Quotes the longest job of the tuning.
    pub(crate) fn of_longest(definition: &Definition, state: &State) -> Self {
        Self::of_epochs(definition, state, definition.largest_resource())
    }

    /// Quotes the first job of a new trial of a bracket, as the cap allows it; `None` if the cap does not.
    pub(crate) fn of_new_trial(definition: &Definition, state: &State, bracket: BracketId) -> Option<Self> {
        Self::of_promoted(definition, state, (bracket, RungId(0)), None)
    }

    /// Quotes the job of a trial that is promoted to a rung of a bracket and takes `own` for an epoch, as the cap allows
    /// it; `None` if the cap does not.
    pub(crate) fn of_promoted(
        definition: &Definition,
        state: &State,
        (bracket, rung): (BracketId, RungId),
        own: Option<Millis>,
    ) -> Option<Self> {
        let epochs = epochs_of(definition, bracket, rung);
        let goal = Goal::of_rung(definition, bracket, rung);
        Self::affordable(definition, state, runtime(definition, state, (epochs, goal), own))
    }

    /// Quotes a job with a limit that its share of the money left pays for, at most the usual one. If the share is too
    /// small, the job gets the least limit that is worth sending. If money is plentiful and the usual time of a save is
    /// unknown, the job gets what its share among all slots pays for.
    fn affordable(definition: &Definition, state: &State, runtime: Runtime) -> Option<Self> {
        let usual = Self::with(definition, state, definition.limits_for(runtime.usual));
        let (Some(least), Some(left)) = (runtime.least, state.money.ledger.available()) else {
            return usual.paid(definition, state);
        };
        let left = left.minus(reserve(definition, state));
        let shortest = Self::with(definition, state, definition.limits_for(least)).worst_case;
        let share = left.shared_by(free_slots(definition, state));
        let amount = share.max(shortest).min(left).minus(state.money.ledger.margin);
        let seconds = definition.longest_within(amount, least..=runtime.usual, usual.instances)?;
        let even_share = left.shared_by(state.max_parallel(definition)).minus(state.money.ledger.margin);
        let generous = definition.longest_within(even_share, runtime.usual..=runtime.most, usual.instances);
        let seconds = generous.unwrap_or(seconds);
        Self::with(definition, state, definition.limits_for(seconds)).paid(definition, state)
    }

    /// Quotes the next attempt of a trial, as the cap allows it; `None` if the cap does not.
    pub(crate) fn of_next_attempt(definition: &Definition, state: &State, trial: &Trial) -> Option<Self> {
        let rung = trial.start_rung(definition);
        // Only the first attempt at a rung gets a shorter limit: what failed once needs the usual one.
        let is_new = trial.attempts == trial.past_attempts && trial.refit().is_none();
        if is_new {
            return Self::of_promoted(definition, state, (trial.bracket(definition), rung), trial.epoch_ms);
        }
        Self::of_longest_attempt(definition, state, trial).paid(definition, state)
    }

    /// Quotes the next attempt of a trial, whatever the cap allows.
    pub(crate) fn of_longest_attempt(definition: &Definition, state: &State, trial: &Trial) -> Self {
        let rung = trial.start_rung(definition);
        let bracket = trial.bracket(definition);
        let work = trial.refit().map_or_else(
            || (epochs_of(definition, bracket, rung), Goal::of_rung(definition, bracket, rung)),
            |epochs| (epochs, Goal::Last),
        );
        Self::of_attempt(definition, state, trial, work, trial.on_demand)
    }

    /// Quotes the attempt on demand that replaces a spot job of the trial for `rung`.
    pub(crate) fn of_fallback(definition: &Definition, state: &State, trial: &Trial, rung: RungId) -> Self {
        let bracket = trial.bracket(definition);
        let work = (epochs_of(definition, bracket, rung), Goal::of_rung(definition, bracket, rung));
        Self::of_attempt(definition, state, trial, work, true)
    }

    fn of_attempt(
        definition: &Definition,
        state: &State,
        trial: &Trial,
        work: (Epochs, Goal),
        on_demand: bool,
    ) -> Self {
        let Runtime { usual, .. } = runtime(definition, state, work, trial.epoch_ms);
        // A limit that ended the last job too early grows by a factor, so that all attempts together reserve little
        // more than the last one.
        let longer = trial.cut_limit.map_or(0, |cut| cut.saturating_mul(CUT_LIMIT_FACTOR));
        let seconds = usual.max(longer).min(definition.job.max_runtime_seconds);
        let limits =
            if on_demand { definition.limits_on_demand(seconds) } else { definition.limits_for(seconds) };
        Self::with(definition, state, limits)
    }
}

/// Returns how many jobs could start now if the money sufficed.
fn free_slots(definition: &Definition, state: &State) -> u32 {
    let parallel = state.max_parallel(definition).saturating_sub(state.running());
    let instances = definition.limits.max_instances.map_or(u32::MAX, |most| {
        let each = definition.job.instances(choice(definition, state)).count;
        most.saturating_sub(state.instances(definition)).checked_div(each).unwrap_or(u32::MAX)
    });
    parallel.min(instances).min(state.jobs_left(definition)).max(1)
}

/// Returns the money reserved for the refit: its worst case, as far as it is known now.
pub(crate) fn reserve(definition: &Definition, state: &State) -> MicroUsd {
    if !definition.refit || state.refit.is_some() {
        return MicroUsd::ZERO;
    }
    Quote::of_longest(definition, state).worst_case
}

/// Returns whether the cap allows `amount` more besides the money reserved for the refit.
pub(crate) fn fits_cap(definition: &Definition, state: &State, amount: MicroUsd) -> bool {
    state.money.ledger.fits_cap(amount.plus(reserve(definition, state)))
}
