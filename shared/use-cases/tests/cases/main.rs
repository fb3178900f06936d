//! The use cases over the in-memory table. [`support`] has the doubles of the other ports.
#![expect(clippy::unwrap_used, reason = "a panic in a helper fails its test")]

mod batches;
mod floods;
mod grants;
mod lagging;
mod long_messages;
mod looks;
mod memory_table;
mod performing;
mod pools;
mod prices;
mod restores;
mod submit;
mod support;
mod sweep;
mod warm;
