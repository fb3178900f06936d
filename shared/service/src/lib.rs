//! One file per use case, and the narrow ports they need.
#![warn(missing_docs)]

pub mod ports;
