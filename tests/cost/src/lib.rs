//! What the controller itself costs: tunings are played in virtual time through the use cases as they are, all that AWS
//! charges for is counted, and the counts are priced.
//!
//! Sizes and windows of the functions are those of the stack's template. Assumes the prices in [`price`], and what the
//! functions' ports and AWS add that cannot be counted here, which [`job`] names one by one. Must never hold a result.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "helpers of tests fail with their test")]

pub mod idle;
pub mod job;
pub mod price;
pub mod show;
pub mod tell;
