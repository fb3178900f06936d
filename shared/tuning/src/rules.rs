//! The rules of the decider, one topic a file. A rule reads the state and returns rulings.

pub(crate) mod bill;
pub(crate) mod conclude;
pub(crate) mod doubt;
pub(crate) mod finish;
pub(crate) mod grant;
pub(crate) mod judge;
pub(crate) mod last_epoch;
pub(crate) mod notice;
pub(crate) mod outlook;
pub(crate) mod overrun;
pub(crate) mod pool;
pub(crate) mod promote;
pub(crate) mod refit;
pub(crate) mod rest;
pub(crate) mod silence;
pub(crate) mod spot;
pub(crate) mod start;

pub use doubt::doubt;
pub use promote::most_promoted;
