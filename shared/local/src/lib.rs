//! One-process host: what AWS does around the controller, done on one Linux machine.
#![warn(missing_docs)]

pub mod host;
pub mod training;
