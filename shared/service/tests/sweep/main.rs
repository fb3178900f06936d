//! Sweeps, given what is in the table and in the training service: one at a time, within their limits, at their pace, and
//! with everything seen to at last.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their test")]

mod crash;
mod idle;
mod lease;
mod limits;
mod orphans;
mod others;
mod pools;
mod signs;
mod world;
