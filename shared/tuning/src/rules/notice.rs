//! Notices: a bill above its reservation, how much of a cap is used, and a long lack of capacity.

use crate::definition::Definition;
use crate::log::reasons::EndReason;
use crate::log::ruling::{NoticeOrder, Order, Ruling};
use crate::quote::runtime::{Runtime, Work, runtime};
use crate::rules::{Rule, never, nothing};
use crate::state::{State, Status};
use crate::unit::ids::{BracketId, RungId, SizeId};
use crate::unit::limits::CAP_LEVELS;
use crate::unit::money::MicroUsd;

/// Publishes a bill above its reservation.
pub(crate) const OVERRUN: Rule =
    Rule { next: |view| overrun(view.state), wakes: never, folds_first: nothing };

pub(crate) const CAPACITY_LACKING: Rule = Rule {
    next: |view| capacity_lacking(view.definition, view.state),
    wakes: |view| view.by_facts(view.state.long_lack_at(view.definition)),
    folds_first: nothing,
};

pub(crate) const LEVEL_REACHED: Rule =
    Rule { next: |view| level_reached(view.definition, view.state), wakes: never, folds_first: nothing };

/// Publishes that a bill was above its reservation, or will be, once.
pub(crate) fn overrun(state: &State) -> Option<Ruling> {
    (state.has_overrun() && !state.money.overrun_published)
        .then_some(Ruling::Order(Order::Notice(NoticeOrder::OverrunSeen)))
}

/// Publishes that no job has got instances for long, once for each lack of capacity.
pub(crate) fn capacity_lacking(definition: &Definition, state: &State) -> Option<Ruling> {
    // An ending tuning waits only for the instances of its refit.
    let waits = state.status == Status::Active || state.refit.is_some();
    state
        .unpublished_lack(definition)
        .filter(|_| waits)
        .map(|since| Ruling::Order(Order::Notice(NoticeOrder::CapacityLacking { since })))
}

/// Publishes that a level of the month's cap or of the tuning's cap was reached, once each.
pub(crate) fn level_reached(definition: &Definition, state: &State) -> Option<Ruling> {
    if let Some((month, percent)) = state.money.grants.unpublished.first() {
        return Some(Ruling::Order(Order::Notice(NoticeOrder::MonthCapReached {
            month: month.clone(),
            percent: *percent,
        })));
    }
    let percent = level(definition, state, state.money.ledger.cap?);
    (percent > state.money.cap_published_percent)
        .then_some(Ruling::Order(Order::Notice(NoticeOrder::CapReached { percent })))
}

/// Publishes 100 % when the tuning ends for lack of money although the rest would pay for the shortest job.
///
/// This happens where the next promotion is a long job, where other instances cost more, where money is reserved for
/// the refit, or where the user lowered the cap.
pub(crate) fn cap_used_up(definition: &Definition, state: &State, why: &EndReason) -> Option<Ruling> {
    let plain = definition.promotes().is_none() && !definition.refit && !definition.job.has_fallbacks();
    if plain && state.changes.cap.is_none() {
        return None;
    }
    state.money.ledger.cap.filter(|_| state.money.ledger.granted.is_none())?;
    let [.., all] = CAP_LEVELS;
    let unpublished = *why == EndReason::CostCap && state.money.cap_published_percent < all;
    unpublished.then_some(Ruling::Order(Order::Notice(NoticeOrder::CapReached { percent: all })))
}

/// Returns the highest level reached, in percent: by what is spent, or 100 when the rest pays for no further job.
fn level(definition: &Definition, state: &State, cap: MicroUsd) -> u32 {
    let [lower, upper, all] = CAP_LEVELS;
    let spent = state.money.ledger.spent;
    let next = |size: SizeId| {
        let shortest = Work::of_rung(definition, BracketId(0), RungId(0), size);
        let Runtime { least, usual, .. } = runtime(definition, state, shortest);
        let choice = definition.job.choices_of(size).next().unwrap_or_default();
        crate::quote::worst_case(
            definition,
            state,
            definition.limits_for(least.unwrap_or(usual), size),
            choice,
        )
    };
    let next = definition.job.all_sizes().map(next).min().unwrap_or(MicroUsd::ZERO);
    let beyond = |percent: u32| {
        u128::from(spent.0).saturating_mul(100) >= u128::from(cap.0).saturating_mul(u128::from(percent))
    };
    if next > cap.minus(spent) {
        all
    } else if beyond(upper) {
        upper
    } else if beyond(lower) {
        lower
    } else {
        0
    }
}
