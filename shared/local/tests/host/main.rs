//! Tests the whole controller on one machine, with real processes.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod outcomes;
mod pools;
mod promotions;
mod runs;
mod support;
