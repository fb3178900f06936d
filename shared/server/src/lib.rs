//! An HTTP server for this machine: bounds, checks of the caller's address, and the requests of `http_api` over axum.
//!
//! [`routes`] makes a router from a handler of the API; callers can merge further routes into it. [`local_only`]
//! refuses the requests of web pages, and [`serve`] serves within [`Limits`]. Does not authenticate its clients.
#![warn(missing_docs)]

mod hosts;
mod pages;
mod routes;
mod serve;

pub use axum::Router;
pub use hosts::{Hosts, local_only};
pub use pages::{Pages, pages};
pub use routes::{api_limits, request_id, routes};
pub use serve::{Limits, Unread, WholeBody, serve};
