//! Read-only views of a tuning: explanations of trials, the cost report, published events, active tunings.

#![expect(clippy::unwrap_used, reason = "a panic in a helper fails its test")]

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
