//! The use cases, one file each, and the ports that they need.
//!
//! The same code runs in the Lambda functions, on a single machine and in the simulator; only the ports differ. This
//! crate makes no decisions: crate `tuning` does.
#![warn(missing_docs)]

pub mod active;
pub mod batch;
pub mod change;
pub mod cost;
pub mod decide;
pub mod delete;
pub mod describe;
pub mod explain;
pub mod job_events;
pub mod job_logs;
pub mod lookup;
pub mod pace;
pub mod perform;
pub mod ports;
pub mod prices;
pub mod record;
pub mod replay;
pub mod rows;
mod stops;
pub mod store;
pub mod submit;
pub mod sweep;
pub mod tags;
pub mod words;
