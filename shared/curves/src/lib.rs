//! Tunings in virtual time against recorded learning curves: the decider and its samplers themselves, with an ideal
//! training service that answers each configuration by the nearest recorded one.
//!
//! Same table, definition, setting and seed: same outcome, bit for bit.

mod measure;
mod service;
mod simulation;
mod table;

pub use measure::{Best, Checkpoint, Outcome};
pub use service::noise;
pub use simulation::{Setting, milliseconds, seconds, simulate, simulate_steps};
pub use table::{Row, Table, TableError};
