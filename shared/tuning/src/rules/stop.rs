//! Stops running jobs.

use crate::definition::Definition;
use crate::log::reasons::{EndReason, StopWhy};
use crate::log::ruling::{Order, Ruling};
use crate::rules::{Rule, last_epoch, nothing, overrun, promote, refit, silence, spot};
use crate::state::{State, Status};
use crate::trial::diverged::diverged;

pub(crate) const STOP: Rule = Rule {
    next: |view| order(view.definition, view.state),
    wakes: |view| {
        let overruns = overrun::deadlines(view.definition, view.state);
        let other_instances = spot::next_instances_at(view.state);
        let by_facts =
            view.by_facts(overruns.chain(view.state.capacity.long_hold_at()).chain(other_instances));
        by_facts.into_iter().chain(view.by_clock(last_epoch::deadlines(view.definition, view.state))).min()
    },
    folds_first: nothing,
};

/// Orders the stop of the next running job that has to stop. Each job is ordered to stop once.
///
/// A job stops when its trial is stopped, has all its epochs, trains past its rung's level, is silent or has diverged, when
/// its reservation is nearly used up, when its trial continues on other instances, when another trial reached the target,
/// or when the tuning is ending.
fn order(definition: &Definition, state: &State) -> Option<Ruling> {
    state.jobs().find_map(|(key, trial, job)| {
        // A job that was settled in full is presumed deleted: a stop of it would have no outcome.
        if job.stop.is_some() || job.is_closed() || !job.holds_slot() {
            return None;
        }
        let elsewhere = || {
            spot::interrupted(definition, state, trial, job)
                .or_else(|| spot::out_of_reach(definition, state, job))
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
            (_, None) if trial.refit().is_some() && refit::can_continue(definition, state, trial) => {
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
        let because = trial.judged.filter(|_| matches!(why, StopWhy::Rung { .. }));
        Some(Ruling::Order(Order::Stop { job: key, why, because }))
    })
}
