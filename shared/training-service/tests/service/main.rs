//! The service as a whole: real processes, plain HTTP, and the bus and the logs played on loopback.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their test")]

mod events;
mod logs;
mod operations;
mod protocol;
mod world;
