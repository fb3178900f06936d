//! Quotes: the limits under which a job would start now, on which instances, and the most that it can cost.

pub mod runtime;

use self::runtime::runtime;
use crate::definition::{Definition, JobLimits};
use crate::quote::runtime::{Runtime, Work};
use crate::state::State;
use crate::state::capacity::choice;
use crate::trial::Trial;
use crate::trial::timing::Goal;
use crate::unit::epochs::Epochs;
use crate::unit::ids::{ChoiceId, RungId, SizeId};
use crate::unit::limits::CUT_LIMIT_FACTOR;
use crate::unit::money::MicroUsd;

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
    /// Quotes a job of this cluster size with these limits, on the instances that are asked next.
    pub(crate) fn with(definition: &Definition, state: &State, limits: JobLimits, size: SizeId) -> Self {
        let instances = choice(definition, state, size);
        Self { limits, instances, worst_case: worst_case(definition, state, limits, instances) }
    }

    /// Returns the quote if the cap allows it, with the longest wait that it allows if the last wait for capacity was too
    /// short.
    fn paid(self, definition: &Definition, state: &State) -> Option<Self> {
        let fits = |quote: &Self| fits_cap(definition, state, quote.worst_case);
        let size = definition.job.size(self.instances);
        let lack = state.capacity.lack_of(size);
        let patient =
            lack.map(|_| Self::with(definition, state, definition.patient(self.limits, size), size));
        patient.filter(fits).or(Some(self).filter(fits))
    }

    /// Quotes a job that trains `epochs` epochs of a trial without a job yet.
    pub(crate) fn of_epochs(definition: &Definition, state: &State, epochs: Epochs, size: SizeId) -> Self {
        Self::of_usual(definition, state, Work { epochs, goal: Goal::Last, own: None, size })
    }

    /// Quotes the longest job of the tuning, on the cluster size that may cost most.
    pub(crate) fn of_longest(definition: &Definition, state: &State) -> Self {
        let of_size = |size| Self::of_epochs(definition, state, definition.largest_resource(), size);
        let first = of_size(SizeId::default());
        let others = definition.job.all_sizes().skip(1).map(of_size);
        others.fold(first, |most, quote| if quote.worst_case > most.worst_case { quote } else { most })
    }

    /// Quotes a job with the usual limits, whatever the cap allows.
    pub(crate) fn of_usual(definition: &Definition, state: &State, work: Work) -> Self {
        let Runtime { usual, .. } = runtime(definition, state, work);
        Self::with(definition, state, definition.limits_for(usual, work.size), work.size)
    }

    /// Quotes the job of a new or promoted trial, as the cap allows it; `None` if the cap does not.
    pub(crate) fn of_promoted(definition: &Definition, state: &State, work: Work) -> Option<Self> {
        Self::affordable(definition, state, runtime(definition, state, work), work.size)
    }

    /// Returns whether the cap can ever pay for the job of a new or promoted trial, once all reservations are free.
    pub(crate) fn can_ever_be_paid(definition: &Definition, state: &State, work: Work) -> bool {
        if state.money.ledger.cap.is_none() {
            return true;
        }
        let Runtime { usual, least, .. } = runtime(definition, state, work);
        let limits = definition.limits_for(least.unwrap_or(usual), work.size);
        let amount = Self::with(definition, state, limits, work.size).worst_case;
        state.money.ledger.can_ever_fit(amount.plus(reserve(definition, state)))
    }

    /// Quotes a job with a limit that its share of the money left pays for, at most the usual one. If the share is too
    /// small, the job gets the least limit that is worth sending. If money is plentiful and the usual time of a save is
    /// unknown, the job gets what its share among all slots pays for.
    fn affordable(definition: &Definition, state: &State, runtime: Runtime, size: SizeId) -> Option<Self> {
        let usual = Self::with(definition, state, definition.limits_for(runtime.usual, size), size);
        let (Some(least), Some(left)) = (runtime.least, state.money.ledger.available()) else {
            return usual.paid(definition, state);
        };
        let left = left.minus(reserve(definition, state));
        let shortest = Self::with(definition, state, definition.limits_for(least, size), size).worst_case;
        let share = left.shared_by(free_slots(definition, state, usual.instances));
        let amount = share.max(shortest).min(left).minus(state.money.ledger.margin);
        let seconds = definition.longest_within(amount, least..=runtime.usual, usual.instances)?;
        let even_share = left.shared_by(state.max_parallel(definition)).minus(state.money.ledger.margin);
        let generous = definition.longest_within(even_share, runtime.usual..=runtime.most, usual.instances);
        let seconds = generous.unwrap_or(seconds);
        Self::with(definition, state, definition.limits_for(seconds, size), size).paid(definition, state)
    }

    /// Quotes the next attempt of a trial, as the cap allows it; `None` if the cap does not.
    pub(crate) fn of_next_attempt(definition: &Definition, state: &State, trial: &Trial) -> Option<Self> {
        let rung = trial.start_rung(definition);
        // Only the first attempt at a rung gets a shorter limit: what failed once needs the usual one.
        let is_new = trial.attempts == trial.past_attempts && trial.refit().is_none();
        if is_new {
            let work = work_of(definition, trial, rung);
            return Self::of_promoted(definition, state, work);
        }
        Self::of_longest_attempt(definition, state, trial).paid(definition, state)
    }

    /// Quotes the next attempt of a trial, whatever the cap allows.
    pub(crate) fn of_longest_attempt(definition: &Definition, state: &State, trial: &Trial) -> Self {
        let rungs = work_of(definition, trial, trial.start_rung(definition));
        let work = match trial.refit() {
            Some(epochs) => Work { epochs, goal: Goal::Last, ..rungs },
            None => rungs,
        };
        Self::of_attempt(definition, state, trial, work, trial.on_demand)
    }

    /// Quotes the attempt on demand that replaces a spot job of the trial for `rung`.
    pub(crate) fn of_fallback(definition: &Definition, state: &State, trial: &Trial, rung: RungId) -> Self {
        Self::of_attempt(definition, state, trial, work_of(definition, trial, rung), true)
    }

    fn of_attempt(
        definition: &Definition,
        state: &State,
        trial: &Trial,
        work: Work,
        on_demand: bool,
    ) -> Self {
        let Runtime { usual, .. } = runtime(definition, state, work);
        // A limit that ended the last job too early grows by a factor, so that all attempts together reserve little
        // more than the last one.
        let longer = trial.cut_limit.map_or(0, |cut| cut.saturating_mul(CUT_LIMIT_FACTOR));
        let size = work.size;
        let seconds = usual.max(longer).min(definition.terms(size).max_runtime_seconds);
        let limits = if on_demand {
            definition.limits_on_demand(seconds, size)
        } else {
            definition.limits_for(seconds, size)
        };
        Self::with(definition, state, limits, size)
    }
}

/// Returns whether the rest of the cap, or a quota of the account, is too small for this work on its cluster size, in a
/// tuning with several.
pub(crate) fn is_out_of_reach(definition: &Definition, state: &State, work: Work) -> bool {
    definition.job.has_sizes()
        && (state.capacity.is_out_of_reach(definition, work.size)
            || !Quote::can_ever_be_paid(definition, state, work))
}

pub(crate) fn work_of(definition: &Definition, trial: &Trial, rung: RungId) -> Work {
    let size = trial.size(definition);
    Work { own: trial.epoch_ms, ..Work::of_rung(definition, trial.bracket(definition), rung, size) }
}

/// Returns how many jobs on these instances could start now if the money sufficed.
fn free_slots(definition: &Definition, state: &State, instances: ChoiceId) -> u32 {
    let parallel = state.max_parallel(definition).saturating_sub(state.running());
    let instances = definition.limits.max_instances.map_or(u32::MAX, |most| {
        let each = definition.job.instances(instances).count;
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
