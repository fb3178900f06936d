//! Every serialised shape, versioned: requests and responses of AMT, events, stored rows.
#![warn(missing_docs)]

pub mod item;
