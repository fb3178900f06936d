//! The decider: names the next ruling that the state calls for.
//!
//! [`next`] reads the state and changes nothing. The caller applies the ruling and calls [`next`] again, until it
//! returns `None`. The order of the rules in [`next`] is part of the rules: first the criteria that end the tuning,
//! then running trials, then ended jobs, then new jobs, and last the end of the tuning.

use crate::definition::Definition;
use crate::job::{Job, must_end_at};
use crate::log::fact::JobKey;
use crate::log::reasons::{EndReason, StopWhy};
use crate::log::ruling::{Order, Ruling};
use crate::rules::outlook::Outlook;
use crate::rules::{
    bill, conclude, finish, grant, judge, last_epoch, notice, overrun, pool, promote, refit, rest, silence,
    spot,
};
use crate::state::{State, Status};
use crate::trial::diverged::diverged;
use crate::trial::log::deadline_of;
use crate::unit::limits::SETTLE_DEADLINE;
use crate::unit::time::Time;

/// Returns the next ruling, or `None` when nothing is left to decide for now.
pub fn next(definition: &Definition, state: &State) -> Option<Ruling> {
    if !state.submitted || state.is_ended() {
        return None;
    }
    // Later bills of concluded jobs come first, because they change what is left of the cap.
    bill::booked(definition, state)
        .or_else(|| overrun::extended(definition, state))
        .or_else(|| notice::overrun(state))
        .or_else(|| notice::capacity_lacking(state))
        .or_else(|| finish::ending(definition, state))
        // Running trials: compare them at rungs, look at silent jobs, stop jobs.
        .or_else(|| judge::judgement(definition, state))
        .or_else(|| promote::resource_repeated(definition, state))
        .or_else(|| promote::closed_rung(definition, state))
        .or_else(|| silence::look(definition, state))
        .or_else(|| stop(definition, state))
        .or_else(|| overrun::stop_other(definition, state))
        // Ended jobs: read their bills and logs, conclude them, settle their warm pools.
        .or_else(|| bill::read(state))
        .or_else(|| bill::settled_in_full(definition, state))
        .or_else(|| rest::read(definition, state))
        .or_else(|| {
            let mut trials = state.trials.iter();
            trials.find_map(|(number, trial)| conclude::conclusion(definition, state, *number, trial))
        })
        .or_else(|| pool::settled(definition, state))
        .or_else(|| pool::read(state))
        .or_else(|| grant::moved_on(state))
        .or_else(|| ahead(definition, state, Outlook::of(definition, state)))
}

/// Rules on what can still happen: eliminate trials, start jobs, return unused money, end the tuning.
fn ahead(definition: &Definition, state: &State, outlook: Outlook) -> Option<Ruling> {
    promote::eliminated(definition, state, &outlook)
        .or_else(|| notice::level_reached(definition, state))
        .or_else(|| match outlook {
            Outlook::Start(order) => Some(order),
            Outlook::Busy | Outlook::Deferred => pool::release(definition, state)
                .or_else(|| grant::return_unused(state, grant::kept(definition, state))),
            Outlook::Over(why) => finish::end(definition, state, why),
        })
}

/// Orders the stop of the next running job that has to stop. Each job is ordered to stop once.
///
/// A job stops when its trial is stopped, has all its epochs, trains past its rung's level, is silent or has diverged, when
/// its reservation is nearly used up, when its trial continues on other instances, when another trial reached the target,
/// or when the tuning is ending.
fn stop(definition: &Definition, state: &State) -> Option<Ruling> {
    state.jobs().find_map(|(key, trial, job)| {
        // A job that was settled in full is presumed deleted: a stop of it would have no outcome.
        if job.stop.is_some() || job.is_closed() || !job.holds_slot() {
            return None;
        }
        let elsewhere = || {
            spot::interrupted(definition, state, trial, job)
                .or_else(|| spot::next_instances(definition, state, trial, job))
                .or_else(|| spot::blocked_by_quota(state, key, job))
        };
        let useless = || {
            let silent = silence::confirmed(definition, state, trial, job);
            silent.or_else(|| diverged(definition, trial))
        };
        let why = match (&state.status, trial.stop_why) {
            (_, Some(why)) => why,
            (_, None) if trial.stop_requested => StopWhy::Requested,
            (_, None) if let Some(why) = overrun::stop(definition, state, job) => why,
            // The refit runs to its own end, also while the tuning ends: its model is the result.
            (_, None) if trial.refit.is_some() && refit::can_continue(definition, state, trial) => {
                let over = || last_epoch::stop(definition, state, trial, job);
                let is_reached = last_epoch::is_reached(definition, trial, job);
                if is_reached { over() } else { elsewhere().or_else(useless) }?
            }
            // A job that trains only to its rung's level ends by itself, unless it ignores the level.
            (_, None) if let Some(why) = promote::past_level(definition, trial, job) => why,
            // Its program saves its model and ends by itself, also while the tuning ends, unless the user stops it.
            (status, None)
                if *status != Status::Ending(EndReason::Stopped)
                    && last_epoch::is_reached(definition, trial, job) =>
            {
                last_epoch::stop(definition, state, trial, job)?
            }
            (Status::Active, None) if state.finalist.is_some_and(|finalist| finalist != key.trial) => {
                StopWhy::TargetReached { trial: state.finalist? }
            }
            // A tuning that runs out of money or jobs stays active until its last job has ended.
            (Status::Ending(_), None) => StopWhy::TuningEnding,
            (Status::Active | Status::Ended { .. }, None) => elsewhere().or_else(useless)?,
        };
        Some(Ruling::Order(Order::Stop { job: key, why }))
    })
}

/// Returns when the sweeper must report a quiet running job as still present ([`crate::log::fact::Fact::JobSeen`]): once it has
/// used up its reservation, and long before it would be presumed deleted. Else at most a few times an hour.
pub fn job_seen_due_at(definition: &Definition, state: &State, job: &Job) -> Option<Time> {
    let quiet = job.seen_at + (must_end_at(definition, job)? - job.seen_at + SETTLE_DEADLINE).half();
    overrun::used_at(definition, state, job).into_iter().chain([quiet]).min()
}

/// Returns the jobs that a [`crate::log::fact::Fact::TimePassed`] at time `at` may settle or give up.
///
/// The caller must fold all stored facts of these jobs before that fact: one of them may hold the bill.
pub fn settled_by(definition: &Definition, state: &State, at: Time) -> Vec<JobKey> {
    let unread = state
        .jobs()
        .filter(|(_, _, job)| !job.rest_read && deadline_of(job).is_some_and(|deadline| deadline <= at));
    // The tuning ends when the wait for a quota or for capacity expires, so the facts must show first that no job has
    // started, or got instances.
    let expires = |deadline: Option<Time>| deadline.is_some_and(|deadline| deadline <= at);
    let quota = expires(state.quota_expires_at());
    let capacity = expires(state.capacity_wait_expires_at(definition));
    let waiting = state.jobs().filter(move |(_, _, job)| capacity || (quota && !job.accepted));
    let jobs = unread.chain(waiting).map(|(key, _, _)| key);
    bill::settled_by(definition, state, at)
        .chain(jobs)
        .chain(pool::settled_by(state, at).map(|pool| pool.job))
        .collect()
}

/// Returns the next time at which [`next`] may return a ruling although no other fact arrives.
pub fn deadline(definition: &Definition, state: &State) -> Option<Time> {
    if state.is_ended() {
        return None;
    }
    let retries = state.trials.values().filter(|trial| trial.job.is_none()).filter_map(|t| t.retry_at);
    let tuning = finish::runtime_deadline(definition).filter(|_| state.status == Status::Active);
    let probe = state.lack.as_ref().map(|lack| lack.until);
    // Starts wait for both.
    let held = state
        .hold_starts_until
        .max(probe)
        .into_iter()
        .chain(state.long_hold_at())
        .chain(state.long_lack_at());
    // These count by the greatest time on a fact ...
    let overruns = overrun::deadlines(definition, state);
    let by_facts = retries.chain(held).chain(tuning).chain(grant::deadlines(state)).chain(overruns);
    let by_facts = by_facts.filter(|deadline| *deadline > state.now);
    // ... and these by the time that the sweeper reports.
    let by_clock = bill::deadlines(definition, state)
        .chain(pool::deadlines(state))
        .chain(silence::deadline(definition, state))
        .chain(last_epoch::deadline(definition, state))
        .chain(rest::deadline(definition, state))
        .chain(state.quota_expires_at())
        .chain(state.capacity_wait_expires_at(definition))
        .chain(grant::turn_of_month(state))
        .filter(|deadline| *deadline > state.clock);
    by_clock.chain(by_facts).min()
}
