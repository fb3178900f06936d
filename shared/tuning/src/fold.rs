//! Gives facts their meaning: folds one fact into the state. Never fails and never decides.
//!
//! Idempotent from the state alone: a fact taken twice, late or out of order changes nothing the second time. A fact of
//! a job that has left the state changes nothing at all. Returns whether anything changed, so that facts without effect
//! are not recorded.

mod grants;
mod metrics;

use crate::changes::put;
use crate::decide::{must_end_at, spot};
use crate::definition::Definition;
use crate::fact::{Fact, JobEnd, JobKey, JobPhase, Recorded};
use crate::limits::MAX_MESSAGE_CHARS;
use crate::money::MicroUsd;
use crate::pool::Pool;
use crate::ruling::{EndReason, StopWhy};
use crate::state::{Bill, Job, State, Status};

pub(crate) use metrics::place_streams;

/// Folds `recorded` into `state`; whether anything changed.
pub fn fold(definition: &Definition, state: &mut State, recorded: &Recorded) -> bool {
    let at = recorded.at;
    let changed = match &recorded.fact {
        Fact::TuningSubmitted => !std::mem::replace(&mut state.submitted, true),
        Fact::TimePassed => time_passed(state, at),
        Fact::StopRequested => stop_requested(definition, state),
        Fact::LimitsChanged { cap, max_parallel, paused } => {
            limits_changed(state, (at, &recorded.key), (*cap, *max_parallel, *paused))
        }
        Fact::MetricsLogged { job, stream, lines } => {
            let changed = metrics::fold(definition, state, *job, stream, lines);
            if changed {
                with_job(state, *job, |job| {
                    job.accepted = true;
                    job.seen_at = job.seen_at.max(at);
                    true
                });
            }
            changed
        }
        Fact::JobStateChanged { job, phase, started, ended, message } => with_job(state, *job, |job| {
            let before = job.clone();
            job_state_changed(job, at, *phase, (*started, *ended), message.as_deref());
            *job != before
        }),
        Fact::LogRead { job, streams } => log_read(state, *job, *streams),
        Fact::SilenceSeen { job, since } => with_job(state, *job, |job| {
            let changed = job.silence_seen < Some(*since);
            job.silence_seen = job.silence_seen.max(Some(*since));
            changed
        }),
        Fact::BudgetGranted { .. } => grants::granted(state, &recorded.fact, at),
        Fact::GrantReturned { n } => state.grants.returns.remove(n),
        Fact::NoticeGiven { notice } => state.notices.remove(notice),
        Fact::JobDescribed { .. } => job_described(definition, state, &recorded.fact, at),
        Fact::JobStarted { job } => with_job(state, *job, |job| {
            let changed = !std::mem::replace(&mut job.accepted, true);
            if changed {
                job.seen_at = job.seen_at.max(at);
            }
            changed
        }),
        Fact::JobSeen { job } => with_job(state, *job, |job| {
            let changed = job.end.is_none() && !job.is_closed() && (!job.accepted || job.seen_at < at);
            if changed {
                job.accepted = true;
                job.seen_at = job.seen_at.max(at);
            }
            changed
        }),
        Fact::StopAccepted { job } => stop_accepted(state, *job, at),
        Fact::StartRefused { job, message } => {
            called_off(state, *job, |job| job.refused = Some(cut(message)))
        }
        Fact::JobNeverStarted { job } => called_off(state, *job, |job| job.never_started = true),
        Fact::PoolSeen { job, n } => {
            pool(state, *job, |pool| pool.read == *n && std::mem::replace(&mut pool.reading, false))
        }
        Fact::PoolOver { job, retained } => {
            pool(state, *job, |pool| pool.over.is_none() && pool.over.replace(*retained).is_none())
        }
        Fact::ActionDeferred { job, not_before, reason, limited } => {
            deferred(definition, state, *job, (at, *not_before, reason, *limited))
        }
    };
    if changed {
        state.now = state.now.max(at);
        state.let_go();
    }
    changed
}

fn with_job(state: &mut State, key: JobKey, change: impl FnOnce(&mut Job) -> bool) -> bool {
    let trial = state.trials.get_mut(&key.trial);
    trial.and_then(|trial| trial.job.as_mut()).filter(|job| job.is(key)).is_some_and(change)
}

fn pool(state: &mut State, key: JobKey, change: impl FnOnce(&mut Pool) -> bool) -> bool {
    state.pools.iter_mut().find(|pool| pool.job == key).is_some_and(change)
}

fn time_passed(state: &mut State, at: i64) -> bool {
    if at <= state.clock {
        return false;
    }
    state.clock = at;
    for job in state.trials.values_mut().filter_map(|trial| trial.job.as_mut()) {
        // A time from before the order, told hours late, says nothing of how long the bill has stayed away.
        if job.bill_ordered && job.bill_awaited_since.is_none() && at >= job.bill_ordered_at {
            job.bill_awaited_since = Some(at);
        }
        // Likewise one that came hours late, with signs of life that came before it was folded, says nothing of how long the
        // job has been gone: the sweeper looks at it from now on.
        if must_end_at(job).is_some_and(|end| at >= end && job.overdue_since < Some(end)) {
            job.overdue_since = Some(at);
        }
    }
    true
}

fn stop_requested(definition: &Definition, state: &mut State) -> bool {
    // One that is ending keeps its reason, and the message of a failure; its jobs are being stopped already. But one that
    // would train its best configuration once more does not.
    let goes_on = matches!(&state.status, Status::Ending(why) if crate::decide::refit::is_followed(why));
    if state.status == Status::Active || (goes_on && definition.refit && state.refit.is_none()) {
        state.status = Status::Ending(EndReason::Stopped);
        return true;
    }
    // The best configuration is trained once more: that is called off.
    let refit = state.refit.filter(|_| goes_on).and_then(|job| state.trials.get_mut(&job.trial));
    let Some(trial) = refit.filter(|trial| trial.out.is_none()) else { return false };
    trial.out = Some(StopWhy::TuningEnding);
    true
}

/// The limits that a user changed: of each the latest stands.
fn limits_changed(
    state: &mut State,
    made: (i64, &str),
    (cap, max_parallel, paused): (Option<MicroUsd>, Option<u32>, Option<bool>),
) -> bool {
    let changes = &mut state.changes;
    let mut any = false;
    if let Some(cap) = cap.filter(|cap| put(&mut changes.cap, made, *cap)) {
        state.ledger.change_cap(cap);
        any = true;
    }
    if let Some(most) = max_parallel.filter(|most| put(&mut changes.max_parallel, made, *most)) {
        changes.most_parallel = changes.most_parallel.max(most);
        any = true;
    }
    any | paused.is_some_and(|paused| put(&mut changes.paused, made, paused))
}

fn job_state_changed(
    job: &mut Job,
    at: i64,
    phase: JobPhase,
    (started, ended): (Option<i64>, Option<i64>),
    message: Option<&str>,
) {
    job.accepted = true;
    job.seen_at = job.seen_at.max(at);
    job.started = job.started.or(started);
    job.ended = job.ended.or(ended);
    job.message = job.message.take().or_else(|| message.map(cut));
    if let JobPhase::Ended(end) = phase {
        if job.end.is_none() {
            job.phase = phase;
            job.phase_at = at;
            job.end = Some(end);
            job.end_at = at;
        }
    } else if job.end.is_none()
        && ((at, place(phase)) > (job.phase_at, place(job.phase))
            || (at == job.phase_at && crate::planted!(InterruptionTwice)))
    {
        // Every return to `Interrupted` is one interruption. The same one seen by another way may have another time.
        let again = job.phase == JobPhase::Interrupted && !crate::planted!(InterruptionTwice);
        if phase == JobPhase::Interrupted && !again {
            job.interruptions = job.interruptions.saturating_add(1);
        }
        job.phase = phase;
        job.phase_at = at;
    }
}

/// The usual order of states: events carry whole seconds, so that two states may have one time.
fn place(phase: JobPhase) -> u8 {
    match phase {
        JobPhase::Other => 0,
        JobPhase::Starting => 1,
        JobPhase::Downloading => 2,
        JobPhase::Training => 3,
        JobPhase::Interrupted => 4,
        JobPhase::Stopping => 5,
        JobPhase::Uploading => 6,
        JobPhase::Ended(_) => 7,
    }
}

/// The bill: the only thing that settles a reservation.
fn job_described(definition: &Definition, state: &mut State, fact: &Fact, at: i64) -> bool {
    let Fact::JobDescribed { job: key, end, started, ended, billable_seconds, message, interruptions } = fact
    else {
        return false;
    };
    let choice = state.job(*key).map_or(0, |job| job.instances);
    let choice = if crate::planted!(OthersBilledAsFirst) { 0 } else { choice };
    let cost = definition.job.instances(choice).cost(*billable_seconds).unwrap_or(MicroUsd::ZERO);
    let trial = state.trials.get(&key.trial);
    let emitted = trial.is_some_and(|trial| trial.streams.iter().any(|s| s.attempt == key.attempt));
    let mut settled = None;
    let mut kept = None;
    let changed = with_job(state, *key, |job| {
        let before = job.clone();
        job_state_changed(job, at, JobPhase::Ended(*end), (*started, *ended), message.as_deref());
        job.interruptions = job.interruptions.max(*interruptions);
        // A bill of nothing for a job that was seen to run is no bill; without one it is settled in full later.
        let no_bill = *billable_seconds == 0 && started.is_none() && (job.started.is_some() || emitted);
        let no_bill = no_bill && !crate::planted!(ZeroBillBelieved);
        if !job.is_closed() && !no_bill {
            job.bill = Some(Bill { seconds: Some(*billable_seconds), amount: cost });
            settled = Some(job.reservation);
            kept = kept_instances(definition, *key, job, at);
        }
        *job != before
    });
    // The part of the reservation for instances that are kept stays reserved.
    if let Some(pool) = kept {
        settled = settled.map(|reservation| reservation.minus(pool.reservation));
        state.pools.push(pool);
    }
    if let Some(reservation) = settled.filter(|_| !crate::planted!(ForgetToSettle)) {
        state.ledger.settle(reservation, cost);
    }
    // All lines of the job were folded before.
    if changed {
        place_streams(definition, state, *key);
    }
    changed
}

/// The instances that are kept after a job, if it had any.
fn kept_instances(definition: &Definition, key: JobKey, job: &Job, at: i64) -> Option<Pool> {
    let never_ran = job.started.is_none() && job.bill.is_none_or(|bill| bill.seconds == Some(0));
    if job.limits.keep_alive_seconds == 0 || never_ran || crate::planted!(PoolForgotten) {
        return None;
    }
    let reservation = definition.pool_worst_case(job.limits, job.instances).unwrap_or(MicroUsd::ZERO);
    Some(Pool::new(key, (job.instances, reservation), job.limits, job.ended.unwrap_or(at)))
}

fn stop_accepted(state: &mut State, key: JobKey, at: i64) -> bool {
    let mut freed = MicroUsd::ZERO;
    let changed = with_job(state, key, |job| {
        // What can be stopped exists, even if nobody heard that it was created.
        let changed = !job.stop_accepted || !job.accepted;
        if changed {
            job.seen_at = job.seen_at.max(at);
        }
        job.stop_accepted = true;
        job.accepted = true;
        if crate::planted!(StopFreesReservation) {
            freed = std::mem::take(&mut job.reservation);
        }
        changed
    });
    state.ledger.release(freed);
    changed
}

fn log_read(state: &mut State, key: JobKey, streams: u32) -> bool {
    let trial = state.trials.get_mut(&key.trial);
    let Some(trial) = trial.filter(|trial| trial.streams_read < streams) else { return false };
    trial.streams_read = streams;
    true
}

/// A job that will never run: its reservation is free at once.
fn called_off(state: &mut State, key: JobKey, mark: impl FnOnce(&mut Job)) -> bool {
    let mut released = None;
    let changed = with_job(state, key, |job| {
        // Whatever else was seen of it proves that it did start.
        if job.is_closed() || ((job.accepted || job.end.is_some()) && !crate::planted!(CalledOffThoughSeen)) {
            return false;
        }
        mark(job);
        released = Some(job.reservation);
        true
    });
    if let Some(reservation) = released {
        state.ledger.release(reservation);
    }
    changed
}

fn deferred(
    definition: &Definition,
    state: &mut State,
    key: JobKey,
    (at, not_before, reason, limited): (i64, i64, &str, bool),
) -> bool {
    let mut holds = false;
    let mut short = None;
    let changed = with_job(state, key, |job| {
        let later = job.deferred.as_ref().is_none_or(|(until, _)| *until < not_before);
        if !later || job.is_closed() {
            return false;
        }
        holds = !job.accepted;
        if limited && holds {
            job.limited = true;
            short = Some(job.instances);
        }
        job.deferred = Some((not_before, cut(reason)));
        true
    });
    if let Some(choice) = short {
        state.lacks_capacity(definition, choice, state.now.max(at));
    }
    if holds {
        state.put_off(at, limited.then(|| cut(reason)));
    }
    // What one choice of instances lacks, another may have: others go first.
    let another = short.is_some() && spot::is_to_be_had(definition, state, spot::choice(definition, state));
    if holds && !another {
        let until = state.hold_starts_until.map_or(not_before, |until| until.max(not_before));
        state.hold_starts_until = Some(until);
    }
    changed
}

fn cut(message: &str) -> String {
    message.chars().take(MAX_MESSAGE_CHARS).collect()
}

/// Counts the end of a job among AMT's counters.
pub(crate) fn count_end(state: &mut State, end: Option<JobEnd>) {
    let counters = &mut state.counters;
    let counter = match end {
        Some(JobEnd::Completed) => &mut counters.completed,
        Some(JobEnd::Stopped | JobEnd::MaxRuntime | JobEnd::MaxWait) => &mut counters.stopped,
        Some(JobEnd::CapacityError | JobEnd::ServiceError) => &mut counters.retryable_error,
        Some(JobEnd::AlgorithmError) | None => &mut counters.non_retryable_error,
    };
    *counter = counter.saturating_add(1);
}
