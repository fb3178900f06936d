//! Every serialised shape, versioned: requests and responses of AMT, events, stored rows.
#![warn(missing_docs)]

pub mod algorithm;
pub mod constraint;
pub mod describe;
pub mod events;
pub mod item;
pub mod names;
pub mod request;
pub mod stored;
