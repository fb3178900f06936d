//! Starts jobs, as far as slots, instances and money allow: first retries and promoted trials, then new trials.
//!
//! Where money comes in grants, the grant for the next job is requested first.

use super::{pool, promote, refit, spot};
use crate::definition::Definition;
use crate::fact::JobKey;
use crate::limits::MAX_TRAINING_JOBS;
use crate::money::MicroUsd;
use crate::ruling::{Launch, Order, Ruling};
use crate::runtime::{epochs_of, least_seconds, runtime_seconds};
use crate::state::{State, Status};

/// Orders the next job, or requests the grant that it needs.
pub(super) fn start(definition: &Definition, state: &State) -> Option<Ruling> {
    if !can_start(definition, state) {
        return None;
    }
    let mut continues = state.refit.is_none();
    if crate::planted!(SearchAfterRefit) {
        continues = true;
    }
    let mut next = further_attempt(definition, state)
        .or_else(|| next_of_search(definition, state).filter(|_| continues))?;
    pool::keep_instances(definition, state, &mut next);
    if let Ruling::Order(Order::StartOrdered { reservation, .. }) = &next
        && !state.ledger.fits(*reservation)
    {
        return super::grant::ask(definition, state, *reservation, state.refit.is_some());
    }
    Some(next)
}

/// Returns the next job of the search: a promotion, a new trial, or at the end any promotion left. The search is over
/// once the refit was ordered, even if that frees money.
fn next_of_search(definition: &Definition, state: &State) -> Option<Ruling> {
    promote::next(definition, state, false)
        .or_else(|| new_trial(definition, state).filter(|_| !promote::lacks_money(definition, state)))
        .or_else(|| state.trials.is_empty().then(|| promote::next(definition, state, true))?)
}

/// Returns whether the cap allows the job of a trial that is promoted to `rung`.
pub(super) fn fits_promotion(definition: &Definition, state: &State, bracket: u32, rung: u32) -> bool {
    let seconds = runtime_seconds(definition, state, false, epochs_of(definition, bracket, rung));
    let worst = definition.worst_case_on(definition.limits_for(seconds), spot::choice(definition, state));
    refit::fits_cap(definition, state, worst.unwrap_or(MicroUsd::ZERO))
}

pub(super) fn can_start(definition: &Definition, state: &State) -> bool {
    let limits = &definition.limits;
    let running = state.running();
    let next = definition.job.instances(spot::choice(definition, state)).count;
    let instances = state.instances(definition).saturating_add(next);
    let refits = state.refit.is_some_and(|job| state.trials.contains_key(&job.trial));
    (state.status == Status::Active || refits)
        && !state.ledger.overrun
        && state.jobs_left(definition) > 0
        && running < state.max_parallel(definition)
        && (running == 0 || !state.is_held_long())
        && !state.is_paused()
        && limits.max_instances.is_none_or(|max| instances <= max)
        && state.hold_starts_until.is_none_or(|until| until <= state.now)
}

fn further_attempt(definition: &Definition, state: &State) -> Option<Ruling> {
    state.trials.iter().find_map(|(number, trial)| {
        if trial.job.is_some() || trial.retry_at.is_none_or(|at| at > state.now) {
            return None;
        }
        let rung = if definition.promotes().is_some() { trial.next_rung } else { 0 };
        let epochs = trial.refit.unwrap_or_else(|| epochs_of(definition, trial.bracket, rung));
        let seconds = runtime_seconds(definition, state, trial.full_limit, epochs);
        let limits = definition.limits_of(seconds, trial.on_demand);
        let usual = launch(definition, state, trial.bracket, rung);
        let resource = trial.refit.or(usual.resource);
        let launch = Launch { on_demand: trial.on_demand, refit: trial.refit.is_some(), resource, ..usual };
        let reservation = definition.worst_case_on(limits, launch.instances).unwrap_or(MicroUsd::ZERO);
        refit::fits_cap(definition, state, reservation).then(|| {
            Ruling::Order(Order::StartOrdered {
                job: JobKey { trial: *number, rung, attempt: trial.attempts.saturating_add(1) },
                bracket: trial.bracket,
                configuration: trial.configuration.clone(),
                limits,
                reservation,
                round: trial.round,
                launch,
            })
        })
    })
}

fn new_trial(definition: &Definition, state: &State) -> Option<Ruling> {
    let trial = state.next_trial;
    // Trials that never started are not counted as jobs, but their numbers are used up.
    if trial >= MAX_TRAINING_JOBS.saturating_mul(2) {
        return None;
    }
    let open = |bracket: usize| {
        u32::try_from(bracket).is_ok_and(|bracket| promote::can_join(definition, state, bracket))
    };
    let bracket = definition.plan().next_bracket_of(&state.joined, open)?;
    let bracket = u32::try_from(bracket).unwrap_or(u32::MAX);
    let epochs = epochs_of(definition, bracket, 0);
    let mut limits = definition.limits_for(runtime_seconds(definition, state, false, epochs));
    let launch = launch(definition, state, bracket, 0);
    let mut reservation = definition.worst_case_on(limits, launch.instances).unwrap_or(MicroUsd::ZERO);
    if !refit::fits_cap(definition, state, reservation) {
        limits = definition.limits_for(last_runtime(definition, state, epochs)?);
        reservation = definition.worst_case_on(limits, launch.instances)?;
    }
    Some(Ruling::Order(Order::StartOrdered {
        job: JobKey { trial, rung: 0, attempt: 1 },
        bracket,
        configuration: definition.configuration(trial),
        limits,
        reservation,
        round: state.next_round(definition, bracket),
        launch,
    }))
}

/// Returns how the job for a rung differs from the request.
fn launch(definition: &Definition, state: &State, bracket: u32, rung: u32) -> Launch {
    Launch {
        resource: definition.promotes().map(|_| definition.level(bracket, rung)),
        on_demand: false,
        instances: spot::choice(definition, state),
        refit: false,
    }
}

/// Returns the running time, in seconds, that the rest of the cap pays for.
///
/// `None` while a job runs whose bill could free more money, or if a usual job does not end within that time.
fn last_runtime(definition: &Definition, state: &State, epochs: u32) -> Option<u64> {
    if state.jobs().next().is_some() || !state.pools.is_empty() {
        return None;
    }
    let least = least_seconds(definition, state, epochs)?;
    let most = runtime_seconds(definition, state, false, epochs);
    let left = state.ledger.available()?.minus(refit::reserve(definition, state));
    definition.longest_within(left, (least, most), spot::choice(definition, state))
}
