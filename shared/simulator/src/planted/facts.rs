//! Planted bugs in the meaning of facts.

use super::list::{Mutation, is_on};
use tuning::change::fold;
use tuning::definition::Definition;
use tuning::job::Job;
use tuning::job::run::Run;
use tuning::log::fact::{Fact, JobKey, JobPhase, Recorded};
use tuning::state::State;
use tuning::unit::ids::ChoiceId;

/// Folds a fact like [`fold::fold`], with the bug that is on.
pub(super) fn fold(definition: &Definition, state: &mut State, recorded: &Recorded) -> bool {
    match &recorded.fact {
        Fact::JobDescribed { job, .. } => described(definition, state, recorded, *job),
        Fact::LimitsChanged { .. } => limits_changed(definition, state, recorded),
        Fact::StopAccepted { job } => stop_accepted(definition, state, recorded, *job),
        Fact::StartRefused { job, .. } | Fact::JobNeverStarted { job } => {
            if is_on(Mutation::CancelledThoughSeen)
                && let Some(job) = job_of(state, *job).filter(|job| !job.is_closed())
            {
                job.run = Run::Waiting { quota_exceeded: false };
            }
            fold::fold(definition, state, recorded)
        }
        Fact::JobStateChanged { job, phase: JobPhase::Interrupted, .. } => {
            interrupted(definition, state, recorded, *job)
        }
        Fact::MetricsLogged { .. } => metrics_logged(definition, state, recorded),
        Fact::TuningSubmitted
        | Fact::TimePassed
        | Fact::StopRequested
        | Fact::JobStopRequested { .. }
        | Fact::JobStateChanged { .. }
        | Fact::BillsConfirmed { .. }
        | Fact::LogRead { .. }
        | Fact::RestRead { .. }
        | Fact::SilenceSeen { .. }
        | Fact::BudgetGranted { .. }
        | Fact::GrantReturned { .. }
        | Fact::NoticeGiven { .. }
        | Fact::JobStarted { .. }
        | Fact::JobSeen { .. }
        | Fact::PoolSeen { .. }
        | Fact::PoolOver { .. }
        | Fact::LogProblemSeen { .. }
        | Fact::FinalMetricsSeen { .. }
        | Fact::ActionDeferred { .. } => fold::fold(definition, state, recorded),
    }
}

fn job_of(state: &mut State, key: JobKey) -> Option<&mut Job> {
    state.trials.get_mut(key.trial)?.job_mut().filter(|job| job.is(key))
}

fn described(definition: &Definition, state: &mut State, recorded: &Recorded, key: JobKey) -> bool {
    let (ledger, pools) = (state.money.ledger.clone(), state.money.pools.len());
    let mut definition = definition.clone();
    if is_on(Mutation::OthersBilledAsFirst) {
        let first = definition.job.instances(ChoiceId(0));
        definition.job.fallbacks.fill(first);
    }
    let mut recorded = recorded.clone();
    let seen_started = state.job(key).and_then(Job::started);
    if is_on(Mutation::ZeroBillBelieved)
        && let Fact::JobDescribed { started, billable_seconds: 0, .. } = &mut recorded.fact
    {
        *started = started.or(seen_started);
    }
    let changed = fold::fold(&definition, state, &recorded);
    if is_on(Mutation::ForgetToSettle) {
        state.money.ledger = ledger;
    }
    if state.money.pools.len() > pools
        && is_on(Mutation::PoolForgotten)
        && let Some(pool) = state.money.pools.pop_if(|pool| pool.job == key)
    {
        state.money.ledger.release(pool.reservation);
    }
    changed
}

fn limits_changed(definition: &Definition, state: &mut State, recorded: &Recorded) -> bool {
    let before = state.money.ledger.clone();
    if let Fact::LimitsChanged { cap, max_parallel, paused } = &recorded.fact
        && is_on(Mutation::OlderChangeStands)
    {
        let changes = &mut state.changes;
        changes.cap = changes.cap.take().filter(|_| cap.is_none());
        changes.max_parallel = changes.max_parallel.take().filter(|_| max_parallel.is_none());
        changes.paused = changes.paused.take().filter(|_| paused.is_none());
    }
    let changed = fold::fold(definition, state, recorded);
    let is_lower = before.cap.zip(state.money.ledger.cap).is_some_and(|(before, now)| now < before);
    if is_lower && is_on(Mutation::LoweredCapIgnored) {
        state.money.ledger = before;
    }
    changed
}

fn stop_accepted(definition: &Definition, state: &mut State, recorded: &Recorded, key: JobKey) -> bool {
    let changed = fold::fold(definition, state, recorded);
    if is_on(Mutation::StopFreesReservation)
        && let Some(job) = job_of(state, key)
    {
        let freed = std::mem::take(&mut job.bill.reservation);
        state.money.ledger.release(freed);
    }
    changed
}

fn interrupted(definition: &Definition, state: &mut State, recorded: &Recorded, key: JobKey) -> bool {
    let since = job_of(state, key).and_then(|job| job.entered(JobPhase::Interrupted));
    let is_again = since.is_some_and(|since| recorded.at >= since);
    let changed = fold::fold(definition, state, recorded);
    if is_again
        && is_on(Mutation::InterruptionTwice)
        && let Some(Run::Known(trace)) = job_of(state, key).map(|job| &mut job.run)
    {
        trace.interruptions = trace.interruptions.saturating_add(1);
        return true;
    }
    changed
}

fn metrics_logged(definition: &Definition, state: &mut State, recorded: &Recorded) -> bool {
    let changed = fold::fold(definition, state, recorded);
    if changed || !is_on(Mutation::CountEpochTwice) {
        return changed;
    }
    let mut again = recorded.clone();
    if let Fact::MetricsLogged { lines, .. } = &mut again.fact {
        for line in lines {
            line.id.push('\'');
        }
    }
    fold::fold(definition, state, &again)
}
