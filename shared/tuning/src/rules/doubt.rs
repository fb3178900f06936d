//! Doubts that a tuning can succeed: its trials end without a finite value, or its starts are refused.
//!
//! A configuration can fail fast, for example for lack of memory, while good ones have not logged their first epoch. So
//! a doubt only holds new trials. The tuning fails when no live trial is left that could dispel the doubt.

use crate::definition::Definition;
use crate::job::Job;
use crate::log::fact::JobEnd;
use crate::log::fact::JobKey;
use crate::log::problem::LogProblem;
use crate::rules::promote;
use crate::state::State;
use crate::trial::Trial;
use crate::unit::ids::count;
use crate::unit::limits::{MAX_REFUSALS, MAX_TRIALS_WITHOUT_LINE, MAX_TRIALS_WITHOUT_VALUE};

/// Number of trials without a value after which a tuning is in doubt, if a log shows the cause.
const TRIALS_WITH_CAUSE: u32 = 2;

/// Returns why the tuning may not succeed, for people; `None` without a doubt. No new trial starts meanwhile.
pub fn doubt(definition: &Definition, state: &State) -> Option<String> {
    // A job that has ended frees its slot before its log and its bill are read.
    let to_conclude = state.trials.values().filter(|trial| has_ended_fruitless(trial)).count();
    let trials = state.results.fruitless.trials.saturating_add(count(to_conclude));
    if state.capacity.refusals >= MAX_REFUSALS {
        let refused = state.capacity.refusals;
        let last = last_failure(state);
        return Some(format!(
            "the training service refused {refused} training jobs in a row. Last error: {last}"
        ));
    }
    // One definition must not end the trials of another that was not tried as often.
    let of_each = |most: u32| most.saturating_mul(count(definition.definition_count()));
    if state.results.has_logged {
        return (trials >= of_each(MAX_TRIALS_WITHOUT_VALUE)).then(|| {
            let last = last_failure(state);
            format!("{trials} trials in a row ended without a finite value of the objective metric. Last failure: {last}")
        });
    }
    let is_cause_known = hint(state).is_some_and(|(_, _, is_cause)| is_cause);
    let most = if is_cause_known { TRIALS_WITH_CAUSE } else { MAX_TRIALS_WITHOUT_LINE };
    (trials >= of_each(most)).then(|| without_line(state, trials))
}

fn has_ended_fruitless(trial: &Trial) -> bool {
    let end = trial.job().and_then(Job::end);
    matches!(end, Some(JobEnd::AlgorithmError | JobEnd::Completed)) && !trial.has_value()
}

/// Returns the message of a tuning whose trials have all ended without a line of the objective.
pub(crate) fn without_line(state: &State, trials: u32) -> String {
    if let Some(cause) = state.results.failures.only_cause().filter(|cause| cause.count == trials) {
        let jobs = match trials {
            1 => "the first training job failed".to_owned(),
            _ => format!("the first {trials} training jobs failed for the same reason"),
        };
        return format!("{jobs}: {}", cause.reason);
    }
    let attempts = if trials == 1 { "1 attempt".to_owned() } else { format!("{trials} attempts") };
    if let Some((job, hint, _)) = hint(state) {
        return format!(
            "no training job logged a value of the objective metric in {attempts}: {hint} (log of trial {})",
            job.trial
        );
    }
    if state.results.counters.completed > 0 || state.results.last_failure.is_none() {
        return format!(
            "no training job logged a value of the objective metric in {attempts}: check the Regex of the metric \
             against the log of a training job"
        );
    }
    format!("no training job succeeded after {attempts}. Last failure: {}", last_failure(state))
}

/// Returns what the log of a job shows about missing values, and whether this is their cause.
fn hint(state: &State) -> Option<(JobKey, &str, bool)> {
    state.results.log_problems.iter().find_map(|(job, problem)| match problem {
        LogProblem::NoValue { hint, is_cause } => Some((*job, hint.as_str(), *is_cause)),
        LogProblem::NumberCut { .. } | LogProblem::Redrawn { .. } | LogProblem::Burst { .. } => None,
    })
}

fn last_failure(state: &State) -> &str {
    state.results.last_failure.as_deref().unwrap_or("no error was reported")
}

/// Returns the failure message of a tuning in doubt, once no live or waiting trial can dispel the doubt.
pub(crate) fn confirmed(definition: &Definition, state: &State) -> Option<String> {
    let message = doubt(definition, state)?;
    // A quota may block a start for a day.
    let is_blocked = |trial: &Trial| trial.job().is_some_and(Job::is_blocked_by_quota);
    let is_live = state.trials.values().any(|trial| !is_blocked(trial));
    (!is_live && promote::next(definition, state, &|_| true, true).is_none()).then_some(message)
}
