//! The failed training jobs of a tuning job, by cause.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An entry of `Controller.Failures`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct FailureCause {
    /// Number of training jobs that failed for it.
    pub count: u32,
    /// The cause in a few words: that of the example.
    pub reason: String,
    /// Name of the first of these training jobs; `None` for the rest of many causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_job_name: Option<String>,
}
