//! The real SDK against emulated services on loopback: the requests on the wire, and the results for real responses.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod account;
mod create;
mod jobs;
mod listing;
mod logs;
mod signature;
mod tries;
mod tunings;
