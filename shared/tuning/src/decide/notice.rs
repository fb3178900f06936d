//! What people are told of money: an overrun, and how much of a cap is used.

use crate::definition::Definition;
use crate::limits::CAP_LEVELS;
use crate::money::MicroUsd;
use crate::ruling::{EndReason, Ruling};
use crate::runtime::{fewest_epochs, least_seconds, runtime_seconds};
use crate::state::State;

/// The rules version from which on people are told of the cap.
const CAP_NOTICES_SINCE: u32 = 2;

/// A bill was above its reservation, and nobody was told.
pub(super) fn overrun(state: &State) -> Option<Ruling> {
    (state.ledger.overrun && !state.overrun_told).then_some(Ruling::OverrunSeen)
}

/// A level of a cap was reached, and nobody was told.
pub(super) fn reached(definition: &Definition, state: &State) -> Option<Ruling> {
    if let Some((month, percent)) = state.grants.reached.first() {
        return Some(Ruling::MonthCapReached { month: month.clone(), percent: *percent });
    }
    let cap = state.ledger.cap.filter(|_| definition.rules_version >= CAP_NOTICES_SINCE)?;
    let percent = level(definition, state, cap);
    (percent > state.cap_told && !crate::planted!(CapLevelUntold)).then_some(Ruling::CapReached { percent })
}

/// The tuning is over for want of money, although the rest would pay some job: where trials are promoted the next one may
/// be a long one, with other instances a dearer one, and money may be kept back or the cap be lowered.
pub(super) fn used_up(definition: &Definition, state: &State, why: Option<&EndReason>) -> Option<Ruling> {
    let plain = definition.promotes().is_none() && !definition.refit && definition.job.fallbacks.is_empty();
    if plain && state.changes.cap.is_none() {
        return None;
    }
    state.ledger.cap.filter(|_| state.ledger.granted.is_none() && !state.ledger.overrun)?;
    let [.., all] = CAP_LEVELS;
    let untold = why == Some(&EndReason::CostCap) && state.cap_told < all;
    (untold && !crate::planted!(CapLevelUntold)).then_some(Ruling::CapReached { percent: all })
}

/// The highest level that is reached: by what is spent, or the last one when what is left pays no further job.
fn level(definition: &Definition, state: &State, cap: MicroUsd) -> u32 {
    let [lower, upper, all] = CAP_LEVELS;
    let spent = state.ledger.spent;
    let epochs = fewest_epochs(definition);
    let least = least_seconds(definition, state, epochs);
    let least = least.unwrap_or_else(|| runtime_seconds(definition, state, false, epochs));
    let next = definition.worst_case(definition.limits_for(least)).unwrap_or(MicroUsd::ZERO);
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
