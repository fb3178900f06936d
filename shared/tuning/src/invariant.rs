//! Invariants that must hold after every step. A broken one stops that tuning, not the service, and says so.

use crate::definition::Definition;
use crate::money::MicroUsd;
use crate::ruling::Ruling;
use crate::state::{Cohort, State, Status};

/// The first invariant that `state` breaks, in words.
pub fn broken(definition: &Definition, state: &State) -> Option<String> {
    let ledger = &state.ledger;
    // P1. An overrun is the service's breach (it billed more than a job's limits allow); it is flagged and nothing more
    // is started, but the books then tell the truth.
    if !ledger.within_cap() && !ledger.overrun {
        return Some(format!("spent {} + reserved {} is above the cap", ledger.spent, ledger.reserved));
    }
    let granted = ledger.granted.map(|_| state.grants.total());
    if granted != ledger.granted {
        return Some(format!("grants are {granted:?}, the ledger says {:?}", ledger.granted));
    }
    let open = state.jobs().filter(|(_, _, job)| !job.is_closed());
    let jobs = open.fold(MicroUsd::ZERO, |sum, (_, _, job)| sum.plus(job.reservation));
    let sum = state.pools.iter().fold(jobs, |sum, pool| sum.plus(pool.reservation));
    if sum != ledger.reserved {
        return Some(format!(
            "reservations of open jobs and kept instances are {sum}, the ledger says {}",
            ledger.reserved
        ));
    }
    for cohort in &state.cohorts {
        if let Some(rung) = cohort.overfull(definition) {
            let Cohort { bracket, round, .. } = cohort;
            return Some(format!("rung {rung} of bracket {bracket}, round {round}, promoted too many"));
        }
    }
    // Jobs that run when the limit is lowered run on.
    if state.running() > definition.limits.max_parallel.max(state.changes.most_parallel) {
        return Some(format!("{} jobs run at once", state.running()));
    }
    if state.launched > definition.limits.max_jobs {
        return Some(format!("{} jobs were launched", state.launched));
    }
    if state.is_ended() && !(state.trials.is_empty() && state.waiting.is_empty() && state.pools.is_empty()) {
        return Some("the tuning has ended with live trials".to_owned());
    }
    None
}

/// The first promise that a ruling breaks when it is made in `state`, in words.
pub fn forbids(state: &State, ruling: &Ruling) -> Option<String> {
    match ruling {
        // P6: never more than allowed, never a failure.
        Ruling::TrialJudged { trial, value, verdict, .. } if verdict.goes_on => {
            (verdict.rank >= verdict.allowed || value.is_none())
                .then(|| format!("trial {trial} may not go on"))
        }
        Ruling::TrialPromoted { trial, rung, value, verdict, .. } => {
            let waits = state.waiting.get(trial).is_some_and(|trial| trial.next_rung == *rung);
            let may = verdict.goes_on && verdict.rank < verdict.allowed && value.is_some() && waits;
            (!may).then(|| format!("trial {trial} may not be promoted"))
        }
        Ruling::StartOrdered { job, reservation, launch, .. } => {
            let open = state.status == Status::Active || (launch.refit && !state.is_ended());
            let fits = state.ledger.fits(*reservation) && open;
            (!fits).then(|| format!("job {job} may not start"))
        }
        Ruling::TrialJudged { .. }
        | Ruling::RungReached { .. }
        | Ruling::ResourceRepeated { .. }
        | Ruling::StopOrdered { .. }
        | Ruling::BillOrdered { .. }
        | Ruling::LogReadOrdered { .. }
        | Ruling::LookOrdered { .. }
        | Ruling::PoolReadOrdered { .. }
        | Ruling::PoolReleaseOrdered { .. }
        | Ruling::PoolClosed { .. }
        | Ruling::GrantOrdered { .. }
        | Ruling::ReturnOrdered { .. }
        | Ruling::CapReached { .. }
        | Ruling::MonthCapReached { .. }
        | Ruling::SettledInFull { .. }
        | Ruling::AttemptAwaited { .. }
        | Ruling::OverrunSeen
        | Ruling::TrialFinished { .. }
        | Ruling::TuningEnding { .. }
        | Ruling::TuningEnded { .. } => None,
    }
}
