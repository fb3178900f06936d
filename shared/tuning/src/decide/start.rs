//! Starts jobs: trials that wait for a further attempt first, then new ones, as far as slots, instances and money go.
//! Where money comes in grants, the job that is next has its grant asked for first.

use crate::definition::Definition;
use crate::fact::JobKey;
use crate::limits::MAX_TRAINING_JOBS;
use crate::money::MicroUsd;
use crate::ruling::Ruling;
use crate::runtime::{least_seconds, runtime_seconds};
use crate::state::{State, Status};

/// The rules version from which on the rest of a cap pays a job whose limit is cut to it.
const LAST_JOBS_SINCE: u32 = 2;

/// The next job to order.
pub(super) fn start(definition: &Definition, state: &State) -> Option<Ruling> {
    if !may_start(definition, state) {
        return None;
    }
    let next = further_attempt(definition, state).or_else(|| new_trial(definition, state))?;
    if let Ruling::StartOrdered { reservation, .. } = &next
        && !state.ledger.fits(*reservation)
    {
        return super::grant::ask(definition, state, *reservation);
    }
    Some(next)
}

fn may_start(definition: &Definition, state: &State) -> bool {
    let limits = &definition.limits;
    let running = state.running();
    let instances = running.saturating_add(1).saturating_mul(definition.job.instance_count);
    state.status == Status::Active
        && !state.ledger.overrun
        && state.launched < limits.max_jobs
        && running < limits.max_parallel
        && limits.max_instances.is_none_or(|max| instances <= max || crate::planted!(MaxInstancesIgnored))
        && state.hold_starts_until.is_none_or(|until| until <= state.now)
}

fn further_attempt(definition: &Definition, state: &State) -> Option<Ruling> {
    state.trials.iter().find_map(|(number, trial)| {
        if trial.job.is_some() || trial.retry_at.is_none_or(|at| at > state.now) {
            return None;
        }
        let limits = definition.limits_for(runtime_seconds(definition, state, trial.full_limit));
        let reservation = definition.worst_case(limits).unwrap_or(MicroUsd::ZERO);
        state.ledger.fits_cap(reservation).then(|| Ruling::StartOrdered {
            job: JobKey {
                trial: *number,
                rung: 0,
                attempt: trial.attempts.saturating_add(u32::from(!crate::planted!(ReuseName))),
            },
            bracket: trial.bracket,
            configuration: trial.configuration.clone(),
            limits,
            reservation,
        })
    })
}

fn new_trial(definition: &Definition, state: &State) -> Option<Ruling> {
    let trial = state.next_trial;
    // Trials that never started do not count as jobs, but their numbers are used up.
    if trial >= MAX_TRAINING_JOBS.saturating_mul(2) {
        return None;
    }
    let mut limits = definition.limits_for(runtime_seconds(definition, state, false));
    let mut reservation = definition.worst_case(limits).unwrap_or(MicroUsd::ZERO);
    if !state.ledger.fits_cap(reservation) {
        limits = definition.limits_for(last_runtime(definition, state)?);
        reservation = definition.worst_case(limits)?;
    }
    let bracket = definition.plan().next_bracket(&state.joined);
    Some(Ruling::StartOrdered {
        job: JobKey { trial, rung: 0, attempt: 1 },
        bracket: u32::try_from(bracket).unwrap_or(u32::MAX),
        configuration: definition.configuration(trial),
        limits,
        reservation,
    })
}

/// The running time that what is left of the cap pays: once nothing runs whose bill could free more, and only if a usual
/// job ends within it.
fn last_runtime(definition: &Definition, state: &State) -> Option<u64> {
    if definition.rules_version < LAST_JOBS_SINCE || state.jobs().next().is_some() {
        return None;
    }
    let least = least_seconds(definition, state)?;
    let most = runtime_seconds(definition, state, false);
    definition.longest_within(state.ledger.available()?, least, most)
}
