//! The training jobs of a folder as they are on disk, for whoever only looks, beside a service at work or after it.
//!
//! Takes no lock and changes nothing: a record is replaced whole, so that every look sees one that was true. Must never
//! create or stop a job.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use service::ports::training::{Description, TrainingJobs, TrainingJobsError};
use tokio::task::spawn_blocking;

use super::clock;
use super::describe;
use super::ports::not_found;
use super::store::{self, Found, Layout};

/// Training jobs to look at.
#[derive(Debug, Clone)]
pub struct JobRecords {
    layout: Layout,
}

impl JobRecords {
    /// Those in the folder `root` of a service; it need not exist.
    pub fn at(root: &Path) -> Self {
        Self { layout: Layout::at(root) }
    }

    async fn find(&self, name: &str) -> Result<Found, TrainingJobsError> {
        // Never out of the folder, and not into one that is being made.
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        if name.starts_with('-') || !name.chars().all(plain) {
            return Err(not_found());
        }
        let (layout, name) = (self.layout.clone(), name.to_owned());
        let read = spawn_blocking(move || store::find(&layout, &name)).await;
        read.map_err(|error| TrainingJobsError::Unavailable(error.to_string()))?.ok_or_else(not_found)
    }
}

fn only_looks() -> TrainingJobsError {
    let message = "these training jobs can only be looked at here".to_owned();
    TrainingJobsError::Refused { code: "AccessDeniedException".to_owned(), message }
}

impl TrainingJobs for JobRecords {
    async fn create(&self, _: &Value) -> Result<(), TrainingJobsError> {
        Err(only_looks())
    }

    async fn stop(&self, _: &str) -> Result<(), TrainingJobsError> {
        Err(only_looks())
    }

    async fn release(&self, _: &str) -> Result<(), TrainingJobsError> {
        Err(only_looks())
    }

    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        Ok(match self.find(name).await? {
            Found::Job(record, _) => describe::description(&record, name, clock::now()),
            Found::Damaged(job) => describe::damaged(&job),
        })
    }

    async fn tags(&self, name: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        Ok(match self.find(name).await? {
            Found::Job(record, request) => describe::tags(&record, &request),
            Found::Damaged(_) => BTreeMap::new(),
        })
    }
}
