//! Folds one fact into the state, and so defines the meaning of each fact. Never fails and never decides.
//!
//! Folding is idempotent: a fact that arrives twice, late or out of order changes nothing the second time. A fact about
//! a job that has left the state changes nothing at all. [`fold`] returns whether the state changed, so that facts
//! without an effect are not recorded.

use super::{grants, metrics};
use crate::definition::Definition;
use crate::job::instances::Instances;
use crate::job::pool::Pool;
use crate::job::run::Run;
use crate::job::{Job, shortened};
use crate::log::fact::{Fact, JobEnd, JobKey, JobPhase, Recorded};
use crate::log::problem::{LogProblem, QUIET_BEFORE_BURST};
use crate::log::reasons::{EndReason, StopWhy};
use crate::state::capacity::{choice, falls_back, is_available};
use crate::state::changes::replace_if_later;
use crate::state::streams::place_complete;
use crate::state::{State, Status};
use crate::trial::Begun;
use crate::unit::ids::ChoiceId;
use crate::unit::limits::MAX_METRICS;
use crate::unit::time::Time;

/// Folds `recorded` into `state`; returns whether the state changed.
pub fn fold(definition: &Definition, state: &mut State, recorded: &Recorded) -> bool {
    let at = recorded.at;
    let before = recorded.fact.job().and_then(|key| {
        let job = state.job(key)?;
        Some((key, Instances::of(job), job.end(), job.is_accepted()))
    });
    let changed = fold_fact(definition, state, recorded);
    if !changed {
        return false;
    }
    state.now = state.now.max(at);
    // Also the time can show that no further line will come.
    let jobs: Vec<_> = if recorded.fact == Fact::TimePassed {
        state.jobs().map(|(key, _, _)| key).collect()
    } else {
        recorded.fact.job().into_iter().collect()
    };
    for job in jobs {
        place_complete(definition, state, job);
    }
    if let Some((key, instances, end, was_accepted)) = before {
        state.note_instances(definition, key, instances, at);
        if end.is_none() {
            note_lack(definition, state, key);
        }
        forget_promotion(state, key);
        if let Some(job) = state.job(key).filter(|job| job.is_accepted() && !was_accepted) {
            let order = job.order.clone();
            state.capacity.note_quota(definition, &order, None);
        }
    }
    state.clear_hold();
    true
}

fn fold_fact(definition: &Definition, state: &mut State, recorded: &Recorded) -> bool {
    let at = recorded.at;
    match &recorded.fact {
        Fact::TuningSubmitted => !std::mem::replace(&mut state.submitted, true),
        Fact::TimePassed => time_passed(definition, state, at),
        Fact::StopRequested => stop_requested(definition, state),
        Fact::LimitsChanged { .. } => limits_changed(state, recorded),
        Fact::MetricsLogged { job, .. } => metrics_logged(definition, state, *job, recorded),
        Fact::LogProblemSeen { job, problem } => log_problem_seen(state, *job, problem, at),
        Fact::JobStateChanged { job, phase, started, ended, message } => {
            with_job(state, *job, |job| job.note_state(at, *phase, (*started, *ended), message.as_deref()))
        }
        Fact::LogRead { job, streams } => log_read(state, *job, *streams),
        Fact::RestRead { job } => rest_read(state, *job),
        Fact::SilenceSeen { job, since } => with_job(state, *job, |job| job.silence_check.answer(*since)),
        Fact::BudgetGranted { .. } => grants::granted(state, &recorded.fact, at),
        Fact::GrantReturned { n } => state.money.grants.returns.remove(n),
        Fact::NoticeGiven { notice } => state.notices.remove(notice),
        Fact::FinalMetricsSeen { job, values } => with_job(state, *job, |job| {
            let is_new = job.metrics.is_empty() && !values.is_empty();
            if is_new {
                job.metrics = values.iter().copied().take(MAX_METRICS).collect();
            }
            is_new
        }),
        Fact::JobDescribed { .. } => job_described(definition, state, &recorded.fact, at),
        Fact::BillsConfirmed { bills } => bills_confirmed(state, bills),
        Fact::JobStarted { job } => {
            with_job(state, *job, |job| matches!(job.run, Run::Waiting { .. }) && job.note_seen(at).is_some())
        }
        Fact::JobSeen { job } => with_job(state, *job, |job| {
            let is_new = !job.is_accepted() || job.seen_at() < at;
            job.holds_slot() && !job.is_closed() && is_new && job.note_seen(at).is_some()
        }),
        Fact::StopAccepted { job } => stop_accepted(state, *job, at),
        Fact::JobStopRequested { job } => job_stop_requested(state, *job),
        Fact::StartRefused { job, message, name_is_foreign } => {
            never_started(state, *job, *name_is_foreign, Some(shortened(message)))
        }
        Fact::JobNeverStarted { job } => never_started(state, *job, false, None),
        Fact::PoolSeen { job, n } => {
            with_pool(state, *job, |pool| pool.read == *n && std::mem::replace(&mut pool.reading, false))
        }
        Fact::PoolOver { job, retained } => {
            with_pool(state, *job, |pool| pool.over.is_none() && pool.over.replace(*retained).is_none())
        }
        Fact::ActionDeferred { .. } => action_deferred(definition, state, recorded),
    }
}

fn metrics_logged(definition: &Definition, state: &mut State, key: JobKey, recorded: &Recorded) -> bool {
    let at = recorded.at;
    let Fact::MetricsLogged { stream, lines, began, .. } = &recorded.fact else { return false };
    let changed = match began {
        Some(index) => {
            let begun = Begun { stream: stream.clone(), at, index: *index };
            metrics::fold_begun(definition, state, key, begun)
        }
        None => metrics::fold(definition, state, key, stream, lines),
    };
    if changed {
        let logged = lines.iter().map(|line| line.at).max().unwrap_or(at);
        with_job(state, key, |job| {
            if let Some(trace) = job.note_seen(at) {
                trace.note_instances(logged);
            }
            true
        });
    }
    changed
}

/// Forgets what promoted a trial once the service has accepted a job of its rung: a further attempt is no promotion.
fn forget_promotion(state: &mut State, key: JobKey) {
    if state.job(key).is_some_and(Job::is_accepted)
        && let Some(trial) = state.trials.get_mut(key.trial)
    {
        trial.judged = trial.judged.filter(|judged| !judged.verdict.continues);
    }
}

/// Records that a job ended because it got no instances. Starts wait if no other instances can be tried.
fn note_lack(definition: &Definition, state: &mut State, key: JobKey) {
    let Some(job) = state.job(key) else { return };
    let lacks = match job.end() {
        Some(JobEnd::CapacityError) => true,
        Some(JobEnd::MaxWait) => !falls_back(definition, job),
        Some(
            JobEnd::Completed
            | JobEnd::Stopped
            | JobEnd::MaxRuntime
            | JobEnd::AlgorithmError
            | JobEnd::ServiceError,
        )
        | None => false,
    };
    if !lacks {
        return;
    }
    let (ordered, instances) = (job.order.at, job.order.instances);
    state.capacity.note_lack_of_capacity(definition, instances, state.now);
    if !has_another_choice(definition, state, instances) {
        state.hold_for_capacity(definition.job.size(instances), ordered);
    }
}

/// Returns whether a job of the same cluster size has instances to try now.
fn has_another_choice(definition: &Definition, state: &State, lacking: ChoiceId) -> bool {
    is_available(definition, state, choice(definition, state, definition.job.size(lacking)))
}

fn with_job(state: &mut State, key: JobKey, change: impl FnOnce(&mut Job) -> bool) -> bool {
    let trial = state.trials.get_mut(key.trial);
    trial.and_then(|trial| trial.job_mut()).filter(|job| job.is(key)).is_some_and(change)
}

fn log_problem_seen(state: &mut State, key: JobKey, problem: &LogProblem, at: Time) -> bool {
    let is_known = state.results.log_problems.iter().any(|(_, known)| known.kind() == problem.kind());
    let is_short = || matches!(problem, LogProblem::Burst { .. }) && !is_quiet_before(state, key, at);
    if is_known || is_short() {
        return false;
    }
    state.results.log_problems.push((key, problem.clone()));
    true
}

/// Returns whether `job` ran and logged no value for [`QUIET_BEFORE_BURST`] before `at`.
fn is_quiet_before(state: &State, key: JobKey, at: Time) -> bool {
    let Some(trial) = state.trials.get(key.trial) else { return false };
    let Some(started) = trial.job().filter(|job| job.is(key)).and_then(Job::started) else {
        return false;
    };
    let latest = trial.streams.iter().filter_map(|stream| Some(stream.span?.1.0));
    at - latest.fold(started, Time::max) >= QUIET_BEFORE_BURST
}

fn with_pool(state: &mut State, key: JobKey, change: impl FnOnce(&mut Pool) -> bool) -> bool {
    state.money.pools.iter_mut().find(|pool| pool.job == key).is_some_and(change)
}

fn time_passed(definition: &Definition, state: &mut State, at: Time) -> bool {
    if at <= state.clock {
        return false;
    }
    state.clock = at;
    let live = state.trials.values_mut().filter_map(|trial| trial.job_mut());
    live.chain(state.money.billing.iter_mut().map(|(_, job)| job)).for_each(|job| job.tick(definition, at));
    true
}

fn stop_requested(definition: &Definition, state: &mut State) -> bool {
    // An ending tuning keeps its reason and its failure message, and its jobs are being stopped already. The exception
    // is a search that ended by itself: the refit that follows must not start, or must stop.
    let can_refit = matches!(&state.status, Status::Ending(why) if why.allows_refit());
    if state.status == Status::Active || (can_refit && definition.refit && state.refit.is_none()) {
        state.status = Status::Ending(EndReason::Stopped);
        return true;
    }
    let refit = state.refit.filter(|_| can_refit).and_then(|job| state.trials.get_mut(job.trial));
    let Some(trial) = refit.filter(|trial| trial.stop_why.is_none()) else { return false };
    trial.stop_why = Some(StopWhy::TuningEnding);
    true
}

/// Folds a user's request to stop one job. It also counts if the job stops already, or has just ended: its trial then gets
/// no further attempt.
fn job_stop_requested(state: &mut State, key: JobKey) -> bool {
    let Some(trial) = state.trials.get_mut(key.trial) else { return false };
    trial.job().is_some_and(|job| job.is(key)) && !std::mem::replace(&mut trial.stop_requested, true)
}

/// Folds limits that the user changed: the latest change of each limit is in force.
fn limits_changed(state: &mut State, recorded: &Recorded) -> bool {
    let Fact::LimitsChanged { cap, max_parallel, paused } = recorded.fact else { return false };
    let changes = &mut state.changes;
    let mut any = false;
    if let Some(cap) = cap.filter(|cap| replace_if_later(&mut changes.cap, recorded, *cap)) {
        state.money.ledger.change_cap(cap);
        any = true;
    }
    if let Some(most) = max_parallel
        && replace_if_later(&mut changes.max_parallel, recorded, most)
    {
        changes.most_parallel = changes.most_parallel.max(most);
        any = true;
    }
    let paused = paused.filter(|paused| replace_if_later(&mut changes.paused, recorded, *paused));
    // The wait for capacity begins anew with the next try.
    if paused == Some(false) {
        state.capacity.wait_from(recorded.at);
    }
    any | paused.is_some()
}

/// Folds the bill of a job, the only fact that settles its reservation.
fn job_described(definition: &Definition, state: &mut State, fact: &Fact, at: Time) -> bool {
    let Fact::JobDescribed { job: key, end, started, ended, billable_seconds, message, interruptions } = fact
    else {
        return false;
    };
    let seconds = *billable_seconds;
    if let Some(job) = state.money.concluded_job_mut(*key) {
        return bill_shown(job, seconds, started.is_some());
    }
    let choice = state.job(*key).map_or(ChoiceId(0), |job| job.order.instances);
    let amount = definition.cost(choice, seconds);
    let trial = state.trials.get(key.trial);
    let emitted = trial.is_some_and(|trial| trial.streams.iter().any(|s| s.attempt == key.attempt));
    let mut bill = None;
    let changed = with_job(state, *key, |job| {
        let before = job.clone();
        job.note_state(at, JobPhase::Ended(*end), (*started, *ended), message.as_deref());
        if let Some(trace) = job.note_seen(at) {
            trace.interruptions = trace.interruptions.max(*interruptions);
            if seconds > 0 {
                trace.note_instances(started.unwrap_or(at));
            }
        }
        // A bill of 0 seconds for a job that ran is not final: without a better one the job is settled in full later.
        let no_bill = seconds == 0 && started.is_none() && (job.started().is_some() || emitted);
        if job.bill.seconds().is_some() {
            bill_shown(job, seconds, started.is_some());
        }
        bill = (!job.is_closed() && !no_bill).then_some((seconds, amount));
        *job != before
    });
    if let Some((seconds, amount)) = bill {
        state.book_bill(definition, *key, seconds, amount);
    }
    changed || bill.is_some()
}

/// Records a bill that a ruling books once the job is concluded: the first one, or a higher one. `has_start` = the
/// description shows that the job ran.
fn bill_shown(job: &mut Job, seconds: u64, has_start: bool) -> bool {
    // As before the conclusion, a bill of 0 seconds for a job that ran is not final.
    let no_bill = seconds == 0 && !has_start && job.started().is_some();
    let booked = job.bill.seconds();
    let forgotten = booked.is_some() && crate::planted!(RiseForgotten);
    if no_bill || forgotten || Some(seconds) <= booked.max(job.bill.shown) {
        return false;
    }
    job.bill.shown = Some(seconds);
    true
}

/// Folds that bills were read once more and have not risen.
fn bills_confirmed(state: &mut State, bills: &[(JobKey, u64)]) -> bool {
    let mut changed = false;
    for (key, seconds) in bills {
        let Some(job) = state.billed_job_mut(*key) else { continue };
        changed |= job.bill.confirmed < Some(*seconds);
        job.bill.confirmed = job.bill.confirmed.max(Some(*seconds));
    }
    state.money.forget_final_bills();
    changed
}

fn stop_accepted(state: &mut State, key: JobKey, at: Time) -> bool {
    with_job(state, key, |job| {
        if job.is_void() {
            return false;
        }
        // Without an order, the fact shows nothing now and must have no effect when it comes again after the order.
        let is_first = job.stop.as_mut().is_some_and(|stop| !std::mem::replace(&mut stop.accepted, true));
        // A job that can be stopped exists, even if no fact reported that it was created.
        is_first && job.note_seen(at).is_some()
    })
}

fn rest_read(state: &mut State, key: JobKey) -> bool {
    with_job(state, key, |job| job.end().is_some() && job.final_log.answer())
}

fn log_read(state: &mut State, key: JobKey, streams: u32) -> bool {
    let trial = state.trials.get_mut(key.trial);
    trial.is_some_and(|trial| trial.read.answer(streams))
}

/// Folds that a job will never run: its reservation is free at once.
fn never_started(state: &mut State, key: JobKey, name_is_foreign: bool, refused: Option<String>) -> bool {
    let mut released = None;
    let changed = with_job(state, key, |job| {
        // Any other sign of the job proves that it started, unless another job has its name.
        if job.is_closed() || (!name_is_foreign && job.is_accepted()) {
            return false;
        }
        job.run = Run::Void { refused };
        released = Some(job.bill.reservation);
        true
    });
    if let Some(reservation) = released {
        state.money.ledger.release(reservation);
    }
    changed
}

fn action_deferred(definition: &Definition, state: &mut State, recorded: &Recorded) -> bool {
    let at = recorded.at;
    let Fact::ActionDeferred { job: key, not_before, reason, quota_exceeded } = &recorded.fact else {
        return false;
    };
    let (not_before, quota_exceeded) = (*not_before, *quota_exceeded);
    let mut not_started = false;
    let mut lacking = None;
    let changed = with_job(state, *key, |job| {
        let later = job.deferred.as_ref().is_none_or(|(until, _)| *until < not_before);
        if !later || job.is_closed() {
            return false;
        }
        if let Run::Waiting { quota_exceeded: is_blocked } = &mut job.run {
            not_started = true;
            *is_blocked |= quota_exceeded;
            lacking = quota_exceeded.then(|| job.order.clone());
        }
        job.deferred = Some((not_before, shortened(reason)));
        true
    });
    if let Some(order) = &lacking {
        state.capacity.note_lack_of_capacity(definition, order.instances, state.now.max(at));
        state.capacity.note_quota(definition, order, Some(reason));
    }
    if not_started {
        state.note_deferred_start(at, quota_exceeded.then(|| shortened(reason)));
    }
    // Another instance choice may have what this one lacks: the next job starts on it.
    let another = lacking.is_some_and(|order| {
        has_another_choice(definition, state, order.instances)
            || state.capacity.is_out_of_reach(definition, definition.job.size(order.instances))
    });
    if not_started && !another {
        let until = state.capacity.no_start_before.map_or(not_before, |until| until.max(not_before));
        state.capacity.no_start_before = Some(until);
    }
    changed
}
