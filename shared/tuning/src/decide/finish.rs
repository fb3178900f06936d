//! The end of a tuning: the criteria that end it, and when it is over.

use hyperband::ranking::reaches;

use crate::definition::Definition;
use crate::limits::{FRUITLESS_TRIALS_MAX, QUOTA_PATIENCE_MS};
use crate::ruling::{EndReason, Ruling};
use crate::state::{State, Status};

/// When the tuning's own time is up, ms since the epoch.
pub(super) fn time_up(definition: &Definition) -> Option<i64> {
    let seconds = i64::try_from(definition.limits.max_runtime_seconds?).unwrap_or(i64::MAX);
    Some(definition.created.saturating_add(seconds.saturating_mul(1_000)))
}

/// A criterion that ends an active tuning.
pub(super) fn ending(definition: &Definition, state: &State) -> Option<Ruling> {
    if state.status != Status::Active {
        return None;
    }
    let limits = &definition.limits;
    let reached = |target: f64| {
        let direction = definition.direction();
        state.incumbent.as_ref().is_some_and(|best| reaches(direction, best.value, target))
    };
    let why = if super::grant::is_in_vain(state) {
        EndReason::CostCap
    } else if let Some(message) = hopeless(state) {
        EndReason::Failed(message)
    } else if limits.target.is_some_and(reached) {
        EndReason::Target
    } else if limits.not_improving.is_some_and(|most| state.since_improved >= most) {
        EndReason::NotImproving
    } else if time_up(definition).is_some_and(|deadline| state.now >= deadline) {
        EndReason::MaxRuntime
    } else {
        return None;
    };
    Some(Ruling::TuningEnding { why })
}

/// Why it cannot succeed: the first trials all ended without a value, starts are refused one after another, or a quota of the
/// account has let nothing start for too long.
fn hopeless(state: &State) -> Option<String> {
    let last = || state.last_failure.as_deref().unwrap_or("no failure was reported").to_owned();
    if state.refusals >= FRUITLESS_TRIALS_MAX {
        return Some(format!(
            "{} training jobs in a row were refused. Last answer: {}",
            state.refusals,
            last()
        ));
    }
    if state.quota_is_in_vain() {
        return Some(format!(
            "a quota of the account let no training job start for {} hours. Ask for a higher one (Service Quotas, Amazon \
             SageMaker: the instance type, for training job usage) or for other instances, and submit the tuning again. \
             Last answer: {}",
            QUOTA_PATIENCE_MS / 3_600_000,
            state.held.as_ref().and_then(|held| held.words.as_deref()).unwrap_or_default()
        ));
    }
    if state.fruitless < FRUITLESS_TRIALS_MAX {
        return None;
    }
    Some(if state.counters.completed > 0 || state.last_failure.is_none() {
        format!(
            "no training job emitted a value of the objective metric after {} attempts: check its Regex against the \
             log of a training job",
            state.fruitless
        )
    } else {
        format!("no training job succeeded after {} attempts. Last failure: {}", state.fruitless, last())
    })
}

/// Whether starts are put off for now.
pub(super) fn is_held(state: &State) -> bool {
    state.is_paused() || state.hold_starts_until.is_some_and(|until| until > state.now)
}

/// Whether the month's cap may yet grant money.
pub(super) fn is_asking(state: &State) -> bool {
    (state.grants.open.is_some() || state.grants.denied.is_some()) && !state.ledger.overrun
}

/// Why the tuning is over, once no trial is left and no job may be started.
pub(super) fn why_ended(definition: &Definition, state: &State) -> Option<EndReason> {
    // What is reserved for kept instances may pay another job.
    if !state.trials.is_empty() || !state.waiting.is_empty() || !state.pools.is_empty() {
        return None;
    }
    // Nothing runs. Is it sure that nothing can be started?
    match &state.status {
        Status::Ended { .. } => None,
        Status::Ending(why) => Some(why.clone()),
        Status::Active if state.jobs_left(definition) == 0 => Some(EndReason::MaxJobs),
        Status::Active if is_held(state) || is_asking(state) => None,
        Status::Active => Some(EndReason::CostCap),
    }
}

/// The end, once the month's cap has back what was not used.
pub(super) fn ended(definition: &Definition, state: &State) -> Option<Ruling> {
    let why = why_ended(definition, state).filter(|_| state.grants.is_settled())?;
    if super::refit::is_put_off(definition, state, &why) {
        return None;
    }
    let nothing_succeeded = state.incumbent.is_none() && state.launched > 0;
    let why = match why {
        EndReason::MaxJobs | EndReason::CostCap | EndReason::MaxRuntime if nothing_succeeded => {
            let last = state.last_failure.clone();
            EndReason::Failed(last.unwrap_or_else(|| {
                "no training job emitted a value of the objective metric: check its Regex against the log of a \
                 training job"
                    .to_owned()
            }))
        }
        EndReason::MaxJobs
        | EndReason::CostCap
        | EndReason::MaxRuntime
        | EndReason::Target
        | EndReason::NotImproving
        | EndReason::Stopped
        | EndReason::Failed(_) => why,
    };
    Some(Ruling::TuningEnded { why })
}
