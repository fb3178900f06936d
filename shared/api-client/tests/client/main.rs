//! The client against the API on the in-memory table, and against endpoints that fail.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod answers;
mod create;
mod function;
mod lists;
mod signature;
mod world;
