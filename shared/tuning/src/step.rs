//! Steps: each holds the facts that it took and the rulings that followed. The steps are the log of a tuning; their
//! sum is its state.

use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::invariant;
use crate::log::fact::{JobKey, Recorded};
use crate::log::reasons::EndReason;
use crate::log::ruling::Ruling;
use crate::log::size::{fact_bytes, row_bytes, ruling_bytes};
use crate::planted::{fold, next};
use crate::state::{State, Status};
use crate::trial::summary::{JobSummary, full_summary};
use crate::unit::limits::{
    MAX_FACTS_PER_STEP, MAX_RULINGS_PER_STEP, STEP_BYTES, STEP_BYTES_MAX, STEP_FACT_BYTES, STEP_ROWS_BYTES,
};
use crate::unit::time::Time;

/// One step of a tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its number, from 1, without gaps.
    pub n: u64,
    /// The time of the state after it.
    pub at: Time,
    /// The facts that changed the state, in the order they were folded.
    pub facts: Vec<Recorded>,
    /// The rulings, in order.
    pub rulings: Vec<Ruling>,
}

/// The result of [`advance`].
#[derive(Debug, Clone, PartialEq)]
pub struct Advance {
    /// The step; `None` if no fact changed the state and no ruling was made.
    pub step: Option<Step>,
    /// Jobs that left the state.
    pub concluded: Vec<JobSummary>,
    /// How many of the given facts were processed; call [`advance`] again with the rest.
    pub taken: usize,
    /// Whether the step was full before all rulings were made: call [`advance`] again, even without facts.
    pub has_more: bool,
    /// A job whose row has the configuration of a trial to promote. Drop the state and the step, and call [`advance`]
    /// again with a state that [`Search::bring`](crate::state::search::Search::bring) has given that trial.
    pub missing: Option<JobKey>,
}

/// Folds facts into `state` and decides, as step `n`. Takes at most as many facts as fit one step.
pub fn advance(definition: &Definition, state: &mut State, n: u64, facts: &[Recorded]) -> Advance {
    let mut step = Step { n, at: state.now, facts: Vec::new(), rulings: Vec::new() };
    let mut taken = 0_usize;
    let mut bytes = 0_usize;
    for recorded in facts {
        if step.facts.len() >= MAX_FACTS_PER_STEP || bytes >= STEP_FACT_BYTES {
            break;
        }
        taken = taken.saturating_add(1);
        if fold(definition, state, recorded) {
            bytes = bytes.saturating_add(fact_bytes(recorded));
            step.facts.push(recorded.clone());
        }
    }
    let mut concluded = Vec::new();
    let stopped = rule(definition, state, bytes, &mut step.rulings, &mut concluded);
    step.at = state.now;
    let empty = step.facts.is_empty() && step.rulings.is_empty();
    let missing = if let Some(Stopped::Missing(job)) = stopped { Some(job) } else { None };
    Advance { step: (!empty).then_some(step), concluded, taken, has_more: stopped.is_some(), missing }
}

/// Returns whether one step surely takes all of `facts`.
pub fn fit_a_step<'f>(facts: impl Iterator<Item = &'f Recorded>) -> bool {
    let (count, bytes) = facts.fold((0_usize, 0_usize), |(count, bytes), recorded| {
        (count.saturating_add(1), bytes.saturating_add(fact_bytes(recorded)))
    });
    count <= MAX_FACTS_PER_STEP && bytes <= STEP_FACT_BYTES
}

/// Why a step ended before all rulings were made.
enum Stopped {
    Full,
    Missing(JobKey),
}

/// Makes rulings until none is left; returns why it stopped earlier.
fn rule(
    definition: &Definition,
    state: &mut State,
    mut bytes: usize,
    rulings: &mut Vec<Ruling>,
    concluded: &mut Vec<JobSummary>,
) -> Option<Stopped> {
    check(definition, state, rulings);
    let mut rows = 0_usize;
    while let Some(ruling) = next(definition, state) {
        if rulings.len() >= MAX_RULINGS_PER_STEP || bytes >= STEP_BYTES {
            return Some(Stopped::Full);
        }
        if let Some(job) = state.search.lacks(&ruling) {
            return Some(Stopped::Missing(job));
        }
        let failed_already = matches!(state.status, Status::Ending(EndReason::Failed(_)));
        let ruling = match invariant::forbids(definition, state, &ruling) {
            // A tuning that is already failing for a broken promise decides nothing more.
            Some(_) if failed_already => return None,
            Some(message) => failed(&message),
            None => ruling,
        };
        let larger = bytes.saturating_add(ruling_bytes(&ruling));
        // A single ruling always fits: a following step without facts takes it.
        if bytes > 0 && larger > STEP_BYTES_MAX {
            return Some(Stopped::Full);
        }
        bytes = larger;
        rows = rows.saturating_add(row_bytes(definition, &ruling));
        if !rulings.is_empty() && rows > STEP_ROWS_BYTES {
            return Some(Stopped::Full);
        }
        if let Some(key) = ruling.concludes()
            && let Some(trial) = state.trials.get(key.trial)
            && let Some(job) = trial.job()
        {
            let summary = full_summary(definition, key, trial, job);
            concluded.push(JobSummary { concluded: true, ..summary });
        }
        state.apply(definition, &ruling);
        rulings.push(ruling);
        check(definition, state, rulings);
    }
    None
}

/// Fails the tuning if its state breaks an invariant, whether by a fact or by a ruling.
fn check(definition: &Definition, state: &mut State, rulings: &mut Vec<Ruling>) {
    let failed_already = matches!(state.status, Status::Ending(EndReason::Failed(_)) | Status::Ended { .. });
    if let Some(message) = invariant::broken(definition, state).filter(|_| !failed_already) {
        let ruling = failed(&message);
        state.apply(definition, &ruling);
        rulings.push(ruling);
    }
}

fn failed(message: &str) -> Ruling {
    Ruling::TuningEnding {
        why: EndReason::Failed(format!("internal error, a promise would be broken: {message}")),
    }
}

/// Returns the jobs whose rows have the trials that `step` promotes and `state`, the one before it, lacks.
pub fn missing(state: &State, step: &Step) -> Vec<JobKey> {
    step.rulings.iter().filter_map(|ruling| state.search.lacks(ruling)).collect()
}

/// Applies a recorded `step` to the state before it, which has all trials that the step promotes (see [`missing`]).
/// Decides nothing.
pub fn load(definition: &Definition, state: &mut State, step: &Step) {
    for recorded in &step.facts {
        fold(definition, state, recorded);
    }
    for ruling in &step.rulings {
        state.apply(definition, ruling);
    }
}

/// Decides `step` again from its facts and returns the rulings, to be compared with the recorded ones.
pub fn replay(definition: &Definition, state: &mut State, step: &Step) -> Vec<Ruling> {
    let advance = advance(definition, state, step.n, &step.facts);
    advance.step.map(|step| step.rulings).unwrap_or_default()
}
