//! Invariants that hold after every step. A broken invariant fails that tuning with a message, and the service
//! continues.

use crate::definition::Definition;
use crate::ids::CohortId;
use crate::money::MicroUsd;
use crate::ruling::{Order, Ruling};
use crate::state::{State, Status};

/// Returns a description of the first invariant that `state` breaks.
pub fn broken(definition: &Definition, state: &State) -> Option<String> {
    let ledger = &state.ledger;
    // P1. What was booked above a reservation, or before the cap was lowered, stands.
    if !ledger.within_cap() {
        return Some(format!("spent {} plus reserved {} exceeds the cap", ledger.spent, ledger.reserved));
    }
    let granted = ledger.granted.map(|_| state.grants.total());
    if granted != ledger.granted {
        return Some(format!("the grants sum to {granted:?}, but the ledger has {:?}", ledger.granted));
    }
    let open = state.jobs().filter(|(_, _, job)| !job.is_closed());
    let jobs = open.fold(MicroUsd::ZERO, |sum, (_, _, job)| sum.plus(job.reservation));
    let sum = state.pools.iter().fold(jobs, |sum, pool| sum.plus(pool.reservation));
    if sum != ledger.reserved {
        return Some(format!(
            "the reservations of open jobs and warm pools sum to {sum}, but the ledger has {}",
            ledger.reserved
        ));
    }
    for cohort in &state.cohorts {
        if let Some(rung) = cohort.overfull(definition) {
            let CohortId { bracket, round } = cohort.id;
            return Some(format!(
                "rung {rung} of bracket {bracket}, round {round}, promoted too many trials"
            ));
        }
    }
    // Jobs that run when the limit is lowered keep running.
    if state.running() > definition.limits.max_parallel.max(state.changes.most_parallel) {
        return Some(format!("{} jobs run at once, more than allowed", state.running()));
    }
    if state.launched > definition.limits.max_jobs {
        return Some(format!("{} jobs were launched, more than allowed", state.launched));
    }
    if state.is_ended() && !(state.trials.is_empty() && state.waiting.is_empty() && state.pools.is_empty()) {
        return Some("the tuning ended with live trials".to_owned());
    }
    None
}

/// Returns a description of the first promise that `ruling` breaks when it is made in `state`.
pub fn forbids(state: &State, ruling: &Ruling) -> Option<String> {
    match ruling {
        // P6: never more trials than allowed, and never a failed one.
        Ruling::TrialJudged { trial, value, verdict, .. } if verdict.continues => {
            (verdict.rank >= verdict.allowed || value.is_none())
                .then(|| format!("trial {trial} must not continue"))
        }
        Ruling::TrialPromoted { trial, rung, value, verdict, .. } => {
            let waits = state.waiting.get(trial).is_some_and(|trial| trial.next_rung == *rung);
            let may = verdict.continues && verdict.rank < verdict.allowed && value.is_some() && waits;
            (!may).then(|| format!("trial {trial} must not be promoted"))
        }
        Ruling::Order(Order::Start { job, reservation, launch, .. }) => {
            let open = state.status == Status::Active || (launch.refit && !state.is_ended());
            let fits = state.ledger.fits(*reservation) && open;
            (!fits).then(|| format!("job {job} must not start"))
        }
        Ruling::TrialJudged { .. }
        | Ruling::RungReached { .. }
        | Ruling::ResourceRepeated { .. }
        | Ruling::PoolClosed { .. }
        | Ruling::SettledInFull { .. }
        | Ruling::AttemptAwaited { .. }
        | Ruling::TrialFinished { .. }
        | Ruling::TuningEnding { .. }
        | Ruling::Order(
            Order::Stop { .. }
            | Order::ReadBill { .. }
            | Order::ReadLog { .. }
            | Order::ReadRest { .. }
            | Order::Look { .. }
            | Order::ReadPool { .. }
            | Order::ReleasePool { .. }
            | Order::RequestGrant { .. }
            | Order::ReturnGrant { .. }
            | Order::CapReached { .. }
            | Order::MonthCapReached { .. }
            | Order::OverrunSeen
            | Order::CapacityLacking { .. }
            | Order::TuningEnded { .. },
        ) => None,
    }
}
