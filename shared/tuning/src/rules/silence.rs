//! Silent jobs: a job that logs no value of the objective wastes all its money, so it is checked and then stopped.
//!
//! Silence counts from when the program began to run or last logged a value, by the time that the sweeper reports. Log
//! lines may come hours late or never, so the stored log of a job is read before the job is stopped for silence.

use crate::definition::{Definition, Silence};
use crate::job::Job;
use crate::log::fact::{JobKey, JobPhase};
use crate::log::reasons::StopWhy;
use crate::log::ruling::{Order, ReadOrder, Ruling};
use crate::quote::runtime::usual;
use crate::rules::{Rule, last_epoch, nothing};
use crate::state::State;
use crate::trial::Trial;
use crate::unit::ids::SizeId;
use crate::unit::limits::{MIN_SILENCE, MIN_SILENCE_UNTIMED, SILENCE_EPOCHS};
use crate::unit::time::{Millis, Time};

/// Orders checks of silent jobs.
pub(crate) const CHECK: Rule = Rule {
    next: |view| check(view.definition, view.state),
    wakes: |view| view.by_clock(deadlines(view.definition, view.state)),
    folds_first: nothing,
};

/// Orders a check of the next job that has been silent for too long.
pub(crate) fn check(definition: &Definition, state: &State) -> Option<Ruling> {
    timed_apart(definition).find_map(|size| {
        let allowed = longest_silence(definition, state, size)?;
        jobs_of(definition, state, size).find_map(|(key, trial, job)| {
            let since = overdue(definition, state, trial, job, allowed)?;
            (job.silence_check.key() < Some(since))
                .then_some(Ruling::Order(Order::Read(ReadOrder::Silence { job: key, since })))
        })
    })
}

/// Returns the stop reason of a job whose silence a check has confirmed.
pub(crate) fn confirmed(definition: &Definition, state: &State, trial: &Trial, job: &Job) -> Option<StopWhy> {
    // Few jobs are checked: the longest silence, which depends on all timed jobs, is computed for these alone.
    let checked = job.silence_check.answered()?;
    let allowed = longest_silence(definition, state, trial.size(definition))?;
    let since = overdue(definition, state, trial, job, allowed)?;
    let seconds = allowed.seconds_rounded_up();
    (checked >= since).then_some(StopWhy::NoObjective { seconds })
}

/// Returns when each silence becomes too long.
fn deadlines<'a>(definition: &'a Definition, state: &'a State) -> impl Iterator<Item = Time> {
    timed_apart(definition).flat_map(move |size| {
        let silent = longest_silence(definition, state, size).map(|allowed| {
            let jobs = jobs_of(definition, state, size);
            jobs.filter_map(move |(_, trial, job)| Some(silent_since(definition, trial, job)? + allowed))
        });
        silent.into_iter().flatten()
    })
}

/// Returns one cluster size for each group of jobs with comparable times.
fn timed_apart(definition: &Definition) -> impl Iterator<Item = SizeId> + use<> {
    definition.definitions().map(|of| SizeId(of.0))
}

fn jobs_of<'a>(
    definition: &'a Definition,
    state: &'a State,
    size: SizeId,
) -> impl Iterator<Item = (JobKey, &'a Trial, &'a Job)> {
    let is_own = move |trial: &Trial| !definition.has_definitions() || trial.size(definition) == size;
    state.jobs().filter(move |(_, trial, _)| is_own(trial))
}

/// Returns the beginning of a silence that has lasted longer than `allowed`.
fn overdue(
    definition: &Definition,
    state: &State,
    trial: &Trial,
    job: &Job,
    allowed: Millis,
) -> Option<Time> {
    silent_since(definition, trial, job).filter(|since| *since + allowed <= state.clock)
}

/// Returns when a running program last logged a value; `None` while it does not run, is being stopped, or has trained its
/// last epoch ([`last_epoch`]).
fn silent_since(definition: &Definition, trial: &Trial, job: &Job) -> Option<Time> {
    let stops = job.stop.is_some() || trial.stop_why.is_some();
    if !job.holds_slot() || stops || last_epoch::is_reached(definition, trial, job) {
        return None;
    }
    let own = trial.last_line_of(job.order.attempt);
    Some(own.map_or(Time::MIN, |line| line.at).max(job.entered(JobPhase::Training)?))
}

/// Returns the longest silence allowed of a job of a cluster size; `None` = no bound.
fn longest_silence(definition: &Definition, state: &State, size: SizeId) -> Option<Millis> {
    match definition.silence {
        Silence::Never => None,
        Silence::After(seconds) => Some(Millis::from_seconds(seconds)),
        Silence::Adaptive => {
            let half = Millis::from_seconds(definition.terms(size).max_runtime_seconds).half();
            let untimed = half.max(MIN_SILENCE_UNTIMED);
            let timed =
                usual(definition, state, size).map(|(epoch, startup)| epoch * SILENCE_EPOCHS + startup * 3);
            Some(timed.map_or(untimed, |timed| timed.max(MIN_SILENCE).min(untimed)))
        }
    }
}
