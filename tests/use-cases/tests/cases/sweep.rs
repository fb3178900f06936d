//! Sweeps over a given table and training service: one at a time, within their limits and pace, until all work is done.

mod bills;
mod crash;
mod idle;
mod lease;
mod limits;
mod orphans;
mod others;
mod pace;
mod pools;
mod retention;
mod signs;
mod stops;
pub(crate) mod world;
