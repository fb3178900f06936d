//! How long instances were kept after the end of a job.

use serde::{Deserialize, Serialize};

/// How long instances were kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Retained {
    /// In seconds.
    Seconds(u64),
    /// Unknown for good: the job was deleted.
    Unknown,
}
