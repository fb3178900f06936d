//! What is told of a tuning from its table: explanations of trials, the ledger against the bills, what is active.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their test")]

mod active;
mod change;
mod cost;
mod explain;
mod pools;
mod promotion;
mod published;
mod rungs;
mod summaries;
mod world;
