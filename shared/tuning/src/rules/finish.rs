//! The criteria that end a tuning, and its end.

use crate::definition::Definition;
use crate::log::fact::JobKey;
use crate::log::reasons::EndReason;
use crate::log::ruling::{NoticeOrder, Order, Ruling};
use crate::rules::Outlook;
use crate::rules::outlook::is_deferred;
use crate::rules::{Rule, View, doubt, grant, never, nothing, notice, refit};
use crate::state::{State, Status};
use crate::unit::limits::QUOTA_WAIT_MAX;
use crate::unit::money::MicroUsd;
use crate::unit::time::{Millis, Time};

/// Ends an active tuning that meets a completion criterion.
pub(crate) const ENDING: Rule = Rule {
    next: |view| ending(view.definition, view.state),
    wakes: |view| {
        let runtime = runtime_deadline(view.definition).filter(|_| view.state.status == Status::Active);
        let by_facts = view.by_facts(runtime.into_iter().chain(grant::expires_at(view.state)));
        let capacity = view.state.capacity_wait_expires_at(view.definition);
        let by_clock = view.by_clock(view.state.capacity.quota_expires_at().into_iter().chain(capacity));
        by_facts.into_iter().chain(by_clock).min()
    },
    folds_first: waiting_jobs,
};

pub(crate) const END: Rule = Rule {
    next: |view| match view.outlook() {
        Outlook::Over(why) => end(view.definition, view.state, why.clone()),
        Outlook::Start(_) | Outlook::Busy | Outlook::Deferred => None,
    },
    wakes: never,
    folds_first: nothing,
};

/// Returns when the running time of the tuning is over; `None` without such a limit.
pub(crate) fn runtime_deadline(definition: &Definition) -> Option<Time> {
    let seconds = definition.limits.max_runtime_seconds?;
    Some(definition.created + Millis::from_seconds(seconds))
}

/// Ends an active tuning that meets a completion criterion.
pub(crate) fn ending(definition: &Definition, state: &State) -> Option<Ruling> {
    if state.status != Status::Active {
        return None;
    }
    let limits = &definition.limits;
    let has_finished =
        |trial| !state.trials.contains_key(trial) && !state.search.waiting.contains_key(&trial);
    // The trials that the finalist stopped have not failed to improve.
    let not_improving = limits.not_improving.filter(|_| state.finalist.is_none());
    let why = if grant::has_expired(state) {
        EndReason::CostCap
    } else if let Some(message) = failure(definition, state) {
        EndReason::Failed(message)
    } else if state.capacity_wait_has_expired(definition) {
        EndReason::NoCapacity
    } else if state.finalist.is_some_and(has_finished) {
        EndReason::Target
    } else if not_improving.is_some_and(|most| state.search.since_improved >= most) {
        EndReason::NotImproving
    } else if runtime_deadline(definition).is_some_and(|deadline| state.now >= deadline) {
        EndReason::MaxRuntime
    } else {
        return None;
    };
    Some(Ruling::TuningEnding { why })
}

/// Returns the jobs whose facts must show, before the wait for a quota or for capacity expires, that none has started, or
/// got instances.
fn waiting_jobs(view: &View<'_>, at: Time) -> Vec<JobKey> {
    let expires = |deadline: Option<Time>| deadline.is_some_and(|deadline| deadline <= at);
    let quota = expires(view.state.capacity.quota_expires_at());
    let capacity = expires(view.state.capacity_wait_expires_at(view.definition));
    let waiting = view.state.jobs().filter(|(_, _, job)| capacity || (quota && !job.is_accepted()));
    waiting.map(|(key, _, _)| key).collect()
}

/// Returns the failure message of a tuning that cannot succeed: none of its trials shows that its program works, or a
/// quota of the account blocked every start for too long.
fn failure(definition: &Definition, state: &State) -> Option<String> {
    if let Some(answer) = state.capacity.insufficient_quota(definition) {
        return Some(format!(
            "a quota of the account is too small for any training job of this tuning. Request a higher quota (Service \
             Quotas, Amazon SageMaker, the instance type for training job usage) or use another instance type, then \
             submit the tuning again. Answer: {answer}"
        ));
    }
    if state.quota_has_expired() {
        return Some(format!(
            "a quota of the account blocked every training job for {} hours. Request a higher quota (Service Quotas, \
             Amazon SageMaker, the instance type for training job usage) or use another instance type, then submit \
             the tuning again. Last error: {}",
            QUOTA_WAIT_MAX.as_seconds() / 3_600,
            state
                .capacity
                .deferral
                .as_ref()
                .and_then(|deferral| deferral.last_answer.as_deref())
                .unwrap_or_default()
        ));
    }
    doubt::confirmed(definition, state)
}

/// Ends a search that is over for the reason `why`: orders the refit, returns all unused money, and ends the tuning once
/// that money is back in the month's cap.
pub(crate) fn end(definition: &Definition, state: &State, why: EndReason) -> Option<Ruling> {
    let refit = refit::order(definition, state, &why);
    if refit.is_some() && !is_deferred(definition, state) {
        return refit;
    }
    let notice = notice::cap_used_up(definition, state, &why);
    // The last bills are read once more first.
    if notice.is_some() || !state.money.billing.is_empty() {
        return notice;
    }
    grant::return_unused(state, MicroUsd::ZERO)
        .or_else(|| (refit.is_none() && state.money.grants.is_settled()).then(|| ended(state, why)))
}

/// Ends the tuning. One that ran out of jobs, money or time without any value has failed.
fn ended(state: &State, why: EndReason) -> Ruling {
    let nothing_succeeded = state.search.incumbent.is_none() && state.results.launched > 0;
    let why = if nothing_succeeded && why.hides_failure() {
        let trials = state.results.fruitless.trials;
        let all = (!state.results.has_logged && trials > 0).then(|| doubt::without_line(state, trials));
        let message = all.or_else(|| state.results.last_failure.clone());
        EndReason::Failed(message.unwrap_or_else(|| without_value(state).to_owned()))
    } else {
        why
    };
    Ruling::Order(Order::Notice(NoticeOrder::TuningEnded { why }))
}

/// Returns why a search in which no job failed has no value.
fn without_value(state: &State) -> &'static str {
    if state.results.has_logged {
        "no trial ended with a finite value of the objective metric: check the training program, for example its \
         learning rate"
    } else {
        "no training job logged a value of the objective metric: check the Regex of the metric against the log of a \
         training job"
    }
}
