//! The end of a job and of a trial: what each kind of end means for the trial.
//!
//! Reads the state and changes nothing. A job is concluded when its end, its bill and its last lines are known. Its
//! trial then waits for another attempt, arrives at its rung, or is finished. The arrival at a rung does not wait for
//! the bill.

use crate::definition::Definition;
use crate::job::{Job, failure_message};
use crate::log::fact::{JobEnd, JobKey};
use crate::log::reasons::{RetryWhy, StopWhy, TrialEnd};
use crate::log::ruling::{AttemptRuling, Ruling, SearchRuling};
use crate::quote::{Quote, is_out_of_reach, work_of};
use crate::rules::{Rule, grant, never, promote, refit};
use crate::state::capacity::{can_switch_instances, falls_back};
use crate::state::{State, Status};
use crate::trial::diverged::diverged;
use crate::trial::log::is_complete;
use crate::trial::{Trial, TrialStage};
use crate::unit::epochs::Epochs;
use crate::unit::ids::{Place, SizeId, TrialId};
use crate::unit::limits::{RETRY_BACKOFF, RETRY_BACKOFF_MAX};
use crate::unit::time::Millis;

/// Concludes jobs and trials of which all is known.
pub(crate) const CONCLUSION: Rule = Rule {
    next: |view| {
        let mut trials = view.state.trials.iter();
        trials.find_map(|(number, trial)| conclusion(view.definition, view.state, *number, trial))
    },
    wakes: never,
    folds_first: |view, at| {
        // Without the log, the job is concluded when the wait for it is over.
        let unread = |job: &Job| job.final_log.expires_at().is_some_and(|deadline| deadline <= at);
        view.state.jobs().filter(|(_, _, job)| unread(job)).map(|(key, _, _)| key).collect()
    },
};

/// Returns the ruling that concludes the job of trial `number`; `None` while not all of the job is known.
pub(crate) fn conclusion(
    definition: &Definition,
    state: &State,
    number: TrialId,
    trial: &Trial,
) -> Option<Ruling> {
    let finished = |job: Option<JobKey>, how| {
        Some(Ruling::Attempt(AttemptRuling::TrialFinished { job, trial: number, how }))
    };
    let active = state.status == Status::Active;
    let complete = |job: &Job| is_complete(definition, state.clock, trial, job);
    let closed = trial.job().is_none_or(|job| complete(job) && !job.is_void());
    if active
        && closed
        && let Some(place) = trial.place()
        && let Some(arrival) = promote::arrival(definition, trial, place, trial.job())
    {
        return Some(rung_reached(definition, (number, trial), place, arrival));
    }
    let Some(job) = trial.job() else {
        // Late lines of its last job completed the trial: it needs no further attempt.
        let done =
            trial.stop_why.or_else(|| has_all_epochs(definition, trial).then_some(StopWhy::MaxResource));
        if let Some(why) = done {
            return finished(None, TrialEnd::Stopped(why));
        }
        return has_no_further_attempt(definition, state, trial)
            .then(|| finished(None, end_without_attempt(trial)))
            .flatten();
    };
    let key = job.key(number);
    // Unlike an arrival, no other trial waits for this.
    if !complete(job) || !job.is_closed() {
        return None;
    }
    let retry =
        |why, not_before| Some(Ruling::Attempt(AttemptRuling::AttemptAwaited { job: key, why, not_before }));
    let goes_on = refit::can_continue(definition, state, trial) && !trial.stop_requested;
    if let Some(why) = retry_after_cancel(job).filter(|_| job.is_cancelled() && goes_on) {
        return retry(why, state.now);
    }
    if job.is_cancelled() {
        return finished(Some(key), TrialEnd::NeverStarted);
    }
    if let Some(message) = job.refused() {
        return finished(Some(key), TrialEnd::Failed(message.to_owned()));
    }
    if let Some((why, wait)) = further_attempt(definition, state, trial, job) {
        return retry(why, state.now + wait);
    }
    let how = match (job.end_by_limit(), job.trial_stop()) {
        // A job that completed before its stop took effect counts as completed.
        (Some(JobEnd::Completed), _) => TrialEnd::Completed,
        (Some(end), _) if trial.stop_requested && end != JobEnd::AlgorithmError => {
            TrialEnd::Stopped(StopWhy::Requested)
        }
        (_, Some(why)) => TrialEnd::Stopped(why),
        (Some(JobEnd::Stopped), None) => TrialEnd::StoppedOutside,
        (Some(JobEnd::MaxRuntime), None) => TrialEnd::MaxRuntime,
        // Such a trial is retried until the tuning ends, unless it has diverged.
        (Some(JobEnd::MaxWait | JobEnd::CapacityError), None) => {
            TrialEnd::Stopped(diverged(definition, trial).unwrap_or(StopWhy::TuningEnding))
        }
        (Some(JobEnd::AlgorithmError | JobEnd::ServiceError) | None, None) => {
            TrialEnd::Failed(failure_message(job))
        }
    };
    finished(Some(key), how)
}

/// Returns the retry reason of a trial whose job was cancelled for a quota.
fn retry_after_cancel(job: &Job) -> Option<RetryWhy> {
    match job.stop_why()? {
        StopWhy::NextInstances => Some(RetryWhy::NextInstances),
        StopWhy::Quota => Some(RetryWhy::Quota),
        StopWhy::Rung { .. }
        | StopWhy::MaxResource
        | StopWhy::PastLevel { .. }
        | StopWhy::TuningEnding
        | StopWhy::TargetReached { .. }
        | StopWhy::OutOfReach
        | StopWhy::Requested
        | StopWhy::Interruptions { .. }
        | StopWhy::NoObjective { .. }
        | StopWhy::Diverged { .. }
        | StopWhy::ReservationUsed { .. }
        | StopWhy::CapExceeded { .. } => None,
    }
}

fn rung_reached(
    definition: &Definition,
    (number, trial): (TrialId, &Trial),
    place: Place,
    (resource, value): (Epochs, Option<f64>),
) -> Ruling {
    let key = |job: &Job| job.key(number);
    Ruling::Search(SearchRuling::RungReached {
        job: trial.job().map(key),
        trial: number,
        bracket: place.cohort.bracket,
        round: place.cohort.round,
        rung: place.rung,
        level: definition.level(place.cohort.bracket, place.rung),
        resource,
        value,
    })
}

fn has_all_epochs(definition: &Definition, trial: &Trial) -> bool {
    trial.resource() >= trial.goal(definition)
}

/// Returns whether a trial waits for an attempt that can never start: the tuning is ending, all jobs were launched, no
/// job or bill can free the money that it needs, or the wait for the month's cap has expired.
fn has_no_further_attempt(definition: &Definition, state: &State, trial: &Trial) -> bool {
    let exceeds_cap = Quote::of_next_attempt(definition, state, trial).is_none();
    let work = work_of(definition, trial, trial.start_rung(definition));
    !refit::can_continue(definition, state, trial)
        || state.jobs_left(definition) == 0
        || (exceeds_cap && (!state.may_free_money() || is_out_of_reach(definition, state, work)))
        || grant::has_expired(state)
}

/// Returns the end of a trial that gets no further attempt. It has failed only if its own last job has: a trial that
/// waits for capacity, a quota, or the money of its promotion is merely not continued.
fn end_without_attempt(trial: &Trial) -> TrialEnd {
    match &trial.stage {
        TrialStage::Awaiting { failure: Some(message), .. } => TrialEnd::Failed(message.clone()),
        TrialStage::Awaiting { failure: None, .. } | TrialStage::Running(_) => {
            TrialEnd::Stopped(StopWhy::TuningEnding)
        }
    }
}

/// Returns why the trial is retried and how long it waits first; `None` if it is not retried.
fn further_attempt(
    definition: &Definition,
    state: &State,
    trial: &Trial,
    job: &Job,
) -> Option<(RetryWhy, Millis)> {
    let elsewhere = match job.stop_why() {
        Some(StopWhy::Interruptions { .. }) => Some(RetryWhy::OnDemand),
        _ => retry_after_cancel(job),
    };
    // What the program did before the stop took effect stands.
    let by_itself = matches!(job.end(), Some(JobEnd::Completed | JobEnd::AlgorithmError));
    let over = (trial.stop_why.is_some() || job.trial_stop().is_some()) && elsewhere.is_none();
    let useless = || has_all_epochs(definition, trial) || diverged(definition, trial).is_some();
    if !refit::can_continue(definition, state, trial) || trial.stop_requested || over || useless() {
        return None;
    }
    if let Some(why) = elsewhere.filter(|_| !by_itself) {
        return Some((why, Millis::ZERO));
    }
    let size = definition.job.size(job.order.instances);
    match job.end_by_limit()? {
        JobEnd::MaxWait if falls_back(definition, job) => Some((RetryWhy::OnDemand, Millis::ZERO)),
        JobEnd::CapacityError | JobEnd::MaxWait if can_switch_instances(definition, state, trial, job) => {
            Some((RetryWhy::NextInstances, Millis::ZERO))
        }
        // Lack of capacity is no fault of the trial, so the trial is tried again without limit.
        JobEnd::CapacityError => Some((RetryWhy::Capacity, wait_for_capacity(state, size))),
        JobEnd::MaxWait => Some((RetryWhy::MaxWait, wait_for_capacity(state, size))),
        JobEnd::ServiceError => {
            let wait = RETRY_BACKOFF.doubled(trial.retries).min(RETRY_BACKOFF_MAX);
            (trial.retries < definition.settings.max_interruptions).then_some((RetryWhy::ServiceError, wait))
        }
        JobEnd::MaxRuntime => {
            let cut = job.order.limits.max_runtime_seconds < definition.terms(size).max_runtime_seconds;
            cut.then_some((RetryWhy::RuntimeCutTooShort, Millis::ZERO))
        }
        JobEnd::Completed | JobEnd::Stopped | JobEnd::AlgorithmError => None,
    }
}

/// Returns how long starts are still held for lack of capacity.
fn wait_for_capacity(state: &State, size: SizeId) -> Millis {
    state.capacity.lack_of(size).map_or(Millis::ZERO, |lack| (lack.until - state.now).or_zero())
}
