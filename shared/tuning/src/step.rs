//! A step: the facts it took, the rulings that followed. Steps are the log of a tuning; the state is their sum.

use serde::{Deserialize, Serialize};

use crate::conclude::full_summary;
use crate::decide;
use crate::definition::Definition;
use crate::fact::Recorded;
use crate::fold::fold;
use crate::invariant;
use crate::limits::{MAX_FACTS_PER_STEP, MAX_RULINGS_PER_STEP, STEP_BYTES, STEP_BYTES_MAX, STEP_FACT_BYTES};
use crate::ruling::{EndReason, Ruling};
use crate::size::{fact_bytes, ruling_bytes};
use crate::state::{State, Status};
use crate::summary::JobSummary;

/// One step of a tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its number, from 1, without gaps.
    pub n: u64,
    /// The state's time after it.
    pub at: i64,
    /// The facts that changed something, in the order they were folded.
    pub facts: Vec<Recorded>,
    /// The rulings, in order.
    pub rulings: Vec<Ruling>,
}

/// What [`advance`] made of some facts.
#[derive(Debug, Clone, PartialEq)]
pub struct Advance {
    /// The step; `None` if the facts changed nothing and nothing was owed.
    pub step: Option<Step>,
    /// Jobs that left the state.
    pub concluded: Vec<JobSummary>,
    /// How many of the given facts were looked at; call again with the rest.
    pub taken: usize,
    /// Whether more rulings are owed: call again even without facts.
    pub owed: bool,
}

/// Folds facts into `state` and decides, as step `n`. Bounded: takes as many facts as fit one step.
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
    let owed = rule(definition, state, bytes, &mut step.rulings, &mut concluded);
    step.at = state.now;
    let empty = step.facts.is_empty() && step.rulings.is_empty();
    Advance { step: (!empty).then_some(step), concluded, taken, owed }
}

/// Rules until nothing is left to decide or the step is full; whether it was full.
fn rule(
    definition: &Definition,
    state: &mut State,
    mut bytes: usize,
    rulings: &mut Vec<Ruling>,
    concluded: &mut Vec<JobSummary>,
) -> bool {
    check(definition, state, rulings);
    while let Some(ruling) = decide::next(definition, state) {
        if rulings.len() >= MAX_RULINGS_PER_STEP || bytes >= STEP_BYTES {
            return true;
        }
        let failed_already = matches!(state.status, Status::Ending(EndReason::Failed(_)));
        let ruling = match invariant::forbids(state, &ruling) {
            // The tuning is being stopped for a broken promise already: nothing more is decided.
            Some(_) if failed_already => return false,
            Some(message) => failed(&message),
            None => ruling,
        };
        let larger = bytes.saturating_add(ruling_bytes(&ruling));
        // One ruling alone always fits: a step without facts then takes it.
        if bytes > 0 && larger > STEP_BYTES_MAX {
            return true;
        }
        bytes = larger;
        if let Some(key) = ruling.concludes()
            && let Some(trial) = state.trials.get(&key.trial)
            && let Some(job) = &trial.job
        {
            concluded.push(full_summary(definition, key, trial, job));
        }
        state.apply(definition, &ruling);
        rulings.push(ruling);
        check(definition, state, rulings);
    }
    false
}

/// Stops the tuning if its state breaks an invariant, be it by facts or by a ruling.
fn check(definition: &Definition, state: &mut State, rulings: &mut Vec<Ruling>) {
    let failed_already = matches!(state.status, Status::Ending(EndReason::Failed(_)) | Status::Ended { .. });
    if let Some(message) = invariant::broken(definition, state).filter(|_| !failed_already) {
        let ruling = failed(&message);
        state.apply(definition, &ruling);
        rulings.push(ruling);
    }
}

fn failed(message: &str) -> Ruling {
    Ruling::TuningEnding { why: EndReason::Failed(format!("a promise would have been broken: {message}")) }
}

/// Brings `state` from before `step` to after it, as it was recorded; decides nothing.
pub fn load(definition: &Definition, state: &mut State, step: &Step) {
    for recorded in &step.facts {
        fold(definition, state, recorded);
    }
    for ruling in &step.rulings {
        state.apply(definition, ruling);
    }
}

/// Decides `step` anew from its facts; the rulings made now, to be compared with those recorded.
pub fn replay(definition: &Definition, state: &mut State, step: &Step) -> Vec<Ruling> {
    let advance = advance(definition, state, step.n, &step.facts);
    advance.step.map(|step| step.rulings).unwrap_or_default()
}
