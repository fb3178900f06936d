//! What goes over the wire and what is read from it: the real SDK against services played on loopback, with answers in the
//! shapes of the real ones.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their test")]

mod account;
mod create;
mod jobs;
mod listing;
mod logs;
mod signature;
mod tries;
