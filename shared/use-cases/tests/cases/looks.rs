//! Read-only views of a tuning: explanations of trials, the cost report, published events.

mod change;
mod cost;
mod ends;
mod explain;
mod failures;
mod pools;
mod promotion;
mod published;
mod reads;
mod rungs;
mod summaries;
pub(crate) mod world;
