//! The use cases over the in-memory table. [`support`] has the doubles of the other ports.
#![expect(clippy::unwrap_used, reason = "a panic in a helper fails its test")]

mod batch_order;
mod batches;
mod bills;
mod claims;
mod floods;
mod grants;
mod job_events;
mod lagging;
mod logs;
mod long_messages;
mod looks;
mod memory_table;
mod notices;
mod performing;
mod pools;
mod prices;
mod restores;
mod submit;
mod support;
mod sweep;
mod warm;
