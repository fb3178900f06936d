//! The decider: facts go in, rulings come out.
//!
//! A tuning job's life is a list of [`step::Step`]s. A step takes facts (what happened, in any order, perhaps twice),
//! folds them into the [`state::State`], and decides: [`decide::next`] names one [`ruling::Ruling`] at a time until
//! nothing is left to decide. Rulings that need something done outside (start a job, stop it, read its bill, tell
//! people) are performed by others, later, perhaps twice.
//!
//! Everything here is a synchronous function of values. No clock (time is a field of facts), no randomness (seeds are a
//! field of the [`definition::Definition`]), no I/O, no map with a random order: replaying the same facts gives the same
//! rulings on every machine, byte for byte.
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
pub mod fact;
pub mod fold;
pub mod grants;
pub mod held;
pub mod invariant;
pub mod ledger;
pub mod limits;
pub mod money;
pub mod planted;
pub mod pool;
pub mod ruling;
pub mod runtime;
mod size;
pub mod state;
pub mod step;
pub mod summary;
