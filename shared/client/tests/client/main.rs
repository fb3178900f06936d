//! The client against the API itself, over the table in memory, and against what else may answer at an endpoint.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their test")]

mod answers;
mod create;
mod lists;
mod signature;
mod world;
