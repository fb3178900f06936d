//! The whole controller on one machine, with real processes.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their test")]

mod outcomes;
mod pools;
mod promotions;
mod runs;
mod support;
