//! Silent jobs: a job that logs no value of the objective wastes all its money, so it is looked at and then stopped.
//!
//! Silence counts from when the program began to run or last logged a value, by the time that the sweeper reports. Log
//! lines may come hours late or never, so the stored log of a job is read before the job is stopped for silence.

use crate::definition::{Definition, Silence};
use crate::fact::JobPhase;
use crate::limits::{MIN_SILENCE_MS, MIN_SILENCE_UNTIMED_MS, SILENCE_EPOCHS};
use crate::ruling::{Order, Ruling, StopWhy};
use crate::runtime::usual_ms;
use crate::state::{Job, State, Trial};
use crate::time::milliseconds;

/// Orders a look at the next job that has been silent for too long.
pub(super) fn look(definition: &Definition, state: &State) -> Option<Ruling> {
    state.jobs().find_map(|(key, trial, job)| {
        let (since, _) = overdue(definition, state, trial, job)?;
        (job.look_ordered < Some(since)).then_some(Ruling::Order(Order::Look { job: key, since }))
    })
}

/// Returns the stop reason of a job whose silence a look has confirmed.
pub(super) fn confirmed(definition: &Definition, state: &State, trial: &Trial, job: &Job) -> Option<StopWhy> {
    let (since, allowed) = overdue(definition, state, trial, job)?;
    let seconds = u64::try_from(allowed).unwrap_or(0).div_ceil(1_000);
    (job.silence_seen >= Some(since)).then_some(StopWhy::NoObjective { seconds })
}

/// Returns when the next silence becomes too long, in ms since the epoch.
pub(super) fn deadline(definition: &Definition, state: &State) -> Option<i64> {
    let allowed = allowed_ms(definition, state)?;
    let silent = state.jobs().filter_map(|(_, trial, job)| silent_since(trial, job));
    silent.map(|since| since.saturating_add(allowed)).filter(|deadline| *deadline > state.clock).min()
}

/// Returns the beginning of the silence for which a look at `job` was ordered and has no outcome yet, in ms since the
/// epoch.
pub fn open_look(job: &Job) -> Option<i64> {
    job.look_ordered.filter(|since| job.holds_slot() && job.silence_seen < Some(*since))
}

/// Returns the beginning of a silence that has lasted too long, and the longest silence allowed, both in ms.
fn overdue(definition: &Definition, state: &State, trial: &Trial, job: &Job) -> Option<(i64, i64)> {
    let allowed = allowed_ms(definition, state)?;
    let since = silent_since(trial, job)?;
    (since.saturating_add(allowed) <= state.clock).then_some((since, allowed))
}

/// Returns when a running program last logged a value; `None` while it does not run, or is being stopped.
fn silent_since(trial: &Trial, job: &Job) -> Option<i64> {
    if !job.holds_slot() || job.stop.is_some() || trial.stop_why.is_some() || job.phase != JobPhase::Training
    {
        return None;
    }
    let own = trial.last_line.as_ref().filter(|_| trial.last_line_attempt == job.attempt);
    Some(own.map_or(job.phase_at, |(at, _, _)| job.phase_at.max(*at)))
}

/// Returns the longest silence allowed, in ms; `None` = no bound.
fn allowed_ms(definition: &Definition, state: &State) -> Option<i64> {
    match definition.silence {
        Silence::Never => None,
        Silence::After(seconds) => Some(milliseconds(seconds)),
        Silence::Adaptive => {
            let half = milliseconds(definition.job.max_runtime_seconds) / 2;
            let untimed = half.max(MIN_SILENCE_UNTIMED_MS);
            let timed = usual_ms(state).map(|(epoch, startup)| {
                let usual = epoch.saturating_mul(SILENCE_EPOCHS).saturating_add(startup.saturating_mul(3));
                i64::try_from(usual).unwrap_or(i64::MAX).max(MIN_SILENCE_MS)
            });
            Some(timed.map_or(untimed, |timed| timed.min(untimed)))
        }
    }
}
