//! Tests the whole service: real processes, plain HTTP, and an emulated event bus and CloudWatch Logs.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod events;
mod logs;
mod operations;
mod protocol;
mod world;
