//! Every serialised shape, versioned: requests and responses of AMT, events, stored rows.
#![warn(missing_docs)]

pub mod request;
pub mod describe;
pub mod constraint;
pub mod item;
