//! The words of the log: facts, rulings with their reasons, and upper estimates of their sizes.

pub mod fact;
pub mod pool;
pub mod problem;
pub mod reasons;
pub mod ruling;
pub(crate) mod size;
