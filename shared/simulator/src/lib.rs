//! The fault simulator: whole histories of tunings in virtual time, with everything going wrong that can.
//!
//! Runs the use cases of crate `service` as they are, against a world of table, stream, training service and
//! deliveries, under a drawn [plan] of faults. Checkers apart from the system watch every commit. First a phase
//! with faults (nothing may break), then one without (everything must end). One thread, no clock, no runtime, no map with
//! random order: the same seed gives the same history, byte for byte.
#![warn(missing_docs)]

pub mod access;
pub mod case;
mod check;
mod dice;
pub mod encode;
pub mod fault;
pub mod plan;
pub mod report;
mod runner;
pub mod shrink;
pub mod site;
pub mod tally;
mod trace;
mod world;

pub use runner::Run;
