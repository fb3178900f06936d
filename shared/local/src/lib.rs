//! Runs the controller and its training jobs on one Linux machine, in place of AWS.
#![warn(missing_docs)]

pub mod host;
pub mod training;
