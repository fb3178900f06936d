//! The decider: takes facts and makes rulings.
//!
//! The life of a tuning job is a list of [`step::Step`]s. A step takes facts (what happened, in any order, possibly
//! twice), folds them into the [`state::State`], and decides: [`decide::next`] returns one [`ruling::Ruling`] at a
//! time until nothing is left to decide. Some rulings order an action outside (start a job, stop it, read its bill,
//! publish a notice). Another component performs the action later, possibly twice.
//!
//! Everything here is a synchronous function of values. The crate reads no clock (time is a field of facts), draws no
//! random numbers (the seed is a field of the [`definition::Definition`]), does no I/O and uses no map with a random
//! order. Replaying the same facts gives the same rulings on every machine, byte for byte.
#![warn(missing_docs)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::float_arithmetic,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::wildcard_enum_match_arm
    )
)]

pub mod changes;
pub mod conclude;
pub mod decide;
pub mod definition;
pub mod epochs;
pub mod fact;
pub mod failures;
pub mod fold;
pub mod grants;
pub mod held;
pub mod ids;
pub mod invariant;
pub mod ledger;
pub mod limits;
pub mod log_problem;
pub mod money;
pub mod planted;
pub mod pool;
mod quote;
pub mod ruling;
pub mod runtime;
mod size;
pub mod state;
pub mod step;
pub mod summary;
pub mod time;
pub mod work;
