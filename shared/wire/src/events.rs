//! What AWS sends to the functions, and what a local host or a simulator sends in its place: one parser each.
//!
//! Every parser is total (any bytes give an answer, never a panic) and bounded.

pub mod job_state;
pub mod logs;
pub mod stream;

use thiserror::Error;

/// Why a delivery was not read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EventError {
    /// It is about something else: drop it.
    #[error("not an event of ours: {0}")]
    NotOurs(String),
    /// It cannot be read: to the failure queue, with a counter.
    #[error("{0}")]
    Unreadable(String),
    /// It is larger than anything AWS sends: to the failure queue.
    #[error("more than {0} bytes")]
    TooLarge(usize),
}
