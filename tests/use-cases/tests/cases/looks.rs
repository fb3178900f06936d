//! Read-only views of a tuning: explanations of trials, the cost report, published events.

mod change;
mod cost;
mod ends;
mod explain;
mod failures;
mod jobs;
mod others;
mod pools;
mod promotion;
mod published;
mod reads;
mod rows;
mod rungs;
mod sizes;
mod summaries;
mod tags;
mod waits;
pub(crate) mod world;
