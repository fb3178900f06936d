//! Tests the training service with real processes.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod contract;
mod crash;
mod flood;
mod life;
mod limits;
mod pools;
mod port;
mod records;
mod requests;
mod slots;
mod spot;
mod stop;
mod world;
