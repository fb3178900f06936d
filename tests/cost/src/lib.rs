//! The cost of the controller itself. Simulates tunings in virtual time with the real use cases, counts everything that
//! AWS charges for, and multiplies the counts by prices.
//!
//! Memory sizes and batching windows come from the stack's template. [`price`] has the prices. [`job`] lists the
//! assumptions about use that cannot be counted here. This crate must never contain a measured result.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "test helpers may panic")]

pub mod idle;
pub mod job;
pub mod logs;
pub mod price;
pub mod show;
