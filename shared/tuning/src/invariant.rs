//! Invariants that hold after every step. A broken invariant fails that tuning with a message, and the service
//! continues.

use hyperband::ranking::improves;

use crate::definition::Definition;
use crate::log::ruling::{Order, Ruling, SearchRuling};
use crate::scheduler::{Arrival, rival};
use crate::state::{State, Status};
use crate::unit::ids::{CohortId, count};
use crate::unit::money::MicroUsd;
use crate::unit::scan::count_entry;

/// Returns a description of the first invariant that `state` breaks.
pub fn broken(definition: &Definition, state: &State) -> Option<String> {
    let ledger = &state.money.ledger;
    // P1. What was booked above a reservation, or before the cap was lowered, stands.
    if !ledger.within_cap() {
        return Some(format!("spent {} plus reserved {} exceeds the cap", ledger.spent, ledger.reserved));
    }
    let granted = ledger.granted.map(|_| state.money.grants.total());
    if granted != ledger.granted {
        return Some(format!("the grants sum to {granted:?}, but the ledger has {:?}", ledger.granted));
    }
    let open = state.billed_jobs().filter(|(_, job)| !job.is_closed());
    let jobs = open.fold(MicroUsd::ZERO, |sum, (_, job)| sum.plus(job.bill.reservation));
    let sum = state.money.pools.iter().fold(jobs, |sum, pool| sum.plus(pool.reservation));
    if sum != ledger.reserved {
        return Some(format!(
            "the reservations of open jobs and warm pools sum to {sum}, but the ledger has {}",
            ledger.reserved
        ));
    }
    for cohort in &state.search.cohorts {
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
    if state.results.launched > definition.limits.max_jobs {
        return Some(format!("{} jobs were launched, more than allowed", state.results.launched));
    }
    let trials_are_over = state.trials.is_empty() && state.search.waiting.is_empty();
    if state.is_ended()
        && !(trials_are_over && state.money.billing.is_empty() && state.money.pools.is_empty())
    {
        return Some("the tuning ended with live trials or open bills".to_owned());
    }
    None
}

/// Returns a description of the first promise that `ruling` breaks when it is made in `state`.
pub fn forbids(definition: &Definition, state: &State, ruling: &Ruling) -> Option<String> {
    match ruling {
        // P6: never more trials than allowed, and never a failed one.
        Ruling::Search(SearchRuling::TrialJudged { trial: number, resource, value, verdict, .. })
            if verdict.continues =>
        {
            let known = state.trials.get(*number).and_then(|trial| Some((trial, trial.place()?)));
            let may = known.is_some_and(|(trial, place)| {
                let level = definition.level(place.cohort.bracket, place.rung);
                let rule = definition.rule(place.cohort.bracket, place.rung);
                let arrival = rival(rule, (*number, *value));
                let of = definition.definition_of(*number);
                let rungs = || state.search.rungs_at(definition, level, of);
                let arrived = || rungs().map(|rung| &rung.arrivals);
                let rank: usize = arrived().map(|arrived| better(definition, arrived, arrival)).sum();
                let seen = arrived().map(Vec::len).sum::<usize>().saturating_add(1);
                let predicts = state.search.predicts(definition, level, of);
                let allowed = if predicts { index(rule.allowed(count(seen))) } else { seen };
                let known = trial.curve.get(resource) == Some(value);
                rank < allowed && index(verdict.rank) == rank && value.is_some() && known
            });
            (!may).then(|| format!("trial {number} must not continue"))
        }
        Ruling::Search(SearchRuling::TrialPromoted {
            trial: number,
            rung,
            value,
            verdict,
            reached_target,
            ..
        }) => {
            let for_target = state.finalist == Some(*number);
            let may =
                state.search.waiting.get(number).filter(|trial| trial.rung == *rung).is_some_and(|trial| {
                    let known = state.search.rung(trial.place());
                    let arrived = known.map_or(&[][..], |rung| &rung.arrivals);
                    let arrival = (*number, *value);
                    let rank = better(definition, arrived, arrival);
                    let right = index(verdict.rank) == rank && verdict.continues;
                    rank < index(verdict.allowed)
                        && right
                        && *reached_target == for_target
                        && value.is_some()
                        && arrived.get(rank) == Some(&arrival)
                });
            (!may).then(|| format!("trial {number} must not be promoted"))
        }
        Ruling::Order(Order::Start { job, reservation, launch, .. }) => {
            let open = state.status == Status::Active || (launch.refit && !state.is_ended());
            let fits = state.money.ledger.fits(*reservation) && open;
            (!fits).then(|| format!("job {job} must not start"))
        }
        Ruling::Search(
            SearchRuling::TrialDrawn { .. }
            | SearchRuling::TrialJudged { .. }
            | SearchRuling::RungReached { .. },
        )
        | Ruling::Attempt(_)
        | Ruling::Booking(_)
        | Ruling::TuningEnding { .. }
        | Ruling::Order(
            Order::Stop { .. } | Order::Read(_) | Order::Pool(_) | Order::Grant(_) | Order::Notice(_),
        ) => None,
    }
}

/// Counts the arrivals that are better than `arrival`: an equal value of a trial with a lower number is better, too.
///
/// Compares by itself, unlike [`crate::scheduler::Rung::rank`]. Both rely on the order of the list.
fn better(definition: &Definition, arrived: &[Arrival], arrival: Arrival) -> usize {
    let (number, Some(value)) = arrival else { return arrived.len() };
    let better = |a: f64, b: f64| improves(definition.direction(), a, b);
    arrived.partition_point(|(other, known)| {
        count_entry();
        known.is_some_and(|known| better(known, value) || (!better(value, known) && *other < number))
    })
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
