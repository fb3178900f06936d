//! Simulates tunings in virtual time against recorded learning curves. The real decider and its samplers run with an
//! ideal training service, which answers each configuration with the curve of the nearest recorded one.
//!
//! The same table, definition, setting and seed give the same outcome, bit for bit.

mod measure;
mod service;
mod setting;
mod simulation;
mod table;

pub use measure::{Best, Checkpoint, Improvement, Outcome};
pub use service::noise;
pub use setting::{Setting, milliseconds, seconds};
pub use simulation::{simulate, simulate_steps};
pub use table::{Row, Table, TableError};
