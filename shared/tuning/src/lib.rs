//! The decider: takes facts and makes rulings.
//!
//! The life of a tuning job is a list of [`step::Step`]s. A step takes facts (what happened, in any order, possibly
//! twice), folds them into the [`state::State`], and decides. [`decide::next`] returns one [`log::ruling::Ruling`] at a
//! time until nothing is left to decide. Some rulings order an external action (start a job, stop it, read its bill,
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

pub mod change;
pub mod decide;
pub mod definition;
pub mod invariant;
pub mod job;
pub mod log;
pub mod money;
pub mod planted;
pub mod quote;
pub mod rules;
pub mod scheduler;
pub mod state;
pub mod step;
pub mod trial;
pub mod unit;
