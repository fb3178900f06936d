//! The end of a job and of a trial: what each kind of end means for the trial.
//!
//! Reads only. A job is concluded when all is known of it (its end and its bill); then either its trial waits for a
//! further attempt, or the trial is over.

use hyperband::ranking::improves;

use crate::decide::{grant, promote, refit, spot};
use crate::definition::Definition;
use crate::fact::{JobEnd, JobKey};
use crate::limits::{RETRY_BACKOFF_MAX_MS, RETRY_BACKOFF_MS};
use crate::ruling::{RetryWhy, Ruling, StopWhy, TrialEnd};
use crate::runtime::{epochs_of, runtime_seconds};
use crate::state::{Job, State, Status, Trial};
use crate::summary::JobSummary;

/// Points of a curve kept in a summary.
const CURVE_POINTS_KEPT: usize = 200;

/// The ruling that concludes the job of trial `number`, if it is closed.
pub(crate) fn conclusion(
    definition: &Definition,
    state: &State,
    number: u32,
    trial: &Trial,
) -> Option<Ruling> {
    let finished = |job: Option<JobKey>, how| Some(Ruling::TrialFinished { job, trial: number, how });
    let active = state.status == Status::Active;
    let closed = trial.job.as_ref().is_none_or(|job| job.is_closed() && !called_off(job));
    if active
        && closed
        && let Some(arrival) = promote::arrival(definition, trial, trial.job.as_ref())
    {
        return Some(rung_reached(definition, number, trial, arrival));
    }
    let Some(job) = trial.job.as_ref() else {
        // Lines of its last job came late: it needs no further attempt.
        let needless =
            trial.out.or_else(|| has_all_epochs(definition, trial).then_some(StopWhy::MaxResource));
        if let Some(why) = needless {
            return finished(None, TrialEnd::Stopped(why));
        }
        return waits_in_vain(definition, state, trial)
            .then(|| finished(None, last_words(trial, state)))
            .flatten();
    };
    let key = JobKey { trial: number, rung: job.rung, attempt: job.attempt };
    let unbilled = job.end.is_some() && crate::planted!(ConcludeUnbilled);
    if !job.is_closed() && !unbilled {
        return None;
    }
    let retry = |why, not_before| Some(Ruling::AttemptAwaited { job: key, why, not_before });
    if let Some(why) = elsewhere_or_later(job).filter(|_| job.never_started && refit::goes_on(state, trial)) {
        return retry(why, state.now);
    }
    if job.never_started {
        return finished(Some(key), TrialEnd::NeverStarted);
    }
    if let Some(message) = &job.refused {
        return finished(Some(key), TrialEnd::Failed(message.clone()));
    }
    if let Some((why, wait)) = further_attempt(definition, state, trial, job) {
        return retry(why, state.now.saturating_add(wait));
    }
    let how = match (job.end, job.stop) {
        // Completed before the stop landed = completed.
        (Some(JobEnd::Completed), _) => TrialEnd::Completed,
        (_, Some(why)) => TrialEnd::Stopped(why),
        (Some(JobEnd::Stopped), None) => TrialEnd::StoppedOutside,
        (Some(JobEnd::MaxRuntime), None) => TrialEnd::MaxRuntime,
        (
            Some(JobEnd::MaxWait | JobEnd::AlgorithmError | JobEnd::CapacityError | JobEnd::ServiceError)
            | None,
            None,
        ) => TrialEnd::Failed(job.message.clone().unwrap_or_else(|| unexplained(job))),
    };
    finished(Some(key), how)
}

/// Why the trial of a job that was called off for a quota is tried again.
fn elsewhere_or_later(job: &Job) -> Option<RetryWhy> {
    match job.stop? {
        StopWhy::NextInstances => Some(RetryWhy::NextInstances),
        StopWhy::Quota => Some(RetryWhy::Quota),
        StopWhy::Rung { .. }
        | StopWhy::MaxResource
        | StopWhy::PastLevel { .. }
        | StopWhy::TuningEnding
        | StopWhy::Interruptions { .. }
        | StopWhy::NoObjective { .. } => None,
    }
}

fn called_off(job: &Job) -> bool {
    job.never_started || job.refused.is_some()
}

fn rung_reached(
    definition: &Definition,
    number: u32,
    trial: &Trial,
    (resource, value): (u32, Option<f64>),
) -> Ruling {
    let key = |job: &Job| JobKey { trial: number, rung: job.rung, attempt: job.attempt };
    Ruling::RungReached {
        job: trial.job.as_ref().map(key),
        trial: number,
        bracket: trial.bracket,
        round: trial.round,
        rung: trial.next_rung,
        level: definition.level(trial.bracket, trial.next_rung),
        resource,
        value,
    }
}

fn has_all_epochs(definition: &Definition, trial: &Trial) -> bool {
    trial.resource() >= trial.goal(definition)
}

/// Whether a trial waits for a further attempt that will never come: the tuning ends, all jobs were launched, nothing
/// runs that could free the money it needs, or the month's cap was waited for in vain.
fn waits_in_vain(definition: &Definition, state: &State, trial: &Trial) -> bool {
    let rung = if definition.promotes().is_some() { trial.next_rung } else { 0 };
    let epochs = trial.refit.unwrap_or_else(|| epochs_of(definition, trial.bracket, rung));
    let seconds = runtime_seconds(definition, state, trial.full_limit, epochs);
    let limits = definition.limits_of(seconds, trial.on_demand);
    let worst = definition.worst_case_on(limits, spot::choice(definition, state));
    let too_dear = worst.is_some_and(|amount| !refit::fits_cap(definition, state, amount));
    !refit::goes_on(state, trial)
        || state.jobs_left(definition) == 0
        || state.ledger.overrun
        || (too_dear && state.jobs().next().is_none() && state.pools.is_empty())
        || grant::is_in_vain(state)
}

fn unexplained(job: &Job) -> String {
    match job.end {
        Some(JobEnd::MaxWait) => "no spot capacity within MaxWaitTimeInSeconds".to_owned(),
        Some(_) | None => "the training job failed without a reason".to_owned(),
    }
}

fn last_words(trial: &Trial, state: &State) -> TrialEnd {
    // One that was promoted has not failed: there is nothing left to train it on with.
    if trial.next_rung > 0 && trial.attempts <= trial.past_attempts {
        return TrialEnd::Stopped(StopWhy::TuningEnding);
    }
    let message = state.last_failure.clone();
    let text = message.unwrap_or_else(|| format!("no further attempt after {}", trial.attempts));
    TrialEnd::Failed(text)
}

/// Whether the trial is tried again, why, and how long to wait first (ms).
fn further_attempt(
    definition: &Definition,
    state: &State,
    trial: &Trial,
    job: &Job,
) -> Option<(RetryWhy, i64)> {
    let elsewhere = match job.stop {
        Some(StopWhy::Interruptions { .. }) => Some(RetryWhy::OnDemand),
        _ => elsewhere_or_later(job),
    };
    // What its program did before the stop landed stands.
    let by_itself = matches!(job.end, Some(JobEnd::Completed | JobEnd::AlgorithmError));
    let over = (trial.out.is_some() || job.stop.is_some()) && elsewhere.is_none();
    if !refit::goes_on(state, trial) || over || has_all_epochs(definition, trial) {
        return None;
    }
    if let Some(why) = elsewhere.filter(|_| !by_itself) {
        return Some((why, 0));
    }
    let asked = definition.spot_fallback || crate::planted!(OnDemandUnasked);
    let fallback = definition.job.spot && asked && !job.on_demand;
    let why = match job.end? {
        JobEnd::CapacityError if spot::moves_on(definition, state, trial, job) => {
            return Some((RetryWhy::NextInstances, 0));
        }
        JobEnd::CapacityError => RetryWhy::Capacity,
        JobEnd::ServiceError => RetryWhy::ServiceError,
        JobEnd::AlgorithmError if crate::planted!(KeepFailure) => RetryWhy::ServiceError,
        JobEnd::MaxWait if fallback => return Some((RetryWhy::OnDemand, 0)),
        JobEnd::MaxWait => RetryWhy::MaxWait,
        JobEnd::MaxRuntime => {
            let cut = job.limits.max_runtime_seconds < definition.job.max_runtime_seconds;
            return (cut && !trial.full_limit).then_some((RetryWhy::RuntimeCutTooShort, 0));
        }
        JobEnd::Completed | JobEnd::Stopped | JobEnd::AlgorithmError => return None,
    };
    let wait = RETRY_BACKOFF_MS.saturating_mul(2_i64.saturating_pow(trial.retries)).min(RETRY_BACKOFF_MAX_MS);
    let may = trial.retries < definition.max_interruptions || crate::planted!(AttemptsWithoutLimit);
    may.then_some((why, wait))
}

/// The summary of a job of `trial` as it now is.
pub fn summary(key: JobKey, trial: &Trial, job: &Job) -> JobSummary {
    let never_started = job.never_started || job.refused.is_some();
    // The values of a trial are not those of an attempt that never ran, or emitted nothing.
    let emitted = !never_started && trial.last_line_attempt == job.attempt;
    let last_value = trial.last_line.as_ref().and_then(|(_, _, value)| *value).filter(|_| emitted);
    JobSummary {
        job: key,
        bracket: trial.bracket,
        configuration: trial.configuration.clone(),
        phase: job.phase,
        end: job.end,
        ordered: job.ordered,
        started: job.started,
        ended: job.ended,
        stop: job.stop,
        message: job.message.clone().or_else(|| job.refused.clone()),
        never_started,
        last_value,
        best_value: None,
        resource: trial.resource(),
        rungs_passed: trial.next_rung,
        level: job.level,
        resumed_from: resumed_from(trial, job),
        repeats_from: job.repeats_from,
        limits: job.limits,
        on_demand: job.on_demand,
        instances: job.instances,
        reservation: job.reservation,
        billable_seconds: job.bill.and_then(|bill| bill.seconds),
        cost: job.bill.map(|bill| bill.amount),
        retained_seconds: None,
        retained_cost: None,
        settled_in_full: job.bill.is_some_and(|bill| bill.seconds.is_none()),
        interruptions: job.interruptions,
        curve: thinned(trial),
    }
}

/// The epochs with which a job went on from its trial's checkpoint, once a line of it shows that it did.
fn resumed_from(trial: &Trial, job: &Job) -> Option<u32> {
    let mut own = trial.streams.iter().filter(|stream| stream.attempt == job.attempt && !stream.unplaced);
    let shown = own.any(|stream| stream.span.is_some());
    (job.had > 0 && job.repeats_from.is_none() && shown).then_some(job.had)
}

/// The summary with its best value, which depends on the direction.
pub fn full_summary(definition: &Definition, key: JobKey, trial: &Trial, job: &Job) -> JobSummary {
    let direction = definition.direction();
    let best = trial.curve.values().flatten().copied().fold(None, |best: Option<f64>, value| {
        Some(best.filter(|best| !improves(direction, value, *best)).unwrap_or(value))
    });
    JobSummary { best_value: best, ..summary(key, trial, job) }
}

fn thinned(trial: &Trial) -> Vec<(u32, Option<f64>)> {
    let step = trial.curve.len().div_ceil(CURVE_POINTS_KEPT).max(1);
    let last = trial.curve.last_key_value();
    let mut points: Vec<_> =
        trial.curve.iter().step_by(step).map(|(epoch, value)| (*epoch, *value)).collect();
    if let Some((epoch, value)) = last
        && points.last().is_some_and(|point| point.0 != *epoch)
    {
        points.push((*epoch, *value));
    }
    points
}
