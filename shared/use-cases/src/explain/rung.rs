//! Compares a trial with those that had arrived at a rung when it was judged.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use tuning::definition::Definition;
use tuning::log::ruling::{Ruling, SearchRuling, Verdict};
use tuning::scheduler::{Arrival, Rung, Waiting};
use tuning::state::State;
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::{BracketId, TrialId};
use wire::explain::{ArrivalView, Compared, Comparison, CostSoFar};
use wire::forecast::Times;
use wire::request::{RungExecution, RungsWhy};

use super::words;
use crate::store::Tuning;

/// Returns the comparison that `ruling` made in `state`, or `None` for another kind of ruling. `went_on` contains the
/// trials that have continued from its level so far, the trial itself included.
pub(super) fn comparison(
    state: &State,
    definition: &Definition,
    ruling: &Ruling,
    went_on: &BTreeSet<TrialId>,
    cost: CostSoFar,
) -> Option<Comparison> {
    let Ruling::Search(SearchRuling::TrialJudged {
        trial,
        bracket,
        rung,
        level,
        resource,
        value,
        verdict,
        ..
    }) = ruling
    else {
        return None;
    };
    let mut all = Rung::default();
    let of = definition.definition_of(*trial);
    let before = state.search.rungs_at(definition, *level, of).flat_map(|rung| &rung.arrivals);
    before.chain([&(*trial, *value)]).for_each(|arrival| all.arrive(definition.direction(), *arrival));
    Some(Comparison {
        bracket: *bracket,
        rung: *rung,
        level: *level,
        epoch: *resource,
        compared: compared(*resource, *level),
        value: *value,
        rank: verdict.rank.saturating_add(1),
        arrived: verdict.seen,
        allowed: verdict.allowed,
        went_on: verdict.continues,
        rule: words::rule(definition.plan(), *verdict, value.is_some()),
        arrivals: arrivals(&all.arrivals, went_on),
        cost,
    })
}

/// Compares a trial that waits at a rung with those that have ended there, or returns `None` if the rung does not
/// exist. `went_on` contains the trials promoted from there so far.
pub(super) fn waiting(
    state: &State,
    definition: &Definition,
    (number, trial): (TrialId, &Waiting),
    (allowed, goes_on): (u32, bool),
    went_on: &BTreeSet<TrialId>,
    cost: CostSoFar,
) -> Option<Comparison> {
    let (rung, epoch) = (trial.rung, trial.resource);
    let stored = state.search.rung(trial.place())?;
    let place = stored.arrivals.iter().position(|(other, _)| *other == number)?;
    let value = stored.arrivals.get(place)?.1;
    let verdict = Verdict {
        rank: u32::try_from(place).unwrap_or(u32::MAX),
        seen: stored.arrived(),
        allowed,
        continues: goes_on,
    };
    let level = definition.level(trial.bracket, rung);
    Some(Comparison {
        bracket: trial.bracket,
        rung,
        level,
        epoch,
        compared: compared(epoch, level),
        value,
        rank: verdict.rank.saturating_add(1),
        arrived: verdict.seen,
        allowed,
        went_on: goes_on,
        rule: words::promotion_rule(verdict),
        arrivals: arrivals(&stored.arrivals, went_on),
        cost,
    })
}

fn arrivals(arrivals: &[Arrival], went_on: &BTreeSet<TrialId>) -> Vec<ArrivalView> {
    let view = |(rank, (trial, value)): (u32, &Arrival)| ArrivalView {
        rank,
        trial: *trial,
        value: *value,
        went_on: went_on.contains(trial),
    };
    (1..).zip(arrivals).map(view).collect()
}

fn compared(epoch: Epochs, level: Epochs) -> Compared {
    match epoch.cmp(&level) {
        Ordering::Equal => Compared::AtLevel,
        Ordering::Greater => Compared::Late,
        Ordering::Less => Compared::Earlier,
    }
}

/// Returns how rungs are executed and, if the request's `Auto` chose that, why. `None` without Hyperband.
pub(super) fn execution(tuning: &Tuning) -> Option<String> {
    tuning.definition.compared()?;
    let (execution, why) = tuning.request.rungs(&tuning.definition.job, Times::ASSUMED);
    Some(match (tuning.definition.promotes(), execution, why) {
        (_, _, RungsWhy::Given) => format!("{execution:?}"),
        (Some(_), RungExecution::Promote, why) => format!("Promote, because {why}"),
        (None, RungExecution::Stop, why) => format!("Stop, because {why}"),
        // A tuning keeps the execution that it was submitted with.
        (Some(_), _, _) => "Promote".to_owned(),
        (None, _, _) => "Stop".to_owned(),
    })
}

/// Returns the levels at which trials of `bracket` are compared and, last, their end. Empty without Hyperband.
pub(super) fn levels(tuning: &Tuning, bracket: BracketId) -> Vec<Epochs> {
    let Some(plan) = tuning.definition.compared() else { return Vec::new() };
    let bracket = plan.brackets().get(tuning.definition.in_plan(bracket));
    bracket
        .map(|bracket| bracket.rungs().iter().map(|rung| Epochs(rung.resource)).collect())
        .unwrap_or_default()
}
