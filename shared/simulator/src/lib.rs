//! The fault simulator: plays whole tunings in virtual time while faults strike.
//!
//! The simulator runs the use cases of crate `use-cases` unchanged, against a model of the table, its stream, the
//! training service and all deliveries. A drawn [plan] decides which faults strike. Checkers that share no code with
//! the system check every commit. A history has two phases: first faults strike and no promise may break (safety),
//! then nothing fails and every tuning must end (liveness). A history runs in one thread, without a clock, an async
//! runtime or a map with random order: the same seed gives the same history, byte for byte.
#![warn(missing_docs)]

pub mod access;
pub mod case;
mod check;
mod dice;
pub mod encode;
pub mod exhaustive;
pub mod fault;
#[cfg(feature = "planted")]
mod mutants;
pub mod plan;
#[cfg(feature = "planted")]
pub mod planted;
pub mod report;
mod runner;
pub mod shrink;
pub mod site;
pub mod tally;
mod trace;
mod world;

pub use runner::Run;
