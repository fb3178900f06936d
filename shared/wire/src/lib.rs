//! Every serialized format, with versions: requests and responses of AMT, events, stored rows.
#![warn(missing_docs)]

pub mod algorithm;
pub mod change;
mod closest;
pub mod constraint;
pub mod cost;
pub mod describe;
pub mod events;
pub mod explain;
pub mod forecast;
pub mod item;
pub mod names;
pub mod notice;
pub mod price_list;
pub mod request;
pub mod row_json;
pub mod sample;
mod shape;
pub mod stored;

pub use closest::closest;
